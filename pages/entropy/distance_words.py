"""Findings of the view “RoPE by distance” of the Entropy page."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from app.words.finding import Finding
from app.words.i18n import _, paragraph
from attention_core.experiments.distance import BIASED, PLAIN, ROTATED
from attention_core.formatting import number, percent

SAME_RATIO = 1.05
"""Ratio up to which two numbers count as equal."""
MIN_CHANGE = 0.01
"""Smallest change of the bound, as a share of its value at distance 0, that the sentences call a rise or a fall."""
LOOSE_BOUND = 10
"""Ratio of a bound to the actual values from which the bound counts as loose."""


def form_names() -> dict[str, str]:
    """Return the names on screen of the forms: with RoPE, without RoPE and with ALiBi."""
    return {ROTATED: _("with RoPE"), PLAIN: _("without RoPE"), BIASED: _("with ALiBi")}


def weights_by_form(
    weights: Mapping[str, tuple[float, float]],
    n: int,
    without_rope: str = "",
    uniform: Mapping[int, float] | None = None,
) -> Finding:
    """Return the weight of keys beyond n / 2 relative to adjacent keys, and whether RoPE makes attention more local.

    Args:
        weights: the weight of an adjacent and of a distant key, by form.
        n: number of tokens.
        without_rope: title of the model if it was trained without RoPE, otherwise empty.
        uniform: mean weight of equal weights by measured distance with a causal mask; None without a mask.
    """
    shares = {form: far / near for form, (near, far) in weights.items()}
    values = {"half": n / 2, "model": without_rope, **{form: percent(share) for form, share in shares.items()}}
    plain = shares.get(PLAIN)
    if plain is None:
        finding = ""
    elif shares[ROTATED] * SAME_RATIO < plain:
        finding = (
            _("**Adding RoPE to {model} makes its attention more local here.**", **values)
            if without_rope
            else _("**RoPE makes attention more local here.**")
        )
    elif shares[ROTATED] > SAME_RATIO * plain:
        finding = (
            _("**Adding RoPE to {model} makes its attention less local here.**", **values)
            if without_rope
            else _("**RoPE makes attention less local here.**")
        )
    else:
        finding = (
            _("**Adding RoPE to {model} hardly changes the locality of its attention here.**", **values)
            if without_rope
            else _("**RoPE hardly changes the locality of attention here.**")
        )
    distant = [weight for i, weight in (uniform or {}).items() if i > n / 2 and i > 1]
    explanation = paragraph(
        _(
            "RoPE rotates a query and a distant key by different angles, which changes their logit (scaled dot "
            "product)."
        ),
        adjacent_weight(weights),
        _(
            "With RoPE, keys more than {half:g} tokens away get {turned} of an adjacent key's weight, averaged over "
            "these distances in each head.",
            **values,
        )
        if plain is None
        else _(
            "Keys more than {half:g} tokens away get {turned} of an adjacent key's weight with RoPE, and {plain} "
            "without, averaged over these distances in each head.",
            **values,
        ),
        _("With ALiBi, they get {biased}.", **values) if BIASED in shares else "",
        _(
            "With equal weights, they would get {share}, because only later queries have distant keys, and their "
            "weight is divided among more keys.",
            share=percent(float(np.mean(distant)) / uniform[1]),
        )
        if uniform and 1 in uniform and distant
        else "",
    )
    return Finding(finding, explanation)


def adjacent_weight(weights: Mapping[str, tuple[float, float]]) -> str:
    """Return how RoPE changes the weight of an adjacent key; empty without the form without RoPE, or if it does not."""
    after, before = (weights[form][0] if form in weights else 0.0 for form in (ROTATED, PLAIN))
    values = {"before": percent(before), "after": percent(after)}
    if not before or 1 / SAME_RATIO <= after / before <= SAME_RATIO:
        return ""
    if after < before:
        return _("RoPE lowers the weight of an adjacent key from {before} to {after}.", **values)
    return _("RoPE raises the weight of an adjacent key from {before} to {after}.", **values)


def logits_by_form(logits: Mapping[str, tuple[float, float]], n: int) -> Finding:
    """Return the mean logit at distance 1 and beyond n / 2, in each form."""
    texts = {
        ROTATED: _(
            "With RoPE, the mean logit is {near} for adjacent keys and {far} for keys more than {half:g} tokens from "
            "the query."
        ),
        PLAIN: _("Without RoPE, the mean logit is {near} for adjacent keys and {far} for distant keys."),
        BIASED: _("With ALiBi, the mean logit is {near} for adjacent keys and {far} for distant keys."),
    }
    near, far = logits[ROTATED]
    near_plain, far_plain = logits.get(PLAIN, (0.0, 0.0))
    ends = {"near": near, "far": far, "near_plain": near_plain, "far_plain": far_plain}
    fields = {name: number(end) for name, end in ends.items()}
    falls, falls_plain = near - far, near_plain - far_plain
    if f"{near:.2g}" == f"{far:.2g}":
        finding = _("**With RoPE, the mean logit is the same for distant and adjacent keys.**")
    elif falls > SAME_RATIO * falls_plain > 0 and f"{near_plain:.2g}" != f"{far_plain:.2g}":
        finding = _(
            "**RoPE makes the mean logit fall more with distance: from {near} to {far}, instead of from {near_plain} "
            "to {far_plain}.**",
            **fields,
        )
    elif falls_plain > SAME_RATIO * falls > 0:
        finding = _(
            "**RoPE makes the mean logit fall less with distance: from {near} to {far}, instead of from {near_plain} "
            "to {far_plain}.**",
            **fields,
        )
    elif falls > 0 < falls_plain and f"{near_plain:.2g}" != f"{far_plain:.2g}":
        finding = _(
            "**RoPE hardly changes how much the mean logit falls with distance: from {near} to {far}, instead of from "
            "{near_plain} to {far_plain}.**",
            **fields,
        )
    elif far < near:
        finding = _("**With RoPE, distant keys have a lower mean logit than adjacent keys.**")
    else:
        finding = _("**With RoPE, distant keys have a higher mean logit than adjacent keys.**")
    return Finding(
        finding,
        paragraph(
            *(
                _(texts[form], near=number(first), far=number(last), half=n / 2)
                for form, (first, last) in sorted(logits.items(), key=lambda each: list(texts).index(each[0]))
            )
        ),
    )


def size_and_bound(
    sizes: tuple[float, float], bounds: tuple[float, float], n: int, without_rope: float | None = None
) -> Finding:
    """Return how the mean |logit| and its upper bound change from distance 1 to distances beyond n / 2.

    Args:
        sizes: the mean |logit| of adjacent and of distant keys, with RoPE.
        bounds: the upper bound for |logit|, for the same keys.
        n: number of tokens.
        without_rope: the mean |logit| of distant keys without RoPE; None if it is not measured.
    """
    values = {
        "bound": percent(bounds[1] / bounds[0]),
        "half": n / 2,
        "size": percent(sizes[1] / sizes[0]),
        "far": number(sizes[1]),
        "plain": number(without_rope or 0.0),
        "times": number(bounds[1] / sizes[1]),
    }
    return Finding(
        _(
            "**RoPE's upper bound for |logit| is lower at large distances, but {times} times the actual logits there, "
            "so it does not make attention local.**",
            **values,
        )
        if SAME_RATIO * bounds[1] < bounds[0] and bounds[1] > LOOSE_BOUND * sizes[1]
        else _("**With RoPE, distant keys have larger logits than adjacent keys, in absolute value.**")
        if sizes[1] > SAME_RATIO * sizes[0]
        else _("**With RoPE, distant keys have smaller logits than adjacent keys, in absolute value.**")
        if SAME_RATIO * sizes[1] < sizes[0]
        else _("**With RoPE, distant and adjacent keys have logits of about the same absolute value.**"),
        paragraph(
            _(
                "The mean |logit| of distant keys (more than {half:g} tokens from the query) is {size} of the mean "
                "|logit| of adjacent keys.",
                **values,
            ),
            ""
            if without_rope is None
            else _("The mean |logit| of distant keys is {far} with RoPE and {plain} without.", **values),
            _(
                "RoPE also sets an upper bound for |logit|. The bound for distant keys is {bound} of the bound for "
                "adjacent keys.",
                **values,
            ),
            _("For distant keys, the bound in the chart is {times} times the actual mean |logit|.", **values),
        ),
    )


def rope_effect(bounds: Sequence[float], cosines: Sequence[float]) -> Finding:
    """Return how RoPE alone changes a logit's bound over all distances, and a dot product at the largest.

    Args:
        bounds: upper bound for a logit at the distances 0, 1, 2, …, relative to its value at distance 0.
        cosines: dot product of a query and an equal key at the same distances, relative to its value at distance 0.
    """
    last, lowest = bounds[-1], min(bounds)
    values = {
        "distance": len(bounds) - 1,
        "bound": percent(last),
        "fall": percent(1 - last),
        "cosine": percent(cosines[-1]),
        "low": percent(lowest),
        "at": bounds.index(lowest),
    }
    largest_rise = max(bound - low for bound, low in zip(bounds, accumulate(bounds, min), strict=True))
    if 1 - lowest < MIN_CHANGE:
        finding = _("**RoPE alone hardly changes the upper bound for a logit at these distances.**")
    elif largest_rise < MIN_CHANGE <= 1 - last:
        finding = _(
            "**From distance 0 to {distance}, RoPE lowers the upper bound for a logit steadily, by {fall}.**", **values
        )
    elif 1 - last < MIN_CHANGE:
        finding = _(
            "**With RoPE, the upper bound for a logit falls to {low} at distance {at}, and then rises again.**",
            **values,
        )
    else:
        finding = _(
            "**From distance 0 to {distance}, RoPE lowers the upper bound for a logit by {fall}, but not steadily.**",
            **values,
        )
    return Finding(
        finding,
        paragraph(
            _(
                "RoPE sets an upper bound for |logit|. At distance {distance}, the bound is {bound} of the bound at "
                "distance 0.",
                **values,
            ),
            _("It is lowest ({low}) at distance {at}.", **values) if last - lowest >= MIN_CHANGE <= 1 - last else "",
            _(
                "Take a query and a key that are equal before the rotation, with all their coordinates of the same "
                "size. At distance {distance}, their dot product is {cosine} of its value at distance 0.",
                **values,
            ),
        ),
    )


def entropy_by_form(nats: Mapping[str, float], unit: str) -> str:
    """Return the entropy of the rows in each form."""
    values = {**{form: nats.get(form, 0.0) for form in form_names()}, "unit": unit}
    if PLAIN not in nats:
        return _("The mean entropy of a row is {turned:.2f} {unit}.", **values)
    if BIASED not in nats:
        return _("The mean entropy of a row is {turned:.2f} {unit} with RoPE and {plain:.2f} without RoPE.", **values)
    return _(
        "The mean entropy of a row is {turned:.2f} {unit} with RoPE, {plain:.2f} without RoPE, and {biased:.2f} with "
        "ALiBi.",
        **values,
    )
