"""The Inside page: which variant is taken apart, its steps one at a time, and what to take away."""

from functools import partial

import streamlit as st

import attention_core as ac
from app import about, chart, compute, share, takeaway
from app.input_panel import Chosen
from app.inside import columns_rows
from app.inside.more_features import FACTORS, MEASURES
from app.inside.step import Seen, Step
from app.inside.stories import discover
from app.naming import family_title, label
from app.text import _
from app.variant_picker import knobs, turned
from app.visit import of_variant
from attention_core.inputs.labels import number_repeats
from attention_core.limits import current
from attention_core.looks.gau import CHANNELS
from attention_core.variant import Value

FIRST = "nystrom"
"""What a first visit sees."""
MOST_STEPS = 9
MOST_FEATURES = 2 * current().head_size
"""Features whose map can be looked at alone: a feature map has at most two for each entry of a key."""


def fields() -> dict[str, share.Field]:
    """What a link to this page carries beside the input: the variant with its settings, the step, and its choices.

    Where a step picks a query or a feature by itself until one is chosen, the default is None.
    """
    return {
        "inside": of_variant(lambda variant: variant.key in discover(), FIRST),
        "step": share.whole(1, 1, MOST_STEPS),
        "query": share.whole(None, 0, current().matrix_tokens - 1),
        "feature": share.whole(None, 0, MOST_FEATURES - 1),
        "feature_error": share.choice(*MEASURES),
        "logits": share.one_of(1.0, FACTORS),
        "channel": share.whole(0, 0, CHANNELS - 1),
        columns_rows.FIELD: columns_rows.field(),
        "hash_round": share.whole(0, 0, 63),
    }


def choose() -> None:
    """Draw the variants that can be taken apart, and the knobs of the one that is."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="inside.variants"):
        for family in ac.families():
            members = {v.key: _(v.title) for v in ac.all_variants() if v.family == family and v.key in discover()}
            if not members:
                continue
            key = f"inside.menu.{family}"
            state[key] = state["inside"].key if state["inside"].key in members else None
            st.pills(
                family_title(family),
                list(members),
                key=key,
                format_func=members.__getitem__,
                on_change=partial(_take_variant, key),
                width="content",
            )
        if state["inside"].variant.params.settings():
            with st.popover(label(state["inside"]), icon=":material/tune:", key="inside.settings"):
                knobs(state["inside"], _take, place="inside.knob")
    st.markdown(f"**{_(state['inside'].title)}:** {_(state['inside'].variant.summary)}")


def _take_variant(key: str) -> None:
    state = st.session_state
    if state[key] is not None:  # a second click on the one shown leaves it where it is
        state["inside"], state["step"] = ac.get(state[key]), 1


def _take(name: str, value: Value) -> None:
    st.session_state["inside"] = turned(st.session_state["inside"], name, value)


def show(chosen: Chosen) -> None:
    """Take the variant apart on the chosen input and draw the current step."""
    attention: ac.Attention = st.session_state["inside"]
    refused = attention.variant.causal_reason if st.session_state["causal"] else None
    causal = st.session_state["causal"] and not refused
    if refused:
        told = _("{name} cannot be causal: {reason} It is shown without.", name=_(attention.title), reason=_(refused))
        if chosen.qkv.causal and chosen.qkv.n > 1:
            told += " " + _(
                "The model hides the future: {share:.0%} of softmax's mass then lies on later tokens, which it never "
                "sees.",
                share=compute.future_share(chosen.source, head=chosen.head or 0),
            )
        st.caption(f":material/block: {told}")
    if chosen.head is None:
        st.caption(":material/info: " + _("An average of heads has no inside; this is head 0."))
    head = chosen.head or 0
    with st.spinner(_("Computing {name} …", name=_(attention.title)), show_time=True):
        found = compute.inside(chosen.source, attention, head, causal)
        seen = Seen(
            attention=attention,
            source=chosen.source,
            qkv=chosen.qkv,
            head=head,
            causal=causal,
            parts=found.parts,
            weights=found.weights,
            reference=found.reference,
            labels=number_repeats(chosen.qkv.tokens),
        )
        steps = discover()[attention.key](seen)
    _pick(steps)
    number = st.session_state["step"]
    _draw(steps[number - 1], f"inside.{attention.key}.{number}")
    _more(seen, chosen)


def _pick(steps: tuple[Step, ...]) -> None:
    """The steps by number and title, with a way back and on."""
    state = st.session_state
    share.fit(step=range(1, len(steps) + 1))
    names = {i: f"{i} · {step.title}" for i, step in enumerate(steps, 1)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="inside.steps"):
        for name, icon, way, by in (
            (_("Previous"), ":material/arrow_back:", "back", -1),
            (_("Next"), ":material/arrow_forward:", "on", 1),
        ):
            st.button(
                name,
                icon=icon,
                key=f"inside_by_{way}",
                on_click=partial(_go, state["step"] + by),
                disabled=not 1 <= state["step"] + by <= len(steps),
                width="content",
            )
        st.segmented_control(
            _("Step"),
            list(names),
            key="step",
            format_func=names.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
        )


def _go(number: int) -> None:
    st.session_state["step"] = number


def _draw(step: Step, key: str) -> None:
    st.markdown(step.sentence)
    # The page cuts formulas off at their box, and the numerator of a fraction reaches out of it: a strut makes room.
    st.latex(rf"\rule{{0pt}}{{1.5em}}{step.formula}")
    sizes = r",\quad ".join(rf"{symbol} = [{', '.join(map(str, shape))}]" for symbol, shape in step.shapes.items())
    st.caption(_("Sizes: {sizes}", sizes=f"${sizes}$"))
    step.draw(key)


def _more(seen: Seen, chosen: Chosen) -> None:
    with st.expander(_("Formula and code")):
        about.show(seen.attention, chosen)
    with st.expander(_("Take away")):
        chart.choose_format()
        with st.container(horizontal=True):
            arrays = {**seen.parts, "weights": seen.weights, "reference": seen.reference}
            takeaway.download(
                _("All parts (NPZ)"),
                lambda: takeaway.to_npz(arrays),
                f"{seen.attention.key}-inside.npz",
                "application/octet-stream",
                "inside.npz",
            )
            takeaway.download(
                _("Q, K, V (NPZ)"),
                lambda: ac.inputs.to_npz(seen.qkv),
                "qkv.npz",
                "application/octet-stream",
                "inside.qkv",
            )
        takeaway.snippet(snippet(seen))


def snippet(seen: Seen) -> str:
    """The lines of Python that take the variant apart again."""
    params = seen.attention.params
    changed = "".join(f", {name}={getattr(params, name)!r}" for name in params.changed())
    return (
        "import attention_core as ac\n"
        "from attention_core.looks.inside import look\n\n"
        'qkv = ac.inputs.from_upload(open("qkv.npz", "rb").read(), "qkv.npz")\n'
        f'inside = look(qkv, ac.get("{seen.attention.key}"{changed}), head={seen.head}, causal={seen.causal})\n'
        "for name, part in inside.parts.items():\n"
        "    print(name, part.shape)\n"
    )
