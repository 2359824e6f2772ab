"""Efficient attention: what each feature gathers over the tokens, and how queries mix it."""

import numpy as np

from app.text import _, literal, paragraph
from attention_core.looks.factors import perplexity
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.reference import beside_reference
from pages.inside.story import Seen, Step


def steps(seen: Seen) -> tuple[Step, ...]:
    """From the two maps to their product."""
    ending = _("Its rank is at most C = {c}, the number of features.", c=seen.parts["gather"].shape[0])
    if seen.causal:
        ending = ""  # what is hidden cuts the product to pieces
    return _gather(seen), _distribute(seen), _product(seen), beside_reference(seen, ending)


def _gather(seen: Seen) -> Step:
    gather = seen.parts["gather"]
    c, n = gather.shape
    wide = perplexity(gather)
    sharpest = int(wide.argmin())
    told = _(
        "Each of the {c} features holds one attention map over the whole text, the same for every query: the median "
        "map spreads like {middle:.0f} of {n} tokens, the sharpest, feature {feature}, gives {share:.0%} to “{token}”.",
        c=c,
        n=n,
        middle=np.median(wide),
        feature=sharpest,
        share=gather[sharpest].max(),
        token=literal(seen.labels[int(gather[sharpest].argmax())]),
    )
    if seen.causal:
        told = paragraph(told, _("Shown is the map after the last token: while causal is on, each query sees its own."))

    def draw(key: str) -> None:
        pictures.grid(
            _("What each feature gathers"),
            gather,
            f"{key}.maps",
            columns=seen.labels,
            row_title=_("feature"),
            col_title=_("token"),
            unit=_("share"),
        )
        features = [int(f) for f in wide.argsort()]
        chosen = InsideOptions.feature.draw_among(
            features,
            features[0],
            key=f"{key}.feature",
            format_func=lambda f: _("feature {f}, like {wide:.1f} tokens", f=f, wide=wide[f]),
        )
        pictures.bars(
            {_("feature {f}", f=chosen): gather[chosen]},
            seen.labels,
            key=f"{key}.bars",
            x_title=_("token"),
            y_title=_("share"),
            alt=_("Bars: how much feature {f} takes from each token", f=chosen),
            height=260,
        )

    return Step(
        title=_("Gather"),
        formula=r"G_{cj} = \frac{e^{K_{jc}}}{\sum_l e^{K_{lc}}}",
        shapes={"G": gather.shape, "G V": seen.parts["summaries"].shape},
        sentence=told,
        draw=draw,
    )


def _distribute(seen: Seen) -> Step:
    given = seen.parts["distribute"]
    top = np.bincount(given.argmax(-1), minlength=given.shape[-1])

    def draw(key: str) -> None:
        pictures.grid(
            _("How queries mix the features"), given, key, rows=seen.labels, col_title=_("feature"), unit=_("share")
        )

    return Step(
        title=_("Distribute"),
        formula=r"D_{ic} = \frac{e^{Q_{ic}}}{\sum_f e^{Q_{if}}}",
        shapes={"D": given.shape},
        sentence=_(
            "The median query mixes like {wide:.1f} of {c} features. Feature {feature} is the largest share of {count} "
            "of {n} queries, and {none} features are nobody's largest.",
            wide=np.median(perplexity(given)),
            c=given.shape[-1],
            feature=top.argmax(),
            count=top.max(),
            n=len(given),
            none=(top == 0).sum(),
        ),
        draw=draw,
    )


def _product(seen: Seen) -> Step:
    rows, columns = seen.weights.sum(-1), seen.weights.sum(0)
    most = int(columns.argmax())
    told = _("No row was divided by anything, and none is further from one than {off:.0e}.", off=np.abs(rows - 1).max())
    if seen.causal:
        told = _("No row is further from one than {off:.0e}.", off=np.abs(rows - 1).max())
        told = paragraph(told, _(seen.attention.variant.note))
    told = paragraph(
        told,
        _(
            "Columns are free: “{token}” is given {most:.2f} in all, the least of all tokens {least:.2f}.",
            token=literal(seen.labels[most]),
            most=columns[most],
            least=columns.min(),
        ),
    )

    def draw(key: str) -> None:
        pictures.bars(
            {_("sum of its row, as a query"): rows, _("sum of its column, as a key"): columns},
            seen.labels,
            key=key,
            x_title=_("token"),
            y_title=_("sum of weights"),
            alt=_("Bars: the sums of rows, all one, and of columns"),
        )

    return Step(
        title=_("Product"),
        formula=r"\sum_j (D G)_{ij} = \sum_c D_{ic} \sum_j G_{cj} = \sum_c D_{ic} = 1",
        shapes={"D": seen.parts["distribute"].shape, "G": seen.parts["gather"].shape, "D G": seen.weights.shape},
        sentence=told,
        draw=draw,
    )
