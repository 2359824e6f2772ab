"""The State chapter of the Causal page: the numbers that a recurrent variant stores, updated token by token."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app.figures.memory import memory
from app.figures.theme import SERIES, style
from app.jobs import cached
from app.matrix_board import Panel, matrix_board
from app.state import url
from app.state.controls import Options, int_choice, link_only_option
from app.state.session import SharedOptions, set_text, variant_field, with_chosen_settings
from app.ui import chart, export, input_forms, input_panel, palette, variant_picker
from app.ui.animation import Animation
from app.ui.input_panel import ChosenInput
from app.ui.lazy import lazy_expander, lazy_popover
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n
from app.words.labels import sentence_name, spinner, token_options
from attention_core.analysis.low_rank.factors import lengths
from attention_core.analysis.state.recurrent_state import StateHistory, followed_tokens
from attention_core.inputs.labels import number_repeats
from attention_core.limits import current
from attention_core.registry import matrix_states
from attention_core.settings import Value
from attention_core.variant import SOFTMAX
from pages.causal.shared import export_panel
from pages.causal.state_words import FAST_WEIGHTS, SUMS, notes, output_distance, state_change, state_size

MAX_PICTURES = 40
"""Maximum pictures of one animation; longer texts advance in larger steps, so that it lasts at most half a minute."""
MAX_WIDTH = 1100
"""Width in pixels that the pictures of a token share, so that all of them fit next to each other."""
HIDDEN_SETTINGS = ("mode",)
"""Settings that this view does not offer. It always uses the decoder, so the causal form (``mode``) has no effect."""


class StateOptions(Options, prefix="c_"):
    """The options that a link to this view carries."""

    variant = link_only_option(
        lambda: variant_field(lambda variant: variant in matrix_states(), "linear"), link="c_state"
    )
    last = int_choice(
        10, 0, lambda: current().matrix_tokens - 1, N_("Last token i"), link="c_at", widget=st.select_slider
    )


def show(chosen: ChosenInput, headline: DeltaGenerator) -> None:
    """Draw the choice of the variant, the animated part, the explanation and the downloads."""
    attention, head = _choose_variant(), chosen.head or 0
    load_history = partial(cached.state_history, chosen.source, attention, head=head)
    with spinner(_(attention.title)):
        history = load_history()
    finding = state_size(history, sentence_name(attention))
    headline.markdown(finding.text)
    st.caption(finding.explanation)
    labels = number_repeats(chosen.qkv.names[: len(history.sums)])
    StateOptions.last.restrict_to(range(len(labels)))
    last = len(labels) - 1
    play = Animation(key="causal", option=StateOptions.last, first=0, last=last, stride=-(-len(labels) // MAX_PICTURES))
    # While the animation plays, only this fragment reruns for each frame.
    st.fragment(_draw, run_every=play.tick_interval)(play, load_history, labels, attention, play.is_running)
    if words := notes(history, chosen.qkv.n, head, averaged=chosen.head is None):
        st.caption(words)
    _explain(attention, history)
    header = ("i", *_sizes(history), _("difference from the matrix output"), _("distance from softmax output"))
    export_panel(
        [
            (_("State sizes (CSV)"), lambda: export.to_csv(header, _curve_rows(load_history())), "state.csv"),
            (_("States (NPZ)"), lambda: export.to_npz(_arrays(load_history())), "state.npz"),
        ],
        "import attention_core as ac\nfrom attention_core.analysis.state.recurrent_state import state_history\n\n"
        f"qkv = {chosen.source.code}.load()\n"
        f"history = state_history(qkv, ac.from_word({attention.word!r}), head={head})\n"
        "print(history.sums.shape, abs(history.outputs - history.full).max())\n",
    )


def scope(chosen: ChosenInput) -> Scope:
    """Return the scope of the view: one head (the first instead of the average) and the tokens up to the chosen one."""
    attention: ac.Attention = StateOptions.variant.value
    shown = input_panel.scope(chosen)
    return replace(
        shown, head=chosen.head or 0, tokens=followed_tokens(chosen.qkv, attention), variants=(attention.word,)
    )


def _choose_variant() -> ac.Attention:
    attention: ac.Attention = StateOptions.variant.value
    titles = {variant.key: _(variant.title) for variant in matrix_states()}
    st.session_state["causal.variant"] = attention.key
    with st.container(horizontal=True, vertical_alignment="center"):
        st.selectbox(
            _("Variant"),
            list(titles),
            key="causal.variant",
            label_visibility="collapsed",
            format_func=titles.__getitem__,
            on_change=_set_variant,
            width=240,
        )
        if any(setting.name not in HIDDEN_SETTINGS for setting in attention.variant.params.settings()):
            draw = partial(
                variant_picker.draw_knobs, attention, _set_setting, prefix="causal.knob", hidden=HIDDEN_SETTINGS
            )
            lazy_popover(_("Settings"), draw, key="causal.settings", icon=":material/tune:", type="tertiary")
        if SharedOptions.input.value == "text":
            st.text_input(
                _("Next word"),
                key="causal.typed",
                placeholder=_("Type the next word"),
                label_visibility="collapsed",
                on_change=_append_words,
                width=200,
            )
    return attention


def _append_words() -> None:
    """Append the typed words to the text, and show the state after the last word."""
    typed, st.session_state["causal.typed"] = st.session_state["causal.typed"].strip(), ""
    if typed:
        set_text(f"{SharedOptions.text.value} {typed}")
        StateOptions.last.set(_last_word())


def _last_word() -> int:
    """Return the index of the last shown token of the text that is not a special token such as ``[SEP]``.

    If the text cannot be read, return the current index.
    """
    source = input_forms.forms()["text"].source(SharedOptions.current())
    try:
        record = cached.record(source) if source else None
    except ac.LabError:
        record = None
    if record is None:
        return StateOptions.last.value
    shown = record.special[: current().matrix_tokens]
    return max((i for i, special in enumerate(shown) if not special), default=len(shown) - 1)


def _set_variant() -> None:
    StateOptions.variant.set(with_chosen_settings(st.session_state["causal.variant"]))


def _set_setting(name: str, value: Value) -> None:
    StateOptions.variant.set(variant_picker.with_setting(StateOptions.variant.value, name, value))


def _draw(
    play: Animation,
    load_history: Callable[[], StateHistory],
    labels: tuple[str, ...],
    attention: ac.Attention,
    ticking: bool,
) -> None:
    """Draw the animated part: the slider, the buttons and the pictures of the variant.

    The fragment keeps ``load_history``, which reads the cached state, so that no visitor's session holds a state.
    """
    history, name = load_history(), sentence_name(attention)
    i, last = play.advance(ticking), play.last
    if last:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container(width=120):
                play.draw_button(ticking)
            st.button(
                _("Next token"),
                icon=":material/skip_next:",
                key="causal.take",
                disabled=ticking or i == last,
                on_click=StateOptions.last.set,
                args=(i + 1,),
            )
            i = StateOptions.last.draw(label_visibility="collapsed", **token_options(labels))
    _board(history, labels, i)
    st.markdown("  \n".join(filter(None, (output_distance(history, i, labels, name), state_change(history, i)))))
    lazy_expander(
        _("Single entries of the state and the output"), partial(_figure, history, i, attention), key="causal.entries"
    )
    if not ticking:
        url.write_link()
    play.rerun_if_changed(ticking)


def _board(history: StateHistory, labels: tuple[str, ...], i: int) -> None:
    cache = np.where(np.arange(len(history.kv_cache))[:, None] <= i, history.kv_cache, np.nan)
    rows = _("feature") if history.changes is None else _("channel")
    panels = [
        *_states(history, labels[i], i),
        Panel(
            "cache",
            _("Key-value cache"),
            _("{size:,} numbers stored so far", size=(i + 1) * cache.shape[1]),
            cache,
            row_labels=labels,
            row_title=_("token"),
            col_title=_("entries of key and value"),
            top=float(abs(history.kv_cache).max()),
        ),
    ]
    matrix_board(
        panels,
        key="causal.state",
        panel_size=MAX_WIDTH // max(3, len(panels)),
        transform="sqrt",
        diverging=True,
        masked=_("later token"),
        scale="panel",
        unit=_("value of the entry"),
        row_title=rows,
        col_title=_("value entry"),
        row_name=rows,
        col_name=_("value entry"),
        file_name="state",
    )


def _states(history: StateHistory, token: str, i: int) -> Iterator[Panel]:
    """Yield the panels for token i: the state after this token, and the changes that the token makes."""
    top, title = scale_end(abs(history.sums), i), _("State S")

    def panel(key: str, name: str, caption: str, change: np.ndarray) -> Panel:
        # A change that is larger than every entry of the state so far has a colour scale of its own.
        return Panel(key, name, caption, change, top=top, scale_panel=title if abs(change).max() <= top else "")

    after = _n("after {n} token", "after {n} tokens", n=i + 1)
    yield Panel("state", title, after, history.sums[i], top=top)
    if history.changes is None:
        yield panel("added", _("Added: φ(k) vᵀ"), _("by “{token}”", token=token), history.added[i])
        return
    if history.changes.decay_shares.any():
        yield panel("faded", _("Decayed"), _("from the previous state"), history.decay_change(i))
    if history.changes.erased_shares is not None:
        if history.changes.along:
            read_title = _("value retrieved by w, the direction that “{token}” erases", token=token)
        else:
            read_title = _("value retrieved by the key of “{token}”", token=token)
        yield panel("erased", _("Erased"), read_title, history.erase_change(i))
    yield panel("added", _("Written"), _("by “{token}”", token=token), history.added[i])


def scale_end(sizes: np.ndarray, i: int) -> float:
    """Return the upper end of a scale for the numbers at token i, given those at all tokens, ``[n, ...]``.

    It is the largest number so far, rounded up to a power of two, but not more than the largest at any token.
    Growth is visible between two powers, and early tokens are not pale.
    """
    so_far, largest = float(sizes[: i + 1].max()), float(sizes.max())
    return min(2.0 ** math.ceil(math.log2(so_far)), largest) if so_far > 0 else largest


def _sizes(history: StateHistory) -> dict[str, np.ndarray]:
    """Return the curves' values by name: norms of the state and of z or, without z, of what is written and removed."""
    sizes = {"‖S‖": lengths(history.sums)}
    if history.keys is not None:
        return sizes | {"‖z‖": lengths(history.keys)}
    return sizes | {_("written"): lengths(history.added), _("removed"): history.removed_size}


def line_colours(attention: ac.Attention, sizes: Iterable[str]) -> dict[str, str]:
    """Return the CSS colours of the curves with the names ``sizes`` and of both outputs, by name.

    The state and its output have the variant's colour. Softmax's output has softmax's colour, and the other curves
    have further colours.
    """
    own, softmax = (style(index).colour for index in palette.indices([attention.word, SOFTMAX]))
    further = (colour for colour in SERIES if colour not in (own, softmax))
    return dict(zip(sizes, (own, *further), strict=False)) | {sentence_name(attention): own, _("softmax"): softmax}


def _figure(history: StateHistory, i: int, attention: ac.Attention) -> None:
    if history.keys is not None:
        features, title = history.keys, _("entries of z")
        text = _(
            "From top to bottom: bars for z (the normaliser's state), lines for the norm of the state at every token, "
            "and bars for the output"
        )
    else:
        features, title = history.channel_sizes, _("norm of each row (key channel) of the state S")
        text = _(
            "From top to bottom: bars for the norm of each row of the state, lines for the change of the state at "
            "every token, and bars for the output"
        )
    sizes = _sizes(history)
    st.caption(
        _(
            "Top: z, which gives the divisor of the output. Middle: the norms of S and z after each token. Bottom: the "
            "output of token i next to softmax's output."
        )
        if history.keys is not None
        else _(
            "Top: the norm of each row of S. Middle: the norm of S, and of what each token writes and removes. Bottom: "
            "the output of token i next to softmax's output."
        )
    )
    figure = memory(
        features[i],
        sizes,
        {sentence_name(attention): history.outputs[i], _("softmax"): history.softmax[i]},
        i,
        colours=line_colours(attention, sizes),
        keys_name="‖S‖" if history.keys is None else "‖z‖",
        keys_title=title,
        feature=_("feature") if history.changes is None else _("channel"),
        sizes_title=_("norm of the state"),
        position=_("token i"),
        mark=_("token {i}", i=i),
        outputs_title=_("output of token i")
        if history.changes is not None
        else _("output of token i: φ(q)ᵀ S / φ(q)ᵀ z"),
        entry=_("value entry"),
        keys_range=(
            -1.05 * scale_end(-features, i) if features[: i + 1].min() < 0 else 0.0,
            1.05 * scale_end(features, i),
        ),
    )
    chart.show(figure, key="causal.memory", name="state", alt=text)


def _explain(attention: ac.Attention, history: StateHistory) -> None:
    formula, text = SUMS if history.changes is None else FAST_WEIGHTS

    def draw() -> None:
        st.latex(formula)
        st.markdown(_(text))
        st.markdown(f"**{_(attention.title)}**: {_(attention.variant.summary)}")
        st.latex(attention.variant.formula)

    lazy_expander(_("Definitions"), draw, key="causal.method")


def _curve_rows(history: StateHistory) -> list[list[object]]:
    """Return the values of the curves, one row per token."""
    sizes = zip(*_sizes(history).values(), strict=True)
    return [
        [i, *map(float, row), history.matrix_difference(i), history.softmax_error(i)] for i, row in enumerate(sizes)
    ]


def _arrays(history: StateHistory) -> dict[str, np.ndarray]:
    """Return the arrays that the view shows, by their names in the formula; arrays that do not exist are left out."""
    changes = history.changes
    arrays = {
        "S": history.sums,
        "z": history.keys,
        "out": history.outputs,
        "full": history.full,
        "softmax": history.softmax,
        "fades": None if changes is None else changes.decay_shares,
        "erases": None if changes is None else changes.erased_shares,
    }
    return {name: values for name, values in arrays.items() if values is not None}
