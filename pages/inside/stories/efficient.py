"""Story of efficient attention: what each feature gathers over the tokens, and how queries mix the features."""

import numpy as np

from app.words.i18n import _, _n, paragraph
from attention_core.analysis.low_rank.factors import perplexity
from attention_core.formatting import at_most
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.reference import beside_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: the gathering map, the distributing map, their product, comparison with the reference."""
    ending = _("Its rank is at most C = {c}, the number of features.", c=seen.parts["gather"].shape[0])
    if seen.causal:
        ending = ""  # The bound on the rank does not hold for a masked product.
    return _gather(seen), _distribute(seen), _product(seen), beside_reference(seen, ending)


def _gather(seen: Seen) -> Step:
    gather = seen.parts["gather"]
    c, n = gather.shape
    wide = perplexity(gather)
    sharpest = wide.argmin()
    message = _(
        "Each of the {c} features holds one attention map over the whole text, the same for every query: the median "
        "map spreads like {middle:.0f} of {n} tokens, the sharpest, feature {feature}, gives {share:.0%} to “{token}”.",
        c=c,
        n=n,
        middle=np.median(wide),
        feature=sharpest,
        share=gather[sharpest].max(),
        token=seen.token(gather[sharpest].argmax()),
    )
    if seen.causal:
        message = paragraph(
            message, _("Shown is the map after the last token: while causal is on, each query sees its own.")
        )

    def draw(key: str) -> None:
        words = {"row": _("feature"), "column": _("token")}
        maps = pictures.panel(_("What each feature gathers"), gather, columns=seen.labels, **words)
        pictures.board(f"{key}.maps", maps, unit=_("share"))
        features = wide.argsort().tolist()
        chosen = InsideOptions.feature.draw_with_options(
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
        sentence=message,
        draw=draw,
    )


def _distribute(seen: Seen) -> Step:
    given = seen.parts["distribute"]
    top = np.bincount(given.argmax(-1), minlength=given.shape[-1])

    def draw(key: str) -> None:
        mixed = pictures.panel(_("How queries mix the features"), given, seen.labels, column=_("feature"))
        pictures.board(key, mixed, unit=_("share"))

    return Step(
        title=_("Distribute"),
        formula=r"D_{ic} = \frac{e^{Q_{ic}}}{\sum_f e^{Q_{if}}}",
        shapes={"D": given.shape},
        sentence=shares_sentence(np.median(perplexity(given)), top),
        draw=draw,
    )


def shares_sentence(wide: float, top: np.ndarray) -> str:
    """Return the sentence about how queries mix the features.

    Args:
        wide: perplexity of the median query's mixture, in features.
        top: the number of queries for which each feature has the largest share, ``[C]``.
    """
    return _n(
        "The median query mixes like {wide:.1f} of {c} features. Feature {feature} is the largest share of {count} of "
        "{queries} queries, and {n} feature is nobody's largest.",
        "The median query mixes like {wide:.1f} of {c} features. Feature {feature} is the largest share of {count} of "
        "{queries} queries, and {n} features are nobody's largest.",
        n=int((top == 0).sum()),
        wide=wide,
        c=len(top),
        feature=top.argmax(),
        count=top.max(),
        queries=top.sum(),
    )


def _product(seen: Seen) -> Step:
    rows, columns = seen.weights.sum(-1), seen.weights.sum(0)
    most = columns.argmax()
    text = _(
        "No row was divided by anything, and none is further from one than {off}.", off=at_most(np.abs(rows - 1).max())
    )
    if seen.causal:
        text = _("No row is further from one than {off}.", off=at_most(np.abs(rows - 1).max()))
        text = paragraph(text, _(seen.attention.variant.note))
    text = paragraph(
        text,
        _(
            "Columns are free: “{token}” is given {most:.2f} in all, the least of all tokens {least:.2f}.",
            token=seen.token(most),
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
        sentence=text,
        draw=draw,
    )
