"""State: what a variant that is a recurrent network remembers, growing token by token."""

import time
from collections.abc import Sequence

import streamlit as st

import attention_core as ac
from app import chart, compute, share, takeaway, variant_picker
from app.controls import Options, kept, listed_whole
from app.figures.memory import memory
from app.input_panel import Chosen
from app.matrix_board import Panel, matrix_board
from app.naming import computing, tokens
from app.text import N_, _, literal
from app.visit import as_chosen, of_variant
from attention_core.inputs.labels import number_repeats
from attention_core.limits import current
from attention_core.looks.factors import lengths
from attention_core.looks.recurrent_state import Grown
from attention_core.registry import running_sums
from attention_core.settings import Value
from attention_core.writing import written

TICK = 0.6
"""Seconds between two pictures of the play: a picture takes the server and the browser about a third of that."""
PICTURES = 40
"""Pictures of a whole play: a long text is played in larger steps, so that it takes no longer than half a minute."""
LEFT = 5.0
"""Seconds without a picture after which a play counts as left: its page was closed or another view was opened."""

FORM = ("mode",)
"""The setting that says how the causal form is computed: here it is the decoder, always."""


class StateOptions(Options, prefix="c_"):
    """What a link to this view carries."""

    variant = kept(lambda: of_variant(lambda variant: variant in running_sums(), "linear"), link="c_state")
    last = listed_whole(
        10,
        0,
        lambda: current().matrix_tokens - 1,
        N_("Token i, the last one taken in"),
        link="c_at",
        widget=st.select_slider,
    )


def show(chosen: Chosen) -> None:
    """Draw the choice of the variant, and the part that plays."""
    attention, head = _pick(), chosen.head or 0
    with computing(_(attention.title)):
        grown = compute.grown(chosen.source, attention, head=head)
    labels = number_repeats(chosen.qkv.tokens[: len(grown.keys)])
    StateOptions.last.fit(range(len(labels)))
    for words in notes(grown, chosen.qkv.n, head, averaged=chosen.head is None):
        st.caption(words)
    # Only the part that plays runs again at every picture, and only while it plays.
    playing = _playing()
    st.fragment(_play, run_every=TICK if playing else None)(grown, labels, _(attention.title), playing)
    _explain(attention)
    _take_away(grown, attention, head)


def _pick() -> ac.Attention:
    attention: ac.Attention = StateOptions.variant.value
    titles = {variant.key: _(variant.title) for variant in running_sums()}
    st.session_state["causal.variant"] = attention.key
    left, right = st.columns([5, 3], vertical_alignment="bottom")
    left.pills(
        _("Variant"),
        list(titles),
        key="causal.variant",
        format_func=titles.__getitem__,
        on_change=_take_variant,
        required=True,
    )
    with right, st.container(horizontal=True, vertical_alignment="bottom"):
        if any(setting.name not in FORM for setting in attention.variant.params.settings()):
            with st.popover(_("Settings"), icon=":material/tune:", type="tertiary"):
                variant_picker.knobs(attention, _turn, place="causal.knob", without=FORM)
        chart.choose_format()
    return attention


def _take_variant() -> None:
    StateOptions.variant.set(as_chosen(st.session_state["causal.variant"]))


def _turn(name: str, value: Value) -> None:
    StateOptions.variant.set(variant_picker.turned(StateOptions.variant.value, name, value))


def _playing() -> bool:
    last = st.session_state.get("causal.drawn")
    return last is not None and time.monotonic() - last < LEFT


def _switch(last: int) -> None:
    state = st.session_state
    if _playing():
        state["causal.drawn"] = None
        return
    state["causal.drawn"] = time.monotonic()
    if StateOptions.last.value == last:
        StateOptions.last.set(0)


def _play(grown: Grown, labels: tuple[str, ...], name: str, ticking: bool) -> None:
    """The slider, the play button and the pictures: they alone run again when one of them moves or the clock ticks."""
    state, last = st.session_state, len(labels) - 1
    i = min(StateOptions.last.value, last)
    if _playing() and ticking and time.monotonic() - state["causal.drawn"] > TICK / 2:
        i = min(last, i + -(-len(labels) // PICTURES))
        state["causal.drawn"] = time.monotonic() if i < last else None
    StateOptions.last.set(i)
    told = st.empty()
    if last:
        left, right = st.columns([1, 7], vertical_alignment="bottom")
        word, icon = (_("Stop"), ":material/stop:") if ticking else (_("Play"), ":material/play_arrow:")
        left.button(word, icon=icon, key="causal.play", width="stretch", on_click=_switch, args=(last,))
        with right:
            i = StateOptions.last.draw(**tokens(labels))
    told.markdown(sentence(grown, i, labels, name))
    left, right = st.columns([6, 5])
    with left:
        _board(grown, labels, i)
    with right:
        _figure(grown, i)
    if not ticking:
        share.write_link()
    if _playing() != ticking:
        st.rerun()  # whether there is a clock is decided by the whole page


def sentence(grown: Grown, i: int, labels: Sequence[str], name: str) -> str:
    """How much is remembered after token i, and how far what is read from it lies from softmax's output.

    Args:
        grown: the state over time.
        i: the last token taken in.
        labels: one per token.
        name: the variant's.
    """
    sizes = lengths(grown.sums)
    features, values = grown.sums.shape[1:]
    return _(
        "After token {i} “{token}” {held:,} numbers stand for {count} tokens, as they would for a million. ‖S‖ is at "
        "{share:.0%} of its largest. What is read from the state is the output of {name}'s own n × n matrix, to "
        "{difference}. From **softmax's output** it lies {lost:.0%} of that one's length away.",
        i=i,
        token=literal(labels[i]),
        held=features * (values + 1),
        count=i + 1,
        share=sizes[i] / (sizes.max() or 1.0),
        difference=written(grown.difference(i), 1),
        lost=grown.lost(i),
        name=name,
    )


def _board(grown: Grown, labels: tuple[str, ...], i: int) -> None:
    top = float(abs(grown.sums).max())  # one scale for all tokens, so that growth is seen
    matrix_board(
        [
            Panel("state", "S", _("all {count} tokens so far", count=i + 1), grown.sums[i], top=top),
            Panel("added", "φ(k) vᵀ", _("what “{token}” adds", token=labels[i]), grown.added[i], top=top),
        ],
        key="causal.state",
        transform="sqrt",
        diverging=True,
        unit=_("entry"),
        row_title=_("feature"),
        col_title=_("value entry"),
        row_name=_("feature"),
        col_name=_("value entry"),
        file_name="state",
    )


def _figure(grown: Grown, i: int) -> None:
    keys = grown.keys
    figure = memory(
        keys[i],
        {"‖S‖": lengths(grown.sums), "‖z‖": lengths(keys)},
        {_("state"): grown.outputs[i], _("own n × n matrix"): grown.full[i], _("softmax"): grown.softmax[i]},
        i,
        keys_title=_("z: the sum of φ(k) so far"),
        feature=_("feature"),
        sizes_title=_("size of the state"),
        position=_("token i"),
        outputs_title=_("output of token i"),
        entry=_("value entry"),
        tallest=(min(0.0, float(keys.min())), 1.05 * float(keys.max())),
    )
    chart.show(
        figure,
        key="causal.memory",
        name="state",
        alt=_("Bars: the normaliser's state; lines: how large the state is at every token; bars: the output"),
    )


def notes(grown: Grown, n: int, head: int, *, averaged: bool) -> list[str]:
    """What is not shown as it is.

    Args:
        grown: the state over time.
        n: tokens of the input.
        head: the head shown.
        averaged: whether all heads are looked at elsewhere.
    """
    told = []
    if averaged:
        told.append(_("A state belongs to one head: head {head} is shown.", head=head))
    if len(grown.keys) < n:
        told.append(
            _(
                "Each state holds {size:,} numbers, so only the first {shown} of {n} tokens are followed.",
                size=grown.sums[0].size + grown.keys[0].size,
                shown=len(grown.keys),
                n=n,
            )
        )
    if grown.log_unit:
        told.append(
            _("S and z are beyond a number's range; shown is their share of e^{power:.0f}.", power=grown.log_unit)
        )
    return told


def _explain(attention: ac.Attention) -> None:
    with st.expander(_("What is shown"), icon=":material/function:"):
        st.latex(
            r"S_i = \gamma S_{i-1} + \varphi(k_i)\, v_i^\top,\qquad z_i = \gamma z_{i-1} + \varphi(k_i),\qquad "
            r"o_i = \frac{\varphi(q_i)^\top S_i}{\varphi(q_i)^\top z_i}"
        )
        st.markdown(
            _(
                "- γ is 1 but for retention, whose state forgets: it stops growing after about 1 / (1 − γ) tokens.\n"
                "- The state is the variant's own decoder's, in float64. Where a decoder holds exponentials over a "
                "reference, to keep them in range, S and z are shown scaled back to what the formula says.\n"
                "- The state gives what its variant's own n × n matrix gives: nothing is lost between the two. What "
                "the variant itself loses is the distance to softmax.\n"
                "- Colours keep one scale over all tokens, on a square root; z keeps its axis."
            )
        )
        st.markdown(f"**{_(attention.title)}**: {_(attention.variant.summary)}")
        st.latex(attention.variant.formula)


def _take_away(grown: Grown, attention: ac.Attention, head: int) -> None:
    with st.expander(_("Take away"), icon=":material/download:"):
        with st.container(horizontal=True):
            takeaway.download(
                _("Sizes (CSV)"),
                lambda: takeaway.to_csv(
                    ("i", "‖S‖", "‖z‖", _("difference of the outputs"), _("distance from softmax's")),
                    [
                        [i, float(s), float(z), grown.difference(i), grown.lost(i)]
                        for i, (s, z) in enumerate(zip(lengths(grown.sums), lengths(grown.keys), strict=True))
                    ],
                ),
                "state.csv",
            )
            takeaway.download(
                _("States (NPZ)"),
                lambda: takeaway.to_npz(
                    {
                        "S": grown.sums,
                        "z": grown.keys,
                        "out": grown.outputs,
                        "full": grown.full,
                        "softmax": grown.softmax,
                    }
                ),
                "state.npz",
            )
        takeaway.snippet(
            "import attention_core as ac\nfrom attention_core.looks.recurrent_state import grow\n\n"
            'qkv = ac.inputs.from_text("The cat sat on the mat.", layer=2)\n'
            f"grown = grow(qkv, ac.from_word({attention.word!r}), head={head})\n"
            "print(grown.sums.shape, abs(grown.outputs - grown.full).max())\n"
        )
