"""The Leaks chapter of the Causal page: which outputs change when one token is replaced.

A variant leaks if an output before the replaced token changes: it uses later tokens and cannot generate text.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.token_strips import strips
from app.jobs import cached, dispatch, runs
from app.jobs.scheduler import TaskStatus
from app.matrix_board import Panel, matrix_board
from app.state.controls import Options, int_choice
from app.state.session import SharedOptions
from app.ui import chart, export, input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.finding import Finding
from app.words.i18n import N_, _, _n, enumeration, escape_markdown
from app.words.i18n import sentence as words_of
from app.words.labels import label, sentence_name, token_options
from attention_core.analysis.matrix.influence import MAX_TOKENS, ROUNDING, Influence, replaced_tokens
from attention_core.experiments.leaks import tasks
from attention_core.formatting import format_readable, percent
from attention_core.inputs.labels import number_repeats
from pages.causal.shared import export_panel

MAX_DECADES = 6
"""Largest number of decades of the colours; smaller changes have the colour of the smallest change."""
MIN_SHARE = 0.01
"""Smallest share of outputs that is written as a number."""
Influences = Mapping[ac.Attention, Influence]


class LeaksOptions(Options, prefix="c_"):
    """The options that a link to this view carries."""

    token = int_choice(20, 0, MAX_TOKENS - 1, N_("Replaced token t"), widget=st.select_slider)


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the sentence, the choice of the token, the strips, and folded up, the maps."""
    variant_picker.show(keeps_all=True)
    placeholder = st.empty()
    try:
        influences = _compute_influences(chosen, lambda standing: placeholder.caption(runs.queue_text(standing)))
    except ac.LabError as error:
        placeholder.info(escape_markdown(words_of(error)))
        return
    labels = number_repeats(chosen.qkv.names[: len(influences[SharedOptions.variants.value[0]].moved)])
    t = min(LeaksOptions.token.restrict_to(range(len(labels))), len(labels) - 1)
    LeaksOptions.token.set(t)
    finding = summary(influences, t, labels)
    headline.markdown(finding.text)
    if len(labels) > 1:
        t = LeaksOptions.token.draw(**token_options(labels))
    _strips(influences, t, labels)
    if text := [*filter(None, [finding.explanation]), *reasons(influences)]:
        st.markdown("  \n".join(text))
    lazy_expander(_("All replaced tokens"), partial(_draw_maps, influences, t, labels), key="causal.maps")
    _explain()
    _export(influences, labels, chosen)


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the maps: one head or all heads side by side, on the first tokens."""
    tokens = replaced_tokens(chosen.qkv, head=chosen.head)
    return replace(input_panel.scope(chosen), aggregation="each", tokens=tokens)


def _compute_influences(
    chosen: ChosenInput, on_status: Callable[[TaskStatus], object]
) -> dict[ac.Attention, Influence]:
    """Compute the influence maps of the chosen variants in workers, with one run per token and variant.

    Raises:
        LabError: if one of the maps could not be computed.
    """
    attentions = SharedOptions.variants.value
    task_list, influences = tasks(chosen.source, [attention.word for attention in attentions], head=chosen.head), {}
    with (
        cached.spinner(_("Computing the variants …")),
        closing(dispatch.stream("leaks", task_list, runs.on_status_change(on_status))) as outcomes,
    ):
        for attention, (_task, outcome) in zip(attentions, outcomes, strict=True):
            if isinstance(outcome, ac.LabError):
                raise outcome
            [influences[attention]] = outcome
    return influences


def summary(influences: Influences, t: int, labels: Sequence[str]) -> Finding:
    """Return which variants leak if token t is replaced."""
    if len(labels) == 1:
        return Finding(_("The input has only one token, so no later token could leak. Use a longer input."))
    token = escape_markdown(labels[t])
    if t == 0:
        return Finding(_("Token 0 “{token}” has no earlier outputs. Choose a later token.", token=token))
    changed = {a: influence.earlier_changes(t) for a, influence in influences.items()}
    leaking = [
        _("{name} (changed outputs: {moved})", name=sentence_name(a), moved=count)
        for a, count in changed.items()
        if count
    ]
    if not leaking:
        return Finding(_("**No earlier output changes if token {t} “{token}” is replaced.**", t=t, token=token))
    explanation = _(
        "A variant that leaks cannot be used unchanged to generate text, because later tokens do not exist yet."
    )
    if 1 == sum(influence.leaking_share > 0 for influence in influences.values()) < len(influences):
        [(name, count)] = [(sentence_name(a), count) for a, count in changed.items() if count]
        return Finding(_only_leak(name, count, t, token), explanation)
    return Finding(
        _n(
            "**{n} of {all} variants leaks if token {t} “{token}” is replaced: {names}.**",
            "**{n} of {all} variants leak if token {t} “{token}” is replaced: {names}.**",
            n=len(leaking),
            all=len(changed),
            t=t,
            token=token,
            names=enumeration(leaking),
        ),
        explanation,
    )


def _only_leak(name: str, count: int, t: int, token: str) -> str:
    """Return a sentence about the only variant that leaks: ``count`` of the ``t`` outputs before token t change."""
    if count < t:
        return _(
            "**Only {name} leaks: if token {t} “{token}” is replaced, {count} of {t} earlier outputs change.**",
            name=name,
            t=t,
            token=token,
            count=count,
        )
    return _n(
        "**Only {name} leaks: if token {t} “{token}” is replaced, the only earlier output changes.**",
        "**Only {name} leaks: if token {t} “{token}” is replaced, all {n} earlier outputs change.**",
        n=count,
        name=name,
        t=t,
        token=token,
    )


def share(leaking: float) -> str:
    """Return a share of outputs above 0 in per cent; it is rounded neither to 0% nor, below 1, to 100%."""
    if leaking < MIN_SHARE:
        return _("under {least:.0%}", least=MIN_SHARE)
    return percent(leaking) if leaking > 1 - MIN_SHARE else f"{leaking:.0%}"


def _strips(influences: Influences, t: int, labels: tuple[str, ...]) -> None:
    rows = {}
    for attention, influence in influences.items():
        rows[f"<b>{label(attention)}</b>{changed_outputs(influence.earlier_changes(t), t)}"] = influence.moved[t]
    st.caption(
        _(
            "Orange: an output before token t changes (a leak). Blue: an output from token t on changes. Grey: "
            "unchanged."
        )
    )
    figure = strips(
        rows,
        t,
        labels,
        span=colour_span([influence.moved for influence in influences.values()]),
        narrow=chart.is_narrow(),
        dark=st.context.theme.type == "dark",
        x_title=_("output position"),
        still=_("unchanged"),
        scale_titles=(_("change before t"), _("change from t on")),
    )
    chart.show(
        figure,
        key="causal.strips",
        name="leak",
        alt=_("Strips, one per variant: the change of each output when token {t} is replaced", t=t),
    )


def colour_span(maps: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the changes at both ends of the board's logarithmic colours, which span at most six decades.

    Args:
        maps: influence maps, ``[n, n]``.
    """
    changes = np.concatenate([each[each > 0] for each in maps])
    if not len(changes):
        return 0.1, 1.0
    highest = math.ceil(math.log10(changes.max()))
    lowest = math.floor(math.log10(changes.min()))
    return 10.0 ** min(highest - 1, max(highest - MAX_DECADES, lowest)), float(changes.max())


def changed_outputs(count: int, t: int) -> str:
    """Return in words that ``count`` of the ``t`` outputs before token t change; short for phones, empty for none."""
    return " · " + _("leaks: {count} of {n} before t", count=count, n=t) if count else ""


def reasons(influences: Influences) -> list[str]:
    """Return why the variants without a causal form can leak."""
    return [
        _("**{name}** can leak: {reason}", name=sentence_name(a), reason=_(a.variant.causal_reason))
        for a in influences
        if a.variant.causal_reason
    ]


def _draw_maps(influences: Influences, t: int, labels: tuple[str, ...]) -> None:
    """Draw a map per variant: each row has the changes of the outputs when one token is replaced."""
    st.caption(
        _(
            "Cells left of the diagonal are earlier outputs, so a change there is a leak (orange). Unchanged outputs "
            "are hatched. Click a row to replace its token in the strips above."
        )
    )
    panels = [
        Panel(
            attention.key,
            label(attention),
            _("leaks: {share} of earlier outputs change", share=share(influence.leaking_share))
            if influence.leaking_share
            else "",
            signed_changes(influence.moved),
        )
        for attention, influence in influences.items()
    ]
    matrix_board(
        panels,
        labels=labels,
        key="causal.leaks",
        transform="log",
        unsigned=True,
        pinned=t,
        on_pin=_set_token,
        unit=_("change ÷ RMS of all outputs"),
        masked=_("unchanged"),
        row_title=_("replaced token t"),
        col_title=_("output that changes"),
        row_name=_("replaced token"),
        col_name=_("output"),
        panel_size=380,
        file_name="leaks",
    )


def signed_changes(moved: np.ndarray) -> np.ndarray:
    """Return the values of a map for the board: NaN for no change, and negative for leaks, which are then orange."""
    return np.where(moved > 0, np.where(np.tri(len(moved), k=-1, dtype=bool), -moved, moved), np.nan)


def _set_token(row: int | None) -> None:
    if row is not None:
        LeaksOptions.token.set(row)


def _explain() -> None:
    export.draw_formula(
        _("Method"),
        r"\text{moved}_{t,i} = \frac{\lVert o_i^{(t)} - o_i \rVert}"
        r"{\sqrt{\tfrac1n\sum_l \lVert o_l\rVert^2}},\qquad "
        r"o^{(t)}:\; q_t, k_t, v_t \text{ replaced}",
        _(
            "- For each token t, the query, key and value are replaced by random vectors with the same root "
            "mean square and a fixed seed. The variant then runs again, in its causal form if it has one.\n"
            "- Changes are divided by the root mean square (RMS) of all outputs. If all heads are selected, their "
            "outputs are concatenated.\n"
            "- Changes below {rounding} are treated as rounding errors and shown as hatched cells. In float64, "
            "rounding errors are about {found}.\n"
            "- The test covers only one attention operation. In a bidirectional model, the queries, keys and "
            "values already contain information from later words.",
            rounding=format_readable(ROUNDING, None),
            found=format_readable(1e-16, None),
        ),
        key="causal.method",
    )


def _export(influences: Influences, labels: tuple[str, ...], chosen: ChosenInput) -> None:
    header = (_("variant"), "t", _("replaced token"), "i", _("output"), _("change"))
    words = {attention.word: influence.moved for attention, influence in influences.items()}
    export_panel(
        [
            (_("Maps (CSV)"), lambda: export.to_csv(header, export.matrix_rows(words, labels)), "leaks.csv"),
            (
                _("Maps (NPZ)"),
                lambda: export.to_npz({a.key: influence.moved for a, influence in influences.items()}),
                "leaks.npz",
            ),
        ],
        "import attention_core as ac\nfrom attention_core.analysis.matrix.influence import influence\n\n"
        f"qkv = {chosen.source.code}.load()\n"
        f"for word in {list(words)!r}:\n"
        f"    found = influence(qkv, ac.from_word(word), head={chosen.head})\n"
        "    print(word, found.moved.round(3))  # row: replaced token, column: output\n",
    )
