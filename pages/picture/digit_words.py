"""Sentences of the Picture page about a handwritten digit."""

from collections.abc import Mapping

from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, paragraph
from attention_core.formatting import percent
from pages.picture import words


def error_ranking(errors: Mapping[str, float], equal: float, costs: Mapping[str, float]) -> Lines:
    """Return which variant is closest to softmax on a digit, which is farthest, and which cheaper one is closest.

    Args:
        errors: output error of each variant, by its name.
        equal: output error of equal weights for all pixels.
        costs: cost of each variant relative to softmax's, by its name, also of variants without an error.
    """
    if not errors:
        text = _("**Only softmax is shown.** Add a variant to see where its attention differs from softmax's.")
        return [[Finding(text)]]
    first, last = min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__)
    values = {"first": first, "least": percent(errors[first]), "last": last, "most": percent(errors[last])}
    text = (
        _("**{first} is closest to softmax** ({least} output error), and {last} is farthest ({most}).", **values)
        if len(errors) > 1
        else _("**{first} differs from softmax by {least}** of softmax's output (output error).", **values)
    )
    baseline = _("Equal weights on all pixels would have an output error of {equal}.", equal=percent(equal))
    cheaper = [name for name in errors if costs[name] < 1]
    best = min(cheaper, key=errors.__getitem__, default=first)
    if best == first:
        return [[Finding(text, baseline)]]
    text_of_cheaper = (
        N_(
            "Among the variants that cost less than softmax, {name} is closest, with {error} output error at {cost} of "
            "softmax's cost."
        )
        if sum(cost < 1 for cost in costs.values()) > 1
        else N_("Only {name} costs less than softmax: {cost} of its cost, with {error} output error.")
    )
    closest = _(text_of_cheaper, name=best, error=percent(errors[best]), cost=percent(costs[best]))
    return [[Finding(text), Finding(closest, baseline)]]


def digit_legend() -> str:
    """Return what the colours of a digit's maps are."""
    return _("Orange: attention that each pixel receives, averaged over all queries. Blue: negative attention.")


def digit_units(*, averaged: bool) -> str:
    """Return how the numbers of a digit are computed; ``averaged`` if several heads are shown together."""
    return paragraph(
        _("An output error of 100% is as large as softmax's output. Each map has its own scale."),
        words.cost_unit(),
        _("The output error includes all heads, and each map is the average of all heads.") if averaged else "",
    )


def digit_details(name: str, reference: str, error: float) -> str:
    """Return in words how far a variant's output is from that of its reference."""
    return _(
        "The difference between the outputs of {name} and {reference} is {error} of the size (norm) of {reference}'s "
        "output.",
        name=name,
        reference=reference,
        error=percent(error),
    )


def digit_tokens(pixels: int, layer: int) -> str:
    """Return what the tokens of a digit are, and where their queries, keys and values come from."""
    return paragraph(
        _(
            "Each of the {pixels} pixels is a token, in reading order. There are no other tokens and no mask.",
            pixels=pixels,
        ),
        _(
            "The queries q, keys k and values v are those of layer {layer} of a tiny model, which was trained to "
            "recognise handwritten digits.",
            layer=layer,
        ),
        _("A query has d components, and $o_i$ is the output for pixel i."),
        _("Every variant uses the same q, k and v, and the model is not trained again."),
    )
