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
from pages.inside.story import HeadData, LazyStep, Step


def steps(data: HeadData) -> tuple[Step | LazyStep, ...]:
    """Build the steps: tokens to features, features to queries, their product, comparison with the reference."""
    ending = _("The rank of the matrix is at most {c}, the number of features.", c=data.parts["gather"].shape[0])
    if data.causal:
        ending = ""  # With a causal mask, the rank can exceed the number of features.
    return _gather(data), _distribute(data), _product(data), compare_with_reference(data, ending)


def _gather(data: HeadData) -> Step:
    gather = data.parts["gather"]
    n = gather.shape[1]
    widths = perplexity(gather)
    sharpest = widths.argmin()
    message = _(
        "Each feature spreads its weight over {middle:.0f} of the {n} tokens (effective number, median over "
        "features). Feature {feature} spreads its weight least and gives {share:.0%} of it to “{token}”.",
        n=n,
        middle=np.median(widths),
        feature=sharpest,
        share=gather[sharpest].max(),
        token=data.token(gather[sharpest].argmax()),
    )
    if data.causal:
        message = paragraph(
            message,
            _(
                "With a causal mask, the weights that a feature gives to tokens depend on the query. The figure shows "
                "the weights for the last query."
            ),
        )

    def draw(key: str) -> None:
        words = {"row": _("feature"), "column": _("token")}
        maps = pictures.panel(_("Feature maps G"), gather, columns=data.labels, mark=0, **words)
        pictures.board(f"{key}.maps", maps, *pictures.result_panels(data), scale="panel")
        features = widths.argsort().tolist()
        chosen = InsideOptions.feature.draw_with_options(
            features,
            features[0],
            key=f"{key}.feature",
            format_func=lambda f: _("feature {f}: spread over {wide:.1f} tokens", f=f, wide=widths[f]),
        )
        pictures.bars(
            {_("feature {f}", f=chosen): gather[chosen]},
            data.labels,
            key=f"{key}.bars",
            x_title=_("token"),
            y_title=_("weight that feature {f} gives to the token", f=chosen),
            alt=_("Bars: the weight that feature {f} gives to each token", f=chosen),
            height=260,
        )

    return Step(
        title=_("Feature maps"),
        mechanism=_(
            "Each component of the keys is a feature. For each feature, a softmax over the tokens gives every token "
            "a weight. The weights of one feature sum to 1 and form its map."
        ),
        formula=symbol(0, "G") + r"_{cj} = \frac{e^{K_{jc}}}{\sum_l e^{K_{lc}}}",
        shapes={"G": gather.shape, "G V": data.parts["summaries"].shape},
        findings=message,
        draw=draw,
    )


def _distribute(data: HeadData) -> Step:
    weights = data.parts["distribute"]
    top_counts = np.bincount(weights.argmax(-1), minlength=weights.shape[-1])

    def draw(key: str) -> None:
        mixed = pictures.panel(_("Feature weights D"), weights, data.labels, column=_("feature"), mark=0)
        pictures.board(key, mixed, *pictures.result_panels(data), scale="panel")

    return Step(
        title=_("Feature weights"),
        mechanism=_(
            "Each feature has a map: one weight for every token. Each query mixes the maps of all features. The "
            "proportions of this mixture come from a softmax over the query's own components."
        ),
        formula=symbol(0, "D") + r"_{ic} = \frac{e^{Q_{ic}}}{\sum_f e^{Q_{if}}}",
        shapes={"D": weights.shape},
        findings=shares_sentence(np.median(perplexity(weights)), top_counts),
        draw=draw,
    )


def shares_sentence(width: float, top_counts: np.ndarray) -> str:
    """Return the sentence about how queries mix the features.

    Args:
        width: the effective number of features (perplexity) that the median query mixes.
        top_counts: the number of queries for which each feature has the largest share, ``[C]``.
    """
    text = _(
        "A query effectively mixes {wide:.1f} of {c} features (median over queries). Feature {feature} has the largest "
        "weight for {count} of {queries} queries.",
        wide=width,
        c=len(top_counts),
        feature=top_counts.argmax(),
        count=top_counts.max(),
        queries=top_counts.sum(),
    )
    unused = int((top_counts == 0).sum())
    if not unused:
        return paragraph(text, _("Every feature has the largest weight for at least one query."))
    return paragraph(
        text, _n("{n} feature never has the largest weight.", "{n} features never have the largest weight.", n=unused)
    )


def _product(data: HeadData) -> Step:
    rows, columns = data.weights.sum(-1), data.weights.sum(0)
    most = columns.argmax()
    text = _(
        "The rows of both factors sum to one. Therefore, the rows of the product also sum to one, to within {off}.",
        off=at_most(np.abs(rows - 1).max()),
    )
    if data.causal:
        text = _("Every row sums to one, to within {off}.", off=at_most(np.abs(rows - 1).max()))
        text = paragraph(text, _(data.attention.variant.note))
    text = paragraph(
        text,
        _(
            "Columns do not sum to one. “{token}” receives the largest total weight, {most:.2f}. The smallest "
            "total weight of a token is {least:.2f}.",
            token=data.token(most),
            most=columns[most],
            least=columns.min(),
        ),
    )

    def draw(key: str) -> None:
        pictures.bars(
            {_("row sum (as query)"): rows, _("column sum (as key)"): columns},
            data.labels,
            key=key,
            x_title=_("token"),
            y_title=_("sum of weights"),
            alt=_("Bars: the row sums, which are all one, and the column sums"),
        )

    return Step(
        title=_("Product"),
        mechanism=_("The product of two softmaxes is an attention matrix whose rows sum to one."),
        formula=r"\sum_j (D G)_{ij} = \sum_c D_{ic} \sum_j G_{cj} = \sum_c D_{ic} = 1",
        shapes={"D": data.parts["distribute"].shape, "G": data.parts["gather"].shape, "D G": data.weights.shape},
        findings=text,
        draw=draw,
    )
