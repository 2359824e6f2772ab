"""Efficient attention, explained step by step on the Inside page.

The steps show what each feature gathers from the tokens, and how queries mix the features.
"""

import numpy as np

from app.words.i18n import _, _n, paragraph
from attention_core.analysis.low_rank.factors import perplexity
from attention_core.formatting import at_most
from pages.inside import pictures
from pages.inside.options import InsideOptions
from pages.inside.pictures import symbol
from pages.inside.reference import compare_with_reference
from pages.inside.story import Later, Seen, Step


def steps(seen: Seen) -> tuple[Step | Later, ...]:
    """Build the steps: the gathering map, the distributing map, their product, comparison with the reference."""
    ending = _("The rank of the matrix is at most {c}, the number of features.", c=seen.parts["gather"].shape[0])
    if seen.causal:
        ending = ""  # A causal mask can raise the rank of the product above the number of features.
    return _gather(seen), _distribute(seen), _product(seen), compare_with_reference(seen, ending)


def _gather(seen: Seen) -> Step:
    gather = seen.parts["gather"]
    n = gather.shape[1]
    wide = perplexity(gather)
    sharpest = wide.argmin()
    message = _(
        "Each feature spreads its weight over effectively {middle:.0f} of the {n} tokens (median over features). The "
        "narrowest, feature {feature}, gives {share:.0%} of its weight to “{token}”.",
        n=n,
        middle=np.median(wide),
        feature=sharpest,
        share=gather[sharpest].max(),
        token=seen.token(gather[sharpest].argmax()),
    )
    if seen.causal:
        message = paragraph(
            message,
            _(
                "With a causal mask, the weights that a feature gives to tokens depend on the query. The figure "
                "shows those for the last query."
            ),
        )

    def draw(key: str) -> None:
        words = {"row": _("feature"), "column": _("token")}
        maps = pictures.panel(_("Feature maps G"), gather, columns=seen.labels, mark=0, **words)
        pictures.board(f"{key}.maps", maps, *pictures.results(seen), scale="panel")
        features = wide.argsort().tolist()
        chosen = InsideOptions.feature.draw_with_options(
            features,
            features[0],
            key=f"{key}.feature",
            format_func=lambda f: _("feature {f}: spread over {wide:.1f} tokens", f=f, wide=wide[f]),
        )
        pictures.bars(
            {_("feature {f}", f=chosen): gather[chosen]},
            seen.labels,
            key=f"{key}.bars",
            x_title=_("token"),
            y_title=_("weight that feature {f} gives to the token", f=chosen),
            alt=_("Bars: the weight that feature {f} gives to each token", f=chosen),
            height=260,
        )

    return Step(
        title=_("Feature maps"),
        mechanism=_(
            "Each component of the keys is a feature. A softmax over the tokens turns each feature into a feature map: "
            "weights of all tokens that sum to 1."
        ),
        formula=symbol(0, "G") + r"_{cj} = \frac{e^{K_{jc}}}{\sum_l e^{K_{lc}}}",
        shapes={"G": gather.shape, "G V": seen.parts["summaries"].shape},
        findings=message,
        draw=draw,
    )


def _distribute(seen: Seen) -> Step:
    weights = seen.parts["distribute"]
    top = np.bincount(weights.argmax(-1), minlength=weights.shape[-1])

    def draw(key: str) -> None:
        mixed = pictures.panel(_("Feature weights D"), weights, seen.labels, column=_("feature"), mark=0)
        pictures.board(key, mixed, *pictures.results(seen), scale="panel")

    return Step(
        title=_("Feature weights"),
        mechanism=_(
            "Each query combines the feature maps. The weights come from a softmax over the query's own features."
        ),
        formula=symbol(0, "D") + r"_{ic} = \frac{e^{Q_{ic}}}{\sum_f e^{Q_{if}}}",
        shapes={"D": weights.shape},
        findings=shares_sentence(np.median(perplexity(weights)), top),
        draw=draw,
    )


def shares_sentence(wide: float, top: np.ndarray) -> str:
    """Return the sentence about how queries mix the features.

    Args:
        wide: perplexity of the median query's mixture, in features.
        top: the number of queries for which each feature has the largest share, ``[C]``.
    """
    return _n(
        "Each query effectively uses {wide:.1f} of {c} features (median over queries). Feature {feature} has the "
        "largest weight for {count} of {queries} queries. {n} feature never has the largest weight.",
        "Each query effectively uses {wide:.1f} of {c} features (median over queries). Feature {feature} has the "
        "largest weight for {count} of {queries} queries. {n} features never have the largest weight.",
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
        "The rows of both factors sum to one. Therefore, the rows of the product also sum to one, to within {off}.",
        off=at_most(np.abs(rows - 1).max()),
    )
    if seen.causal:
        text = _("Every row sums to one, to within {off}.", off=at_most(np.abs(rows - 1).max()))
        text = paragraph(text, _(seen.attention.variant.note))
    text = paragraph(
        text,
        _(
            "Columns do not sum to one. “{token}” receives the largest total weight, {most:.2f}. The smallest "
            "total weight of a token is {least:.2f}.",
            token=seen.token(most),
            most=columns[most],
            least=columns.min(),
        ),
    )

    def draw(key: str) -> None:
        pictures.bars(
            {_("row sum (as query)"): rows, _("column sum (as key)"): columns},
            seen.labels,
            key=key,
            x_title=_("token"),
            y_title=_("sum of weights"),
            alt=_("Bars: the row sums, which are all one, and the column sums"),
        )

    return Step(
        title=_("Product"),
        mechanism=_("The product of two softmaxes is an attention matrix whose rows sum to one."),
        formula=r"\sum_j (D G)_{ij} = \sum_c D_{ic} \sum_j G_{cj} = \sum_c D_{ic} = 1",
        shapes={"D": seen.parts["distribute"].shape, "G": seen.parts["gather"].shape, "D G": seen.weights.shape},
        findings=text,
        draw=draw,
    )
