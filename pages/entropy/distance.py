"""The “RoPE by distance” view of the Entropy page: softmax's weights and logits by the distance from query to key.

The view compares three cases: with RoPE, with ALiBi, and with neither.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.figures.lines.curve import Curve, guide
from app.figures.lines.spread import spread
from app.figures.theme import GREY
from app.ui.chart import is_narrow
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, escape_markdown, paragraph
from app.words.labels import every_key
from attention_core.experiments import distance
from attention_core.experiments.distance import BIASED, PLAIN, ROTATED, DistanceRow, near_and_far
from attention_core.formatting import formatted, number, percent
from attention_core.inputs.models import BUILT_IN
from attention_core.inputs.positions import ALIBI
from attention_core.inputs.source import Source, TextSource
from pages.entropy import distance_words
from pages.entropy.options import EntropyOptions, Measurement
from pages.entropy.view import View, quartiles

DASHES = {ROTATED: "solid", PLAIN: "dash", BIASED: "dashdot"}
ALONE = 3
"""Colour of the line of RoPE alone, which no form has."""
MIN_TOKENS = 16
"""Smallest number of tokens at which near and distant keys are compared; fewer tokens have too few distances."""
TOO_SHORT = N_("This input is too short to compare distances. Use a longer input.")


def position_origin(source: Source) -> str:
    """Return the text about whether the input's queries and keys have RoPE, and how RoPE is added or removed."""
    notice = source.rope_notice()
    return _(notice.template, **{name: escape_markdown(f) if isinstance(f, str) else f for name, f in notice.fields})


def points(rows: Sequence[DistanceRow], name: str, form: str) -> list[tuple[int, float]]:
    """Return ``(distance, measure)`` of the rows of one form in which the measure ``name`` is known."""
    return [
        (row.distance, value)
        for row in rows
        if row.distance is not None and row.form == form and (value := getattr(row, name)) is not None
    ]


def near_and_far_values(
    rows: Sequence[DistanceRow], form: str, name: str, n: int, *, mean: bool = False
) -> tuple[float, float] | None:
    """Return a measure at distance 1 and beyond n / 2, median or mean of the heads; None if no pair is that far."""
    if not (values := near_and_far(rows, form, name, n)):
        return None
    near, far = (np.mean if mean else np.median)(values, axis=0).tolist()
    return near, far


def entropies(rows: Sequence[DistanceRow], measurement: Measurement) -> dict[str, list[float]]:
    """Return each head's entropy by form, in the chosen unit; forms that were not measured are left out."""
    values = {
        form: [measurement.units_per_nat * row.entropy for row in rows if row.form == form and row.entropy is not None]
        for form in distance_words.form_names()
    }
    return {form: nats for form, nats in values.items() if nats}


def trained_without_rope(source: Source) -> str:
    """Return the title of the source's model if it was trained without RoPE; empty for other inputs and with ALiBi."""
    model = source.model if isinstance(source, TextSource) and source.positions != ALIBI else ""
    return next((info.title for info in BUILT_IN if info.key == model and not info.rotary), "")


def added_rope(title: str) -> str:
    """Return the note that the model ``title`` was not trained with RoPE, with a link to a model that was.

    The link turns the causal mask on, because that model was trained with this mask.
    """
    rotary = next(info for info in BUILT_IN if info.rotary)
    return _(
        "**{model} was never trained with RoPE, so this view shows only the geometry of the rotations.** To see a "
        "model that was trained with RoPE, open {rotary}.",
        model=title,
        rotary=f"[{rotary.title}](#?model={rotary.key}&causal=1)",
    )


def describe(rows: Sequence[DistanceRow], measurement: Measurement) -> Lines | Finding | str:
    """Return the finding about the chosen measure, below a note on a model without RoPE."""
    finding = measure_finding(rows, measurement)
    if isinstance(finding, str) or measurement.options.distance == "alone":
        return finding
    pairs = _("Averages at larger distances include fewer pairs of tokens.")
    title = trained_without_rope(measurement.source)
    note = [[Finding(added_rope(title))]] if title else []
    return [*note, [Finding(finding.text, paragraph(finding.explanation, pairs))]]


def measure_finding(rows: Sequence[DistanceRow], measurement: Measurement) -> Finding | str:
    """Return the finding about the chosen measure."""
    n, mean = measurement.record.n, measurement.uses_mean
    if measurement.options.distance == "alone":
        shape = _rotation_only(_distances(rows), measurement)
        return distance_words.rope_effect(shape["sums"], shape["cosines"]) if len(shape["sums"]) > 1 else _(TOO_SHORT)
    average = np.mean if mean else np.median
    nats = {form: float(average(values)) for form, values in entropies(rows, measurement).items()}
    by_form = {
        name: {form: found for form in nats if (found := near_and_far_values(rows, form, name, n, mean=mean))}
        for name in ("weight", "logit", "size", "bound")
    }
    if not by_form["weight"] or n < MIN_TOKENS:
        return _(TOO_SHORT)
    if measurement.options.distance == "logit":
        return distance_words.logits_by_form(by_form["logit"], n)
    if measurement.options.distance == "bound":
        sizes, bounds = (by_form[name].get(ROTATED) for name in ("size", "bound"))
        if sizes and bounds and min(sizes) > 0:
            plain = by_form["size"].get(PLAIN)
            return distance_words.size_and_bound(sizes, bounds, n, plain[1] if plain else None)
        return distance_words.entropy_by_form(nats, measurement.unit)
    measured = {row.distance for row in rows if row.distance is not None}
    uniform = {i: distance.equal_weight(i, n, causal=True) for i in measured} if measurement.causal else {}
    return distance_words.weights_by_form(by_form["weight"], n, trained_without_rope(measurement.source), uniform)


def _distances(rows: Sequence[DistanceRow]) -> range:
    return range(max(row.distance or 0 for row in rows) + 1)


def _rotation_only(distances: Sequence[int], measurement: Measurement) -> dict[str, list[float]]:
    size = distance.rotated_size(measurement.record, measurement.source)
    return distance.rope_decay(distances, size, distance.rope_base(measurement.source))


def chart(rows: Sequence[DistanceRow], measurement: Measurement) -> tuple[list[Curve], dict[str, Any]]:
    """Return the lines of the chosen measure."""
    measure = measurement.options.distance
    field = {"bound": "size", "alone": ""}.get(measure, measure)
    lines = [
        replace(
            found.curve(title, colour, band=measurement.options.band, dash=DASHES[form]), hides_band=form != ROTATED
        )
        for colour, (form, title) in enumerate(distance_words.form_names().items())
        if field and (found := spread(points(rows, field, form), mean=measurement.uses_mean)).x
    ]
    if measure == "weight":
        n, x = measurement.record.n, lines[0].x
        uniform = [distance.equal_weight(int(i), n, causal=measurement.causal) for i in x]
        lines.append(guide(_("equal weights on {keys}", keys=every_key(causal=measurement.causal)), x, uniform))
    if measure == "bound":
        bound = spread(points(rows, "bound", ROTATED), mean=measurement.uses_mean)
        lines += [bound.curve(_("upper bound, with RoPE"), GREY, dash="dot", band=False)] if bound.x else []
    if measure == "alone":
        x = _distances(rows)
        shape = _rotation_only(x, measurement)
        lines += [
            guide(_("upper bound of |logit|"), x, shape["sums"]),
            Curve(_("dot product (q = k)"), x, shape["cosines"], colour=ALONE),
        ]
    titles = {
        "weight": _("mean softmax weight of a key"),
        "logit": _("mean logit q·k / √d"),
        "bound": _("mean |logit|, |q·k| / √d"),
        "alone": _("size relative to distance 0"),
    }
    x_title = _("distance (tokens)") if is_narrow() else _("distance between query and key (tokens)")
    axes = {"x_title": x_title, "y_title": titles[measure]}
    return [replace(line, markers=False) for line in lines], {
        **axes,
        "log_y": measure in ("weight", "bound"),
        **({"percent": True, "form": ".2%"} if measure == "weight" else {}),
    }


def table(rows: Sequence[DistanceRow], measurement: Measurement) -> list[dict[str, object]]:
    """Return entropies, weights and logits by form."""
    table_rows: list[dict[str, object]] = []
    for form, nats in entropies(rows, measurement).items():
        weight, logit = (
            near_and_far_values(rows, form, name, measurement.record.n, mean=measurement.uses_mean)
            for name in ("weight", "logit")
        )
        table_rows.append(
            {
                _("position encoding"): distance_words.form_names()[form],
                _("entropy H ({unit})", unit=measurement.unit): formatted(
                    float((np.mean if measurement.uses_mean else np.median)(nats)), ".2f"
                ),
                _("H, quartiles over heads"): quartiles(nats),
                _("mean weight of neighbouring tokens"): weight and percent(weight[0]),
                _("mean weight beyond distance n / 2"): weight and percent(weight[1]),
                _("mean logit of neighbouring tokens"): logit and number(logit[0]),
                _("mean logit beyond distance n / 2"): logit and number(logit[1]),
            }
        )
    return table_rows


def notes(measurement: Measurement) -> str:
    """Return the effect of RoPE on a dot product, and the meaning of the bound."""
    text = _(
        "- RoPE groups the d coordinates of every query and key into pairs. It rotates pair p by the token's position "
        "times $\\theta_p$. The vectors keep their lengths.\n"
        "- Read each pair, before the rotation, as a complex number. Then $h_p$ in the formula is pair p of the query "
        "times the conjugate of pair p of the key. Beyond the last pair, $h_p$ is 0.\n"
        "- $S_p$ is the sum of the rotations $e^{\\mathrm{i}(i-j)\\theta_r}$ of the first p pairs. The upper bound on "
        "the dot product is the sum of all $|S_p|$, multiplied by a factor that does not depend on the distance.\n"
        "- [The article](https://kexue.fm/archives/8265) shows that the mean of $|S_p|$ over p falls with distance, so "
        "the **bound** falls. The dot product itself need not fall. For random queries and keys, it has mean 0 at "
        "every distance.\n"
        "- n is the number of tokens. A head's value at one distance is the mean over all allowed query–key pairs at "
        "this distance. All small distances and some larger ones are measured, up to three quarters of n.\n"
        "- Lines show the median or mean over heads and seeds, and bands show the quartiles.\n"
        "- A value “beyond distance n / 2” is the mean over all measured distances greater than n / 2."
    )
    return f"{text}\n- {position_origin(measurement.source)}"


VIEW = View(
    experiment=distance,
    heading=N_("Does RoPE make attention more local?"),
    variants=lambda measurement: ("softmax",),
    settings=lambda measurement: {"n": measurement.record.m, "seeds": measurement.seeds},
    controls_above_chart=lambda measurement: EntropyOptions.distance.draw(label_visibility="collapsed"),
    sweeps=False,
    describe=describe,
    chart=chart,
    table=table,
    formula=r"q_i\cdot k_j = \operatorname{Re}\sum_{p<d/2} h_p\, e^{\mathrm{i}(i-j)\theta_p},\qquad "
    r"\theta_p = \text{base}^{-2p/d},\qquad "
    r"|q_i\cdot k_j| \le \max_p |h_{p+1}-h_p| \sum_{p=1}^{d/2} |S_p|,\quad "
    r"S_p = \sum_{r<p} e^{\mathrm{i}(i-j)\theta_r}",
    notes=notes,
    subtitle=lambda measurement: (
        _("RoPE rotation · distances 0 to {last}", last=distance.distances(measurement.record.m)[-1])
        if measurement.options.distance == "alone"
        else ""
    ),
)
