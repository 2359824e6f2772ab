"""The “Spread by length” view of the Entropy page: the entropy of each variant's rows against the text length.

The module also defines the page's numbers that a lesson can ask about.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import attention_core as ac
from app.figures.lines.curve import Curve, doublings, guide
from app.figures.lines.spread import Spread, spread
from app.lessons import sweep_results
from app.lessons.screen import Screen
from app.measures import CurveMeasure, VariantMeasure
from app.state.session import REFERENCE
from app.ui import palette, variant_picker
from app.ui.lazy import lazy_popover
from app.words.finding import Finding, Lines
from app.words.i18n import N_, _, _n, enumeration
from app.words.labels import every_key, label
from attention_core.experiments import entropy_length
from attention_core.experiments.entropy_length import EntropyRow
from attention_core.experiments.homogeneity import HomogeneityRow
from attention_core.experiments.lengths import measured_lengths
from attention_core.experiments.task import group_by_head
from attention_core.formatting import number, percent, span
from attention_core.inputs.source import TextSource
from attention_core.metrics.entropy import uniform_entropy
from attention_core.metrics.fit import PowerFit, fit_entropy
from pages.entropy.growth_words import keys_and_share, keys_share, log_n_finding, main_finding
from pages.entropy.options import EntropyOptions, Measurement, make_measurement
from pages.entropy.view import View, progress_note, quartiles

MAX_SHARE = 1.02
"""Upper end of the axis of a measure that is at most 1, except for rounding errors."""
MIN_EVEN_SHARE = 0.8
"""Share of all keys from which the number of effective keys counts as close to that of equal weights."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve to measure: the variant, its name in the legend, its label at the curve's end, and its dash pattern."""

    attention: ac.Attention
    name: str
    label: str
    dash: str = "solid"


def show_scalings() -> None:
    """Draw a chip that names the chosen scalings of softmax, and opens their choice and settings."""
    names = {"log_n": _("Log n scaling"), "temperature": _("Temperature"), "unscaled": _("Without 1/√d")}
    chosen = EntropyOptions.scales.value

    def draw() -> None:
        EntropyOptions.scales.draw(format_func=names.__getitem__)
        if "log_n" in chosen:
            EntropyOptions.base.draw()
        if "temperature" in chosen:
            EntropyOptions.temperature.draw()

    label_ = enumeration(names[scale] for scale in chosen) or _("Other softmax scalings")
    lazy_popover(label_, draw, key="entropy.scales", icon=":material/tune:")


def lines_by_word(measurement: Measurement) -> dict[str, Line]:
    """Return the curves by ``attention.word``: the chosen variants, then other scalings of softmax."""
    lines = {
        attention.word: Line(attention=attention, name=label(attention), label=_(attention.title))
        for attention in variant_picker.allowed_variants()
    }
    base, temperature = measurement.options.base, measurement.options.temperature
    scaled = {
        "log_n": Line(
            attention=ac.get("softmax_log_n", base_length=base),
            name=_("Softmax, log n scaling"),
            label=_("Softmax, log n scaling"),
            dash="dash",
        ),
        "temperature": Line(
            attention=ac.get("softmax", temperature=temperature),
            name=_("Softmax · temperature {t:g}", t=temperature),
            label=_("Softmax, temperature {t:g}", t=temperature),
            dash="dashdot",
        ),
        "unscaled": Line(
            attention=ac.get("nonlocal", similarity="gaussian"),
            name=_("Softmax · without 1/√d"),
            label=_("Softmax, without 1/√d"),
            dash="dash",
        ),
    }
    for line in (scaled[scale] for scale in measurement.options.scales):
        lines.setdefault(line.attention.word, line)
    return lines


def by_length(rows: Sequence[EntropyRow], word: str, measurement: Measurement, measure: str = "entropy") -> Spread:
    """Return one curve's values by length, with entropies in the chosen unit.

    The measure ``keys`` is exp(entropy in nats), and ``share`` is ``keys`` divided by its value for uniform
    attention.
    """
    unit = measurement.units_per_nat if measure == "entropy" else 1.0
    field = "entropy" if measure in ("keys", "share") else measure
    points = [(row.n, value) for row in rows if row.variant == word and (value := getattr(row, field)) is not None]
    # Effective keys are exponentials of entropies, so a ratio of them is the exponential of a difference of entropies.
    if measure == "share":
        uniform = {n: uniform_entropy(n, causal=measurement.causal) for n, _entropy in points}
        points = [(n, entropy - uniform[n]) for n, entropy in points]
    spread_ = spread(((n, unit * value) for n, value in points), mean=measurement.uses_mean)
    return effective_keys(spread_) if measure in ("keys", "share") else spread_


def effective_keys(entropies: Spread) -> Spread:
    """Return the numbers of equally weighted keys that have these entropies, given in nats."""
    low, middle, high = (tuple(map(math.exp, line)) for line in (entropies.low, entropies.middle, entropies.high))
    return replace(entropies, low=low, middle=middle, high=high)


def describe(rows: Sequence[EntropyRow], measurement: Measurement) -> Lines | str:
    """Return the finding about softmax, and explanations of log n scaling and of variants with nearly equal weights."""
    words = {line.attention.key: word for word, line in reversed(lines_by_word(measurement).items())}
    scaled = by_length(rows, words["softmax_log_n"], measurement, "keys") if "softmax_log_n" in words else None
    softmax = by_length(rows, words["softmax"], measurement, "keys")
    if note := progress_note(softmax.x, measurement):
        return note
    base = base_length(ac.from_word(words["softmax_log_n"])) if scaled else 0
    finding = main_finding(
        softmax,
        scaled,
        base,
        causal=measurement.causal,
        is_text=isinstance(measurement.source, TextSource) and not measurement.record.crosses,
    )
    return [[finding, Finding("", uniform_note(rows, measurement))], [Finding(log_n_finding(softmax, scaled))]]


def uniform_note(rows: Sequence[EntropyRow], measurement: Measurement) -> str:
    """Return which linear attentions stay close to uniform attention and why, at the longest length measured."""
    close_names = []
    for word, line in lines_by_word(measurement).items():
        keys = by_length(rows, word, measurement, "keys")
        if line.attention.variant.family == "kernel" and keys.x:
            share = keys_share(keys.middle[-1], int(keys.x[-1]), causal=measurement.causal)
            close_names += (
                [
                    _(
                        "**{name}** (effective keys: {share} of {keys})",
                        name=line.name,
                        share=percent(share),
                        keys=every_key(causal=measurement.causal),
                    )
                ]
                if share >= MIN_EVEN_SHARE
                else []
            )
    return (
        _n(
            "{names} stays close to equal weights, because the numbers that replace softmax's exponentials differ "
            "little from key to key.",
            "{names} stay close to equal weights, because the numbers that replace softmax's exponentials differ "
            "little from key to key.",
            n=len(close_names),
            names=enumeration(close_names),
        )
        if close_names
        else ""
    )


def chart(rows: Sequence[EntropyRow], measurement: Measurement) -> tuple[list[Curve], dict[str, Any]]:
    """Return one line per variant and scaling, and the line of uniform attention."""
    measure, curves_ = measurement.options.measure, list[Curve]()
    for word, line in lines_by_word(measurement).items():
        values, colour = by_length(rows, word, measurement, measure), palette.index(line.attention.key)
        curve = values.curve(line.name, colour, dash=line.dash, band=measurement.options.band)
        end = label_with_end(line.label, values.middle, share=measure == "share")
        texts = share_texts(values, causal=measurement.causal) if (measure, word) == ("keys", REFERENCE) else ()
        curves_.append(replace(curve, label=end, hides_band=line.dash != "solid", texts=texts))
    lengths = max((curve.x for curve in curves_), key=len)  # During a run, some curves have fewer points.
    nats = [uniform_entropy(n, causal=measurement.causal) for n in lengths]
    equal_weights = {"keys": [math.exp(h) for h in nats], "entropy": [measurement.units_per_nat * h for h in nats]}.get(
        measure, [1.0] * len(lengths)
    )
    titles = {
        "keys": _("exp(entropy) = effective keys") if measurement.units_per_nat == 1 else _("effective keys"),
        "share": _("effective keys ÷ {keys}", keys=every_key(causal=measurement.causal)),
        "entropy": _("entropy H ({unit})", unit=measurement.unit),
        "normalised": _("normalised entropy H / log n"),
        "sparsity": _("evenness S (1: equal weights)"),
    }
    name = _("equal weights on {keys}", keys=every_key(causal=measurement.causal))
    end = label_with_end(name, equal_weights, share=measure == "share")
    curves_.append(replace(guide(name, lengths, equal_weights), label=end))
    axes: dict[str, Any] = {"x_title": measurement.length_title, "y_title": titles[measure], "log_x": True}
    if measure in ("normalised", "sparsity"):
        axes["top"] = MAX_SHARE
    axes |= {"log_y": measure in ("keys", "share")} | ({"percent": True, "form": ".2%"} if measure == "share" else {})
    base = next((base for line in lines_by_word(measurement).values() if (base := base_length(line.attention))), 0)
    mark = log_n_mark(base, lengths, causal=measurement.causal)
    return curves_, {**axes, "x_ticks": doublings(curves_), "mark": mark}


def share_texts(keys: Spread, *, causal: bool) -> list[str]:
    """Return the texts next to a line's points: effective keys as a share of all keys, at the first and last point."""
    if len(keys.x) < 2:
        return []
    first, last = (keys_and_share(keys.middle[i], int(keys.x[i]), causal=causal)[1] for i in (0, -1))
    # With a causal mask, the text would need a longer name for a query's keys, and would then cross the line.
    return [first if causal else _("{share} of all keys", share=first), *[""] * (len(keys.x) - 2), last]


def label_with_end(name: str, values: Sequence[float], *, share: bool = False) -> str:
    """Return the label of a line, followed by its last value if this value is known (as a percentage if ``share``)."""
    if not values or values[-1] != values[-1]:
        return name
    return _("{name}: {value}", name=name, value=(percent if share else number)(values[-1]))


def log_n_mark(base: int, lengths: Sequence[float], *, causal: bool) -> tuple[int, str] | None:
    """Return the number of keys at which log n scaling does not change softmax, with a label; None if off the axis.

    Args:
        base: the number of keys; 0 if log n scaling is not drawn.
        lengths: the measured lengths, ascending.
        causal: whether a causal mask is used.
    """
    if causal or not lengths or not lengths[0] < base < lengths[-1]:
        # Log n scaling multiplies the logits by a factor that depends on the number of keys. With a causal mask, each
        # row has its own number of keys, so there is no length at which all factors are 1.
        return None
    # On a phone, each line of this label fits into half of the chart's width.
    return base, _("at {base:,} tokens, log n<br>scaling changes nothing", base=base)


def base_length(attention: ac.Attention) -> int:
    """Return the number of keys at which log n scaling does not change softmax; 0 for other variants."""
    return getattr(attention.params, "base_length", 0) if attention.key == "softmax_log_n" else 0


def slope(values: Spread, per_nat: float) -> PowerFit | None:
    """Return the fit of entropy against log n; None for too few lengths.

    ``per_nat`` is the number of units of ``values`` in one nat.
    """
    return fit_entropy(values.x, [h / per_nat for h in values.middle])


def table(rows: Sequence[EntropyRow], measurement: Measurement) -> list[dict[str, object]]:
    """Return a row per curve: effective keys, entropies, and the slope with its spread over heads."""
    lengths = {row.n for row in rows}
    first, last = min(lengths), max(lengths)

    table_rows: list[dict[str, object]] = []
    for word, line in lines_by_word(measurement).items():
        word_rows = [row for row in rows if row.variant == word]
        entropies, keys = by_length(word_rows, word, measurement), by_length(word_rows, word, measurement, "keys")
        law = slope(entropies, measurement.units_per_nat)
        slopes = (
            slope(by_length(head, word, measurement), measurement.units_per_nat) for head in group_by_head(word_rows)
        )
        first_keys, last_keys = keys.value_at(first), keys.value_at(last)
        count, share = keys_and_share(last_keys, int(last), causal=measurement.causal) if last_keys else (None, None)
        table_rows.append(
            {
                _("variant"): line.name,
                _("effective keys, n = {n:g}", n=first): first_keys and number(first_keys),
                _("effective keys, n = {n:g}", n=last): count,
                _(
                    "effective keys as a share of {keys}, n = {n:g}", keys=every_key(causal=measurement.causal), n=last
                ): share,
                _("entropy H, n = {n:g} ({unit})", n=first, unit=measurement.unit): entropies.value_at(first),
                _("entropy H, n = {n:g} ({unit})", n=last, unit=measurement.unit): entropies.value_at(last),
                _("slope of entropy against log n"): law and law.exponent,
                _("R² of the slope"): law and law.r2,
                _("slope, quartiles over heads"): quartiles([each.exponent for each in slopes if each]),
                _("evenness S, n = {n:g}", n=last): by_length(word_rows, word, measurement, "sparsity").value_at(last),
                _("row sums"): row_sum_range(word_rows),
            }
        )
    return table_rows


def row_sum_range(rows: Sequence[EntropyRow | HomogeneityRow]) -> str:
    """Return the row sums over all measurements: one number, or a range; empty without measurements."""
    return span(min(row.row_low for row in rows), max(row.row_high for row in rows), ".3g") if rows else ""


def notes(measurement: Measurement) -> str:
    """Return how entropy is measured, including rows that are not probabilities."""
    return _(
        "- **H** is the entropy of a row of weights. It is 0 if the query attends to one key, and log n if all n "
        "weights are equal. The number of effective keys is exp H, with H in nats.\n"
        "- **Rows with negative weights, or with a sum other than 1**: H is computed from the absolute values of the "
        "weights, divided by their sum. A row of zeros has entropy 0. The column *row sums* shows the smallest and "
        "the largest row sum over all lengths.\n"
        "- The evenness **S** is the mean of |a| divided by the root mean square of a, where a are the weights of a "
        "query's allowed keys.\n"
        "- **H / log n** is the entropy of a query's row divided by the logarithm of the number of its allowed "
        "keys.\n"
        "- **Slope** is the slope of a line fitted to H in nats against log n by least squares. It is about 1 for "
        "equal weights, and 0 if H does not change with n. R² is the quality of the fit, at most 1.\n"
        "- Each head's value is the mean over its queries. Lines show the median or mean over heads and seeds, and "
        "bands show the quartiles."
    )


VIEW = View(
    experiment=entropy_length,
    heading=N_("Does attention spread over more keys as the text grows?"),
    variants=lambda measurement: list(lines_by_word(measurement)),
    arguments=lambda measurement: (list(lines_by_word(measurement)),),
    controls_in_settings=lambda measurement: EntropyOptions.measure.draw(),
    describe=describe,
    chart=chart,
    table=table,
    columns=4,
    formula=r"H_i = -\sum_j p_{ij}\log p_{ij},\qquad p_{ij} = \frac{|A_{ij}|}{\sum_l |A_{il}|}",
    notes=notes,
)


def _measurement(screen: Screen) -> Measurement:
    return make_measurement(screen.chosen, screen.options(EntropyOptions), causal=screen.shared.causal)


def _curve(screen: Screen, attention: ac.Attention) -> Spread:
    """Return a variant's entropy by length in nats, combined over heads as on the page."""
    measurement = _measurement(screen)
    if attention.key == "softmax_log_n":
        attention = attention.with_settings(base_length=measurement.options.base)
    word, longest = attention.word, measurement.longest
    tasks = entropy_length.tasks(
        measurement.source, [word], longest=longest, causal=measurement.causal, seeds=measurement.seeds
    )
    heads = measurement.select_heads(sweep_results.read_rows("entropy_length", tasks))
    return spread(((row.n, row.entropy) for row in heads), mean=measurement.uses_mean)


def _slope(screen: Screen, attention: ac.Attention) -> float | None:
    curve = _curve(screen, attention)
    fit = slope(curve, 1.0)
    return None if fit is None else fit.exponent


def _uniform_entropy(screen: Screen) -> float:
    """Return the entropy of uniform weights at the longest length measured; the mean over the queries if causal."""
    measurement = _measurement(screen)
    return uniform_entropy(measurement.longest, causal=measurement.causal)


MEASURES = {
    "last_entropy": VariantMeasure(
        N_("mean entropy of the attention rows of {name} at the longest length measured"),
        lambda screen, attention: _curve(screen, attention).middle[-1],
        unit=N_("nats"),
        high=_uniform_entropy,
        step=0.1,
        digits=2,
        tolerance=0.3,
    ),
    "slope": VariantMeasure(
        N_("slope of the entropy of {name} against log n"),
        _slope,
        low=-0.5,
        high=1.5,
        step=0.05,
        digits=2,
        tolerance=0.1,
        missing_message=N_("Measuring a slope needs at least three lengths. Use a longer input."),
    ),
}
CURVES = {
    "entropy": CurveMeasure(
        N_("entropy of the attention rows of {name} against the number of tokens"),
        lambda screen, attention: _curve(screen, attention).middle,
        positions=lambda screen, attention: measured_lengths(_measurement(screen).longest),
        x_title=N_("tokens n"),
        y_title=N_("entropy H (nats)"),
        unit=N_("nats"),
        high=_uniform_entropy,
        step=0.1,
        digits=2,
        tolerance=0.3,
    )
}
