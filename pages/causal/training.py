"""The Training chapter: three causal algorithms with one answer, what they cost, and what their gradient keeps."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

import attention_core as ac
from app.figures.lines.curves import Curve
from app.figures.theme import GREY
from app.jobs import runs
from app.state.controls import Options, choice, selection
from app.ui import chart, export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, paragraph
from app.words.labels import label
from attention_core.experiments import causal_gradient, causal_modes
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesRow, BytesTask, DifferenceRow, DifferenceTask
from attention_core.experiments.causal_modes import AGREED, DTYPES, MATRIX, AgreementRow, CostRow
from attention_core.formatting import MIB, at_most, format_interpolated, formatted, memory
from attention_core.limits import current
from attention_core.ops.linear.causal_scan import CHUNK
from pages.causal.shared import bold, show_lines, with_settings

HEIGHT = 380
REPORTED = 512
"""Largest length, in tokens, that the sentence on gradients reports, or the longest measured length below it."""
FORMS = {"chunked": N_("chunked"), "recurrent": N_("recurrent"), "cumsum": N_("cumsum"), MATRIX: N_("explicit matrix")}
"""Names of the forms on screen."""
COLOURS = {"chunked": 4, "recurrent": 2, "cumsum": 5, MATRIX: GREY}
"""Colours of the forms: indices into the palette, or a colour."""
WAYS = {SUMS: N_("running sums"), STATES: N_("autograd, all states"), MATRIX: N_("autograd, explicit matrix")}
"""Names on screen of the ways to compute the gradient."""
Points = Mapping[str, Sequence[tuple[float, float]]]


def sizes() -> list[int]:
    """Return the head sizes d for which lengths beyond n = d² are still measured."""
    return [d for d in (8, 16, 32, 64) if 2 * d * d <= current().timed_tokens]


def summable() -> list[str]:
    """Return the keys of the variants that have a cumsum form, linear attention first."""
    keys = [v.key for v in ac.all_variants() if "cumsum" in causal_modes.forms(v)]
    return sorted(keys, key=lambda key: key != "linear")


class TrainingOptions(Options, prefix="c_"):
    """The options that a link to this chapter carries."""

    size = choice(lambda: {d: str(d) for d in sizes()}, N_("Head size d"), default=16)
    counted = selection(lambda: {key: _(ac.variant(key).title) for key in summable()}, N_("Variant"), link="c_form")


def show(chosen: ChosenInput) -> None:
    """Draw the options, the costs and answers of the algorithms, and the memory of the gradient."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        TrainingOptions.counted.draw(width=180)
        TrainingOptions.size.draw()
    rows = [*_algorithms(chosen), *_gradient(chosen)]
    _explain()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chart.choose_format()
        for title, kinds, name in (
            (_("Algorithms (CSV)"), AgreementRow | CostRow, "causal-algorithms.csv"),
            (_("Gradient (CSV)"), BytesRow | DifferenceRow, "causal-gradient.csv"),
        ):
            if own := [row for row in rows if isinstance(row, kinds)]:
                export.download(title, lambda own=own: export.csv_of(own), name)  # type: ignore[misc]


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the comparison: one head or all heads, on at most ``AGREED`` tokens."""
    words = tuple(attention.word for attention in _compared())
    return replace(input_panel.scope(chosen), aggregation="each", tokens=min(chosen.qkv.n, AGREED), variants=words)


def _compared() -> list[ac.Attention]:
    """Return the variants whose algorithms are compared, with the visitor's settings."""
    return with_settings(v for v in ac.all_variants() if causal_modes.forms(v))


def _algorithms(chosen: ChosenInput) -> list[AgreementRow | CostRow]:
    """Compare the algorithms of every variant, count the costs of one, and draw both."""
    attentions, options = _compared(), TrainingOptions.now()
    counted = next(a for a in attentions if a.key == options.counted)
    tasks = causal_modes.tasks(
        chosen.source, [a.word for a in attentions], head=chosen.head, word=counted.word, d=options.size
    )

    def draw(rows: list[AgreementRow | CostRow], key: str) -> None:
        agreed = [row for row in rows if isinstance(row, AgreementRow)]
        costs = [row for row in rows if isinstance(row, CostRow)]
        if costs:
            mark = costs[0].d ** 2
            st.markdown("## " + _("Peak memory, one head"), anchors=False)
            _chart(over_length(costs, "peak_bytes", MIB), _("MiB beyond q, k and v"), f"{key}.memory", "memory", mark)
            st.markdown("## " + _("Multiply-adds, one head"), anchors=False)
            _chart(over_length(costs, "multiply_adds"), _("multiply-adds"), f"{key}.work", "work", mark)
            st.markdown("## " + _("Difference of the outputs, float32 · float64"), anchors=False)
            st.dataframe(differences(attentions, agreed), hide_index=True, key=f"{key}.table")

    def describe(rows: list[AgreementRow | CostRow]) -> str:
        return sentence(chosen.qkv.n, rows, label(counted))

    rows = runs.run_immediately(
        "causal_modes", tasks, draw, key="causal.algorithms", effort=effort, describe=describe, height=2 * HEIGHT
    )
    without = [label(a) for a in attentions if "cumsum" not in causal_modes.forms(a.variant)]
    st.caption(notes(chosen.qkv.n, without))
    return rows


def effort(task: causal_modes.AgreementTask | causal_modes.CostTask) -> float:
    """Return the approximate milliseconds of a task: 0.5 per counted step, a few nanoseconds per pair of tokens."""
    if isinstance(task, causal_modes.CostTask):
        return 0.5 * task.n if task.way == "recurrent" else 5 + task.n**2 / 2e5 + task.n * task.d**2 / 1e5
    return 100.0


def over_length(rows: Sequence[CostRow], measure: str, unit: float = 1.0) -> dict[str, list[tuple[float, float]]]:
    """Return a measure as a function of the length, by form."""
    found = {way: [(float(row.n), getattr(row, measure) / unit) for row in rows if row.way == way] for way in FORMS}
    return {way: points for way, points in found.items() if points}


def crossing(found: Points) -> tuple[float, float] | None:
    """Return the length from which cumsum costs less than the explicit matrix, and the cost there; None if unknown."""
    return causal_modes.crossing(found.get("cumsum", ()), found.get(MATRIX, ()))


def sentence(n: int, rows: Sequence[AgreementRow | CostRow], name: str) -> str:
    """Return how far the outputs differ, and from which length cumsum needs less memory than the explicit matrix.

    Args:
        n: tokens of the input.
        rows: differences between the outputs of the algorithms, and counted costs of the forms of one variant.
        name: name of the variant.
    """
    agreed = [row for row in rows if isinstance(row, AgreementRow)]
    costs = [row for row in rows if isinstance(row, CostRow)]
    single, double = (
        at_most(max((row.difference for row in agreed if row.dtype == name), default=0.0)) for name in DTYPES
    )
    length = causal_modes.compared_length(n)
    values = {"n": length, "given": n, "single": single, "double": double}
    text = paragraph(
        _("All algorithms give the **same output** on these {given} tokens, repeated to a length of {n}.", **values)
        if n < length
        else _("All algorithms give the **same output** on {n} tokens.", **values),
        _(
            "Outputs differ by at most {single} of the largest output in float32 and by at most {double} in float64.",
            **values,
        ),
    )
    if not costs:
        return text
    at, values = crossing(over_length(costs, "peak_bytes")), {"name": bold([name]), "square": costs[0].d ** 2}
    if at is None:
        last = max(row.n for row in costs)
        pays = _(
            "For {name}, storing all states (cumsum) takes more memory than the explicit matrix up to n = "
            "{last:,} tokens. For comparison, d² is {square:,}.",
            last=last,
            **values,
        )
    else:
        pays = _(
            "For {name}, storing all states (cumsum) takes less memory than the explicit matrix for more than "
            "**n ≈ {at}** tokens. For comparison, d² is {square:,}.",
            at=format_interpolated(at[0]),
            **values,
        )
    return paragraph(text, pays)


def _chart(found: Points, unit: str, key: str, name: str, mark: float | None = None) -> None:
    names = FORMS if mark else WAYS
    lines = [
        Curve(
            _(names[way]),
            [n for n, _cost in points],
            [cost for _n, cost in points],
            colour=COLOURS[way],
            dash="dash" if way == MATRIX else "solid",
        )
        for way, points in found.items()
    ]
    ticks = sorted({x for line in lines for x in line.x})
    if mark and (at := crossing(found)) is not None and at[0] > ticks[0]:
        title = _("cumsum is lower above n ≈ {n}", n=format_interpolated(at[0]))
        lines.append(Curve(title, [at[0]], [at[1]], colour=COLOURS["cumsum"], hollow=True))
    show_lines(
        lines,
        key=key,
        name=f"causal-{name}",
        alt=_("Lines: {unit} of each algorithm against the number of tokens", unit=unit),
        x_title=_("tokens n"),
        y_title=unit,
        log_x=True,
        log_y=True,
        mark=mark and (mark, "n = d²"),
        x_ticks=ticks,
        height=HEIGHT,
    )


def differences(attentions: Sequence[ac.Attention], agreed: Sequence[AgreementRow]) -> list[dict[str, str]]:
    """Return the differences of each variant: between each pair of algorithms, and the largest one from the matrix."""
    forms = [way for way in FORMS if way != MATRIX]
    pairs: dict[str, tuple[tuple[str, str], ...]] = {
        f"{_(FORMS[a])} − {_(FORMS[b])}": ((a, b),) for a, b in itertools.combinations(forms, 2)
    }
    pairs |= {_("from the matrix"): tuple((way, MATRIX) for way in forms)}
    found = {(row.variant, row.dtype, (row.a, row.b)): row.difference for row in agreed}
    shown = []
    for attention in attentions:
        row = {_("Variant"): label(attention)}
        for title, those in pairs.items():
            worst = [
                max((found[at] for pair in those if (at := (attention.word, dtype, pair)) in found), default=None)
                for dtype in DTYPES
            ]
            row[title] = " · ".join(formatted(value, ".1e") for value in worst if value is not None) or "—"
        shown.append(row)
    return shown


def notes(n: int, without: Sequence[str]) -> str:
    """Return the notes on what is compared and counted.

    Args:
        n: tokens of the input.
        without: names of the variants that have no cumsum form.
    """
    return paragraph(
        _("Differences are relative to the largest output."),
        _("These differences are measured on the first {most} of {n} tokens.", most=AGREED, n=n) if n > AGREED else "",
        _(
            "{names} have no cumsum form (shown as —), because their features are computed chunk by chunk.",
            names=bold(without),
        ),
        _(
            "Costs are counted on random queries, keys and values of the same size d. Only the "
            "multiply-adds of matrix products are counted."
        ),
    )


def _gradient(chosen: ChosenInput) -> list[BytesRow | DifferenceRow]:
    """Count the memory of the gradient of linear attention in three ways, and draw it."""
    [attention] = with_settings([ac.variant("linear")])
    d, d_v = chosen.qkv.q.shape[-1], chosen.qkv.v.shape[-1]
    tasks = causal_gradient.tasks(chosen.source, d=d, d_v=d_v, head=chosen.head, word=attention.word)
    st.markdown("## " + _("Peak memory of forward and backward, one head"), anchors=False)

    def draw(rows: list[BytesRow | DifferenceRow], key: str) -> None:
        counted = [row for row in rows if isinstance(row, BytesRow)]
        if counted:
            points = {way: [(float(row.n), row.peak_bytes / MIB) for row in counted if row.way == way] for way in WAYS}
            known = {way: found for way, found in points.items() if found}
            _chart(known, _("MiB beyond q, k and v"), f"{key}.memory", "gradient")

    def describe(rows: list[BytesRow | DifferenceRow]) -> str:
        return gradient_sentence(rows, label(attention))

    rows = runs.run_immediately(
        "causal_gradient", tasks, draw, key="causal.gradient", effort=_gradient_effort, describe=describe, height=HEIGHT
    )
    st.caption(
        _(
            "Memory is counted for one head of size d = {d}. Gradients are compared on the first {n} "
            "tokens of this input.",
            d=d,
            n=min(chosen.qkv.n, causal_gradient.COMPARED),
        )
    )
    return rows


def _gradient_effort(task: BytesTask | DifferenceTask) -> float:
    return 100.0 + (task.n * task.d**2 / 5e3 if isinstance(task, BytesTask) else 0.0)


def gradient_sentence(rows: Sequence[BytesRow | DifferenceRow], name: str) -> str:
    """Return the memory of the three ways at one length, and the largest difference of the gradients, if known.

    Args:
        rows: counted memory, in increasing order of length, and differences of the gradients, of any dtype.
        name: name of the variant.
    """
    counted = [row for row in rows if isinstance(row, BytesRow)]
    apart = [row for row in rows if isinstance(row, DifferenceRow)]
    single = max((row.difference for row in apart if row.dtype == "float32"), default=None)
    sums, states, matrix = ({row.n: row.peak_bytes for row in counted if row.way == way} for way in WAYS)
    n = max((n for n in matrix if n <= REPORTED), default=None)
    same = (
        _("The gradients differ by at most {most} of the largest gradient.", most=at_most(single))
        if single is not None
        else ""
    )
    if n is None:
        return same
    return paragraph(
        _(
            "For the gradient of {name} at {n} tokens, running sums need **{sums}**. Autograd through all "
            "states needs {states}, which is {factor:.0f}× as much.",
            name=bold([name]),
            n=n,
            sums=memory(sums[n]),
            factor=states[n] / sums[n],
            states=memory(states[n]),
        ),
        _("Autograd through the explicit matrix needs {matrix}.", matrix=memory(matrix[n])),
        same,
    )


def _explain() -> None:
    def draw() -> None:
        st.latex(
            r"o_i = \frac{\varphi(q_i)^\top S_i}{\varphi(q_i)^\top z_i},\quad "
            r"S_i = \sum_{j\le i}\varphi(k_j)v_j^\top,\quad z_i = \sum_{j\le i}\varphi(k_j)"
        )
        st.markdown(
            _(
                "$C$ is the number of features, $d$ is the size of a key, and $d_v$ is the size of a value.\n\n"
                "- **recurrent** computes $S_i = S_{{i-1}} + \\varphi(k_i)v_i^\\top$ one token at a time. It "
                "stores one state of $C d_v$ numbers and cannot run in parallel. The decoder uses this form.\n"
                "- **cumsum** computes all $n$ states with one cumulative sum. It runs in parallel but stores "
                "$n\\,C\\,d_v$ numbers. The explicit matrix has $n^2$ numbers. With $C = d_v = d$, cumsum "
                "therefore needs less memory if $n > d^2$.\n"
                "- **chunked** computes the explicit product within chunks of {chunk} tokens and passes the "
                "state from chunk to chunk. It runs in parallel and stores only one state.",
                chunk=CHUNK,
            )
        )
        st.markdown(
            _(
                "Let $G_i$ be the gradient with respect to the numerator of output i. The gradients of query "
                "features, key features and values follow from $G_i$ by running sums:"
            )
        )
        st.latex(
            r"\begin{aligned}"
            r"\nabla\varphi(q_i) &= \Big(\textstyle\sum_{j\le i}\varphi(k_j)\,v_j^\top\Big) G_i"
            r" &&\text{forward: the states of attention itself}\;\\"
            r"\nabla\varphi(k_j) &= \Big(\textstyle\sum_{i\ge j}\varphi(q_i)\,G_i^\top\Big) v_j"
            r" &&\text{backward from the last token}\\"
            r"\nabla v_j &= \Big(\textstyle\sum_{i\ge j}\varphi(q_i)\,G_i^\top\Big)^{\!\top} \varphi(k_j)"
            r" &&\text{the same sum}"
            r"\end{aligned}"
        )
        st.markdown(
            _(
                "One state in the forward pass and one state in the backward pass replace all n states. The "
                "normaliser is computed as an additional column of values, all equal to one. Source: "
                "Katharopoulos et al. 2020, [arXiv 2006.16236](https://arxiv.org/abs/2006.16236)."
            )
        )

    lazy_expander(_("Formulas"), draw, key="causal.method", icon=":material/function:")
