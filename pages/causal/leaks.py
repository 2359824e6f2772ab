"""The Leaks view: the outputs that change when one token is replaced, which shows whether a variant is causal."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import streamlit as st

import attention_core as ac
from app.figures.strips import Strip, strips
from app.jobs import cached, dispatch, runs
from app.jobs.scheduler import TaskStatus
from app.matrix_board import BoardEvent, Panel, matrix_board
from app.state.controls import Options, listed_whole
from app.state.session import SharedOptions
from app.ui import chart, export, input_panel, variant_picker
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n, escape_markdown, paragraph
from app.words.i18n import sentence as words_of
from app.words.labels import label, tokens
from attention_core.analysis.matrix.influence import MOST, ROUNDING, Influence, replaced_tokens
from attention_core.experiments.leaks import tasks
from attention_core.formatting import format_readable
from attention_core.inputs.labels import number_repeats

Leaks = Mapping[ac.Attention, Influence]


class LeaksOptions(Options, prefix="c_"):
    """The options that a link to this view carries."""

    token = listed_whole(
        20,
        0,
        MOST - 1,
        N_("Token t, replaced"),
        widget=st.select_slider,
        help=N_("A click on a row of a map below picks its token too."),
    )


def show(chosen: ChosenInput) -> None:
    """Draw the sentence, the choice of the token, the strips and the maps."""
    variant_picker.show(all_stay=True)
    place = st.empty()
    try:
        found = _found(chosen, lambda standing: place.caption(runs.queue_text(standing)))
    except ac.LabError as error:
        place.info(escape_markdown(words_of(error)))
        return
    labels = number_repeats(chosen.qkv.tokens[: len(found[SharedOptions.variants.value[0]].moved)])
    t = min(LeaksOptions.token.restrict_to(range(len(labels))), len(labels) - 1)
    LeaksOptions.token.set(t)
    st.markdown(sentence(found, t, labels))
    if len(labels) > 1:
        left, right = st.columns([8, 2], vertical_alignment="bottom")
        with left:
            t = LeaksOptions.token.draw(**tokens(labels))
        with right:
            chart.choose_format()
    _strips(found, t, labels)
    if why := reasons(found):
        st.caption("  \n".join(why))
    _board(found, t, labels)
    st.caption(notes(len(labels), chosen.qkv.n, every_head=chosen.head is None))
    _explain()
    _take_away(found, labels, chosen)


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the maps: one head or all heads side by side, on the first tokens."""
    tokens = replaced_tokens(chosen.qkv, head=chosen.head)
    return replace(input_panel.scope(chosen), aggregation="each", tokens=tokens)


def _found(chosen: ChosenInput, waiting: Callable[[TaskStatus], object]) -> dict[ac.Attention, Influence]:
    """Compute the influence maps of the chosen variants in workers, with one run per token and variant.

    Raises:
        LabError: if one of the maps could not be computed.
    """
    shown = SharedOptions.variants.value
    asked, found = tasks(chosen.source, [attention.word for attention in shown], head=chosen.head), {}
    with (
        cached.spinner(_("Computing the variants …")),
        closing(dispatch.stream("leaks", asked, runs.on_status_change(waiting))) as outcomes,
    ):
        for attention, (_task, outcome) in zip(shown, outcomes, strict=True):
            if isinstance(outcome, ac.LabError):
                raise outcome
            [found[attention]] = outcome
    return found


def sentence(found: Leaks, t: int, labels: Sequence[str]) -> str:
    """Return which variants leak when token t is replaced; for the first token, which variants leak at all.

    Args:
        found: influence map of each variant.
        t: index of the replaced token.
        labels: labels of the tokens.
    """
    if len(labels) == 1:
        return _("There is one token, so there is no future that could leak. Give more of them.")
    token = escape_markdown(labels[t])
    if t == 0:
        words = _("Token 0 “{token}” has nothing before it; take a later one to see who leaks.", token=token)
        leaking = [
            _("{name} ({share:.0%})", name=label(a), share=leak.share) for a, leak in found.items() if leak.share
        ]
        if not leaking:
            return words
        return paragraph(words, _("Over all tokens earlier outputs move in **{names}**.", names=", ".join(leaking)))
    moved = {a: leak.before(t) for a, leak in found.items()}
    leaking = [_("{name} ({moved} move)", name=label(a), moved=count) for a, count in moved.items() if count]
    tight = ", ".join(label(a) for a, count in moved.items() if not count)
    return paragraph(
        _("Replace token {t} “{token}”, which has {t} outputs before it.", t=t, token=token),
        _("**Leak:** {names}.", names=", ".join(leaking)) if leaking else "",
        _("**No earlier output moves:** {names}.", names=tight) if tight else "",
    )


def _strips(found: Leaks, t: int, labels: tuple[str, ...]) -> None:
    rows = []
    for attention, leak in found.items():
        text = moved_before(leak.before(t), t)
        rows.append(Strip(title=f"<b>{label(attention)}</b> · {text}", sizes=leak.moved[t]))
    figure = strips(
        rows,
        t,
        labels,
        dark=st.context.theme.type == "dark",
        x_title=_("output position"),
        before=_("move before t: a leak"),
        after=_("move from t on"),
        still=_("does not move"),
    )
    chart.show(
        figure,
        key="causal.strips",
        name="leak",
        alt=_("One strip per variant: how far each output moves when token {t} is replaced", t=t),
    )


def moved_before(count: int, t: int) -> str:
    """Return how many of the ``t`` outputs before a token move when the token is replaced."""
    if not count:
        return _("no output before it moves")
    return _n(
        "leaks: the only output before it moves", "leaks: {count} of {n} outputs before it move", n=t, count=count
    )


def reasons(found: Leaks) -> list[str]:
    """Return why the variants without a causal form leak."""
    return [
        _(":material/water_drop: **{name}** leaks: {reason}", name=label(a), reason=_(a.variant.causal_reason))
        for a in found
        if a.variant.causal_reason
    ]


def _board(found: Leaks, t: int, labels: tuple[str, ...]) -> None:
    panels = [
        Panel(
            attention.key,
            label(attention),
            _("leaks in {share:.0%} of earlier pairs", share=leak.share) if leak.share else _("does not leak"),
            np.where(leak.moved > 0, leak.moved, np.nan),
        )
        for attention, leak in found.items()
    ]
    matrix_board(
        panels,
        labels=labels,
        key="causal.leaks",
        transform="log",
        pinned=t,
        on_pin=_take_token,
        unit=_("moves by (share of usual size)"),
        masked=_("does not move"),
        row_title=_("replaced token t"),
        col_title=_("output that moves"),
        row_name=_("replaced token"),
        col_name=_("output"),
        panel_size=380,
        file_name="leaks",
    )


def _take_token(event: BoardEvent) -> None:
    if event.pinned is not None:
        LeaksOptions.token.set(event.pinned)


def notes(shown: int, n: int, *, every_head: bool) -> str:
    """Return the notes on what the maps show.

    Args:
        shown: number of tokens replaced in turn.
        n: tokens of the input.
        every_head: whether all heads are shown.
    """
    return paragraph(
        _(
            "Moves are shares of the outputs' usual (root mean square) size. Right of each map's diagonal lie later "
            "outputs, which may move; left of it earlier ones, which may not: there a leak shows. Every variant runs "
            "in its causal form where it has one."
        ),
        _("All heads' outputs are taken side by side.") if every_head else "",
        _(
            "Only the first {shown} of {n} tokens are used: replacing each of them is a run of its own.",
            shown=shown,
            n=n,
        )
        if n > shown
        else "",
    )


def _explain() -> None:
    export.formula_expander(
        _("How it is measured"),
        r"\text{moved}_{t,i} = \frac{\lVert o_i^{(t)} - o_i \rVert}"
        r"{\sqrt{\tfrac1n\sum_l \lVert o_l\rVert^2}},\qquad "
        r"o^{(t)}:\; q_t, k_t, v_t \text{ replaced}",
        _(
            "- Token t's query, key and value are replaced by seeded random vectors as long as its head's are in "
            "root mean square, and the variant's own algorithm runs again: once for each t.\n"
            "- It runs in float64. A move below {rounding} is rounding and counts as none (hatched); real moves "
            "reach down to the smallest weights, the rounding found here is about {found}.\n"
            "- Only this one attention is asked. A model that reads both ways has already mixed later words into "
            "the queries, keys and values it hands over.",
            rounding=format_readable(ROUNDING, None),
            found=format_readable(1e-16, None),
        ),
        key="causal.method",
    )


def _take_away(found: Leaks, labels: tuple[str, ...], chosen: ChosenInput) -> None:
    header = (_("variant"), "t", _("replaced token"), "i", _("output"), _("moves by"))

    def draw() -> None:
        with st.container(horizontal=True):
            export.download(
                _("Maps (CSV)"),
                lambda: export.to_csv(
                    header, export.matrix_rows({a.word: leak.moved for a, leak in found.items()}, labels)
                ),
                "leaks.csv",
            )
            export.download(
                _("Maps (NPZ)"), lambda: export.to_npz({a.key: leak.moved for a, leak in found.items()}), "leaks.npz"
            )
        export.snippet(
            "import attention_core as ac\nfrom attention_core.analysis.matrix.influence import influence\n\n"
            f"qkv = {chosen.source.code}.load()\n"
            f"for word in {[attention.word for attention in found]!r}:\n"
            f"    found = influence(qkv, ac.from_word(word), head={chosen.head})\n"
            "    print(word, found.moved.round(3))  # row: replaced token, column: output\n"
        )

    lazy_expander(_("Take away"), draw, key="causal.files", icon=":material/download:")
