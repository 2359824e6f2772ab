"""The Training chapter of the Causal page: algorithms for the causal output of linear attention, and their costs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.jobs import runs
from app.state.controls import Options, choice, selection
from app.state.session import SharedOptions
from app.ui import export, input_panel
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, escape_markdown, paragraph
from app.words.labels import label, sentence_name
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_gradient import COMPARED_TOKENS
from attention_core.experiments.causal_modes import DTYPES, MATRIX, MAX_COMPARED_TOKENS, AgreementRow, CostRow
from attention_core.formatting import MIB, at_most, format_interpolated, number
from attention_core.limits import current
from attention_core.ops.linear.causal_scan import CHUNK
from pages.causal import gradient
from pages.causal.cost_chart import ALGORITHM_NAMES, HEIGHT, cumsum_crossing, over_length, show_costs
from pages.causal.shared import bold, with_settings


def head_sizes() -> list[int]:
    """Return the head sizes d for which some measured lengths exceed n = d²."""
    return [d for d in (8, 16, 32, 64) if 2 * d * d <= current().timed_tokens]


def cumsum_variants() -> list[str]:
    """Return the keys of the variants that have a cumsum form, linear attention first."""
    keys = [v.key for v in ac.all_variants() if "cumsum" in causal_modes.modes(v)]
    return sorted(keys, key=lambda key: key != "linear")


class TrainingOptions(Options, prefix="c_"):
    """The options that a link to this chapter carries."""

    size = choice(lambda: {d: str(d) for d in head_sizes()}, N_("Head size d"), default=16)
    counted = selection(
        lambda: {key: _(ac.variant(key).title) for key in cumsum_variants()}, N_("Variant"), link="c_form"
    )


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the memory of the gradient, and folded up, the costs and outputs of the forward pass and the formulas."""
    gradients = gradient.show(chosen, headline)
    lazy_expander(_("Forward pass"), partial(_show_forward_pass, chosen), key="causal.forward")
    _explain()
    if gradients:
        export.download(_("Gradient (CSV)"), lambda: export.rows_to_csv(gradients), "causal-gradient.csv")


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the gradients' comparison: one head or all heads, on at most ``COMPARED_TOKENS`` tokens."""
    words = tuple(attention.word for attention in _compared_attentions())
    tokens = min(chosen.qkv.n, COMPARED_TOKENS)
    result = replace(input_panel.scope(chosen), aggregation="each", tokens=tokens, variants=words)
    text = _(
        "Costs on random inputs · gradients compared on {input}", input=input_panel.headline(chosen.source, result)
    )
    return replace(result, subtitle=text)


def _compared_attentions() -> list[ac.Attention]:
    """Return the variants whose algorithms are compared, with the visitor's settings."""
    return with_settings(v for v in ac.all_variants() if causal_modes.modes(v))


def _show_forward_pass(chosen: ChosenInput) -> None:
    """Compare the algorithms of every variant, count the costs of one, and draw both."""
    st.caption(
        _(
            "The recurrent form processes one token at a time, and the chunked form processes blocks of tokens. Only "
            "the multiply-adds of matrix products are counted."
        )
    )
    with st.container(horizontal=True, vertical_alignment="top"):
        TrainingOptions.counted.draw(width=180)
        TrainingOptions.size.draw()
    attentions, options = _compared_attentions(), TrainingOptions.current()
    counted = next(a for a in attentions if a.key == options.counted)
    tasks = causal_modes.tasks(
        chosen.source, [a.word for a in attentions], head=chosen.head, word=counted.word, d=options.size
    )

    def draw(rows: list[AgreementRow | CostRow], key: str) -> None:
        if costs := [row for row in rows if isinstance(row, CostRow)]:
            memory, work = over_length(costs, "peak_bytes", MIB), over_length(costs, "multiply_adds")
            left, right = st.columns(2)
            with left:
                st.markdown("## " + _("Forward memory at head size {d}", d=options.size), anchors=False)
                show_costs(memory, _("memory without q, k, v (MiB)"), f"{key}.memory", marks_crossing=True)
            with right:
                st.markdown("## " + _("Forward multiply-adds at head size {d}", d=options.size), anchors=False)
                show_costs(work, _("multiply-adds"), f"{key}.work")

    rows = runs.run_immediately(
        "causal_modes", tasks, draw, key="causal.algorithms", effort=task_milliseconds, height=HEIGHT
    )
    st.markdown(forward_text(rows, sentence_name(counted)))
    selected = {attention.key for attention in SharedOptions.variants.value}
    without_states = [
        label(a) for a in attentions if a.key in selected and "cumsum" not in causal_modes.modes(a.variant)
    ]
    st.caption(notes(chosen.qkv.n, rows, without_states))
    if rows:
        export.download(_("Algorithms (CSV)"), lambda: export.rows_to_csv(rows), "causal-algorithms.csv")


def task_milliseconds(task: causal_modes.AgreementTask | causal_modes.CostTask) -> float:
    """Return the estimated milliseconds of a task.

    A cost task takes 0.5 ms per token in the recurrent mode; in the other modes, its time grows with n² and n d². An
    agreement task takes 100 ms.
    """
    if isinstance(task, causal_modes.CostTask):
        return 0.5 * task.n if task.algorithm == "recurrent" else 5 + task.n**2 / 2e5 + task.n * task.d**2 / 1e5
    return 100.0


def forward_text(rows: Sequence[AgreementRow | CostRow], name: str) -> str:
    """Return the length above which storing every state needs less memory than the matrix, and why chunks are used."""
    costs = [row for row in rows if isinstance(row, CostRow)]
    if not {"cumsum", MATRIX} <= {row.algorithm for row in costs}:
        return ""
    values = {"name": escape_markdown(name), "d": costs[0].d}
    crossing_point = cumsum_crossing(over_length(costs, "peak_bytes"))
    if crossing_point is None:
        crossing_text = _(
            "In the forward pass of {name} at head size {d}, storing every state takes more memory than the explicit "
            "matrix up to n = {last:,} tokens.",
            last=max(row.n for row in costs),
            **values,
        )
    elif crossing_point[0] <= min(row.n for row in costs):
        crossing_text = _(
            "In the forward pass of {name} at head size {d}, storing every state takes less memory than the explicit "
            "matrix at every length shown.",
            **values,
        )
    else:
        crossing_text = _(
            "In the forward pass of {name} at head size {d}, storing every state takes less memory than the explicit "
            "matrix above n ≈ {at} tokens (ring).",
            at=format_interpolated(crossing_point[0]),
            **values,
        )
    explanation = _("The explicit n × n matrix has n² numbers, and each of the n states has a fixed size.")
    return paragraph(crossing_text, explanation, _reason_for_chunks(costs))


def _reason_for_chunks(costs: Sequence[CostRow]) -> str:
    """Return why training uses the chunked form although the recurrent form needs less work; empty if it needs more."""
    work = {each: {row.n: row.multiply_adds for row in costs if row.algorithm == each} for each in ALGORITHM_NAMES}
    n = max(work["chunked"].keys() & work["recurrent"].keys(), default=None)
    if n is None or work["chunked"][n] <= work["recurrent"][n]:
        return ""
    return _(
        "At {n:,} tokens, the chunked form needs {ratio} times as many multiply-adds as the recurrent form. Training "
        "still uses chunks, because all tokens of a chunk are computed in parallel.",
        n=n,
        ratio=number(work["chunked"][n] / work["recurrent"][n], 2),
    )


def notes(n: int, rows: Sequence[AgreementRow | CostRow], without_states: Sequence[str]) -> str:
    """Return sentences about the difference between the algorithms' outputs, and about variants that lack one."""
    single, double = (
        at_most(max((r.difference for r in rows if isinstance(r, AgreementRow) and r.dtype == name), default=0.0))
        for name in DTYPES
    )
    return paragraph(
        _(
            "The outputs of the algorithms differ by at most {single} of the largest output in float32 and by at most "
            "{double} in float64.",
            single=single,
            double=double,
        ),
        _("Differences are measured on the first {most} of {n} tokens.", most=MAX_COMPARED_TOKENS, n=n)
        if n > MAX_COMPARED_TOKENS
        else "",
        _(
            "Not shown with a state after every token: {names}. The lab computes their features for a whole chunk of "
            "tokens together.",
            names=bold(without_states),
        )
        if without_states
        else "",
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
                "- **recurrent** computes $S_i = S_{{i-1}} + \\varphi(k_i)v_i^\\top$ one token at a time. It stores "
                "one state of $C d_v$ numbers and cannot run in parallel. Text generation, which adds one token at a "
                "time, uses this form.\n"
                "- **state after every token** computes all $n$ states with one cumulative sum. It runs in parallel "
                "but stores $n\\,C\\,d_v$ numbers. The explicit matrix has $n^2$ numbers. With $C = d_v = d$, storing "
                "every state therefore needs less memory if n is greater than about $d^2$.\n"
                "- **chunked** computes the explicit product within chunks of {chunk} tokens and passes the state from "
                "chunk to chunk. It runs in parallel and stores only one state.",
                chunk=CHUNK,
            )
        )
        st.markdown(
            _(
                "In the formula above, output i is a fraction. Let $G_i$ be the gradient of the loss with respect to "
                "its numerator. The gradients of query features, key features and values follow from $G_i$ and sums "
                "over tokens:"
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
                "The forward pass and the backward pass each update a single state, one token at a time, so they need "
                "not store all n states. To compute the normaliser (the denominator of an output), a column of ones is "
                "appended to the values. Source: Katharopoulos et al. 2020, [arXiv "
                "2006.16236](https://arxiv.org/abs/2006.16236)."
            )
        )

    lazy_expander(_("Formulas"), draw, key="causal.method")
