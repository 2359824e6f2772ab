"""The shared input in the sidebar: text, synthetic or upload, becoming one frozen spec that every page works on."""

from dataclasses import dataclass, replace

import streamlit as st

import attention_core as ac
from app import compute, presets, share
from app.matrix_board import thumbnail_board
from app.navigation import HERE
from app.text import _, literal, sentence
from attention_core.inputs.source import Source, SyntheticSource, TextSource, UploadSource
from attention_core.inputs.synthetic import KINDS, SyntheticSpec
from attention_core.limits import current

UPLOAD = "upload.file"
AVERAGE = -1


class NoInputError(Exception):
    """There is nothing to look at, and the page says why: it ends here."""


@dataclass(frozen=True)
class Chosen:
    """What the visitor chose to look at, read and ready.

    Attributes:
        source: where it comes from, frozen.
        qkv: the record.
        head: the head, None for the average.
    """

    source: Source
    qkv: ac.inputs.QKV
    head: int | None


def show() -> None:
    """Draw the panel."""
    state = st.session_state
    names = {"text": _("Text"), "synthetic": _("Synthetic"), "upload": _("Upload")}
    st.segmented_control(
        _("Input"), list(names), key="input", format_func=names.__getitem__, required=True, width="stretch"
    )
    {"text": _text, "synthetic": _synthetic, "upload": _upload}[state["input"]]()
    if state["input"] == "upload" and UPLOAD not in state:
        return
    try:
        if state["input"] == "text" or state["model"] in [info.key for info in ac.inputs.models.BUILT_IN]:
            share.fit(layer=range(ac.inputs.models.layer_count(state["model"])))  # loads one that is not built in
        qkv = compute.record(_source())
    except ac.LabError:
        return  # the page says it, where there is room for a sentence
    share.fit(head=range(AVERAGE, qkv.heads))
    _head(qkv)
    # Only this page leaves tokens out; everywhere else all of them take part.
    drops = not st.session_state["special"] and st.session_state[HERE].path == "matrices"
    st.caption(size_in_words(qkv, shown=len(shown_tokens(qkv)) if drops else qkv.n))
    for notice in qkv.notices:
        st.info(literal(sentence(notice)), icon=":material/info:")


def size_in_words(qkv: ac.inputs.QKV, *, shown: int) -> str:
    """How large the input is, and how many of its tokens a page does not draw."""
    told = {"n": qkv.n, "heads": qkv.heads, "d": qkv.q.shape[-1], "shown": shown, "hidden": qkv.n - shown}
    if shown == qkv.n:
        return _("{n} tokens · {heads} heads of {d}", **told)
    return _("{shown} tokens shown, {hidden} special ones hidden · {heads} heads of {d}", **told)


def shown_tokens(qkv: ac.inputs.QKV) -> tuple[str, ...]:
    """The tokens that are left without those the tokenizer added; all of them where it added every one."""
    return tuple(t for t, special in zip(qkv.tokens, qkv.special, strict=True) if not special) or qkv.tokens


def chosen(*, switch: bool = True) -> Chosen:
    """The chosen input, or one sentence on the page.

    Args:
        switch: whether the page follows the causal switch; one that does says what an input from a causal model, read
            with the switch off, looks at that the model never sees.

    Raises:
        NoInputError: in the second case. Not ``st.stop``, after which not even the address can be written.
    """
    if st.session_state["input"] == "upload" and UPLOAD not in st.session_state:
        st.info(_("Upload an .npz file with the arrays q, k and v in the panel on the left."), icon=":material/upload:")
        raise NoInputError
    try:
        source = _source()
        with st.spinner(_("Reading the input …"), show_time=True):
            qkv = compute.record(source)
    except ac.LabError as error:
        st.error(literal(sentence(error)), icon=":material/error:")
        raise NoInputError from error
    head = st.session_state["head"]
    found = Chosen(source, qkv, None if head == AVERAGE else min(head, qkv.heads - 1))
    if switch and qkv.causal and not st.session_state["causal"] and qkv.n > 1:
        st.caption(f":material/visibility: {unmasked(compute.future_share(source, found.head), found.head)}")
    return found


def unmasked(share: float, head: int | None) -> str:
    """What a causal model's head is read as looking at while its mask is off, and what mends it."""
    if head is None:
        return _(
            "This model hides the future, and **Causal** is off: {share:.0%} of softmax's mass, the mean of all heads, "
            "lies on later tokens, which the model never sees. Switch **Causal** on to read them as it does.",
            share=share,
        )
    return _(
        "This model hides the future, and **Causal** is off: {share:.0%} of softmax's mass in head {head} lies on "
        "later tokens, which the model never sees. Switch **Causal** on to read it as the model does.",
        share=share,
        head=head,
    )


def _source() -> Source:
    state = st.session_state
    if state["input"] == "text":
        last = ac.inputs.models.layer_count(state["model"]) - 1
        return TextSource(state["text"], state["model"], min(state["layer"], last))
    if state["input"] == "synthetic":
        names = ("kind", "n", "d", "heads", "sharpness", "seed", "rope")
        return SyntheticSource(SyntheticSpec(**{name: state[name] for name in names}))
    upload: UploadSource = state[UPLOAD]
    return upload


def _text() -> None:
    state = st.session_state
    names = {"english": _("English"), "repeats": _("Repeats"), "chinese": _("Chinese"), "long": _("Long")}
    state["preset"] = next((name for name, text in presets.texts().items() if text == state["text"]), None)
    st.pills(_("Start from"), list(names), key="preset", format_func=names.__getitem__, on_change=_take_preset)
    st.text_area(_("Your text"), key="text", height=150)
    models = {info.key: info for info in ac.inputs.models.BUILT_IN}
    options = list(models) + ([state["model"]] if state["model"] not in models else [])
    st.selectbox(
        _("Model"),
        options,
        key="model",
        format_func=lambda key: models[key].title if key in models else key,
        accept_new_options=current().hub_models,
        on_change=_take_model,
        help=_("Type owner/name for any other model from the hub; it is downloaded once.")
        if current().hub_models
        else None,
    )
    if state["model"] in models:
        st.caption(_(models[state["model"]].note))


def _take_preset() -> None:
    state = st.session_state
    if state["preset"]:
        state["text"] = presets.texts()[state["preset"]]
        state["row"] = None


def _take_model() -> None:
    # A model that writes from left to right hides the future; one that reads both ways does not.
    known = {info.key: info for info in ac.inputs.models.BUILT_IN}
    if st.session_state["model"] in known:
        st.session_state["causal"] = known[st.session_state["model"]].causal


def _synthetic() -> None:
    limits = current()
    kinds = {kind.key: kind for kind in KINDS}
    st.selectbox(_("Kind"), list(kinds), key="kind", format_func=lambda key: _(kinds[key].title))
    st.caption(_(kinds[st.session_state["kind"]].summary))
    st.slider(_("Tokens n"), 1, limits.matrix_tokens, key="n")
    left, right = st.columns(2)
    left.number_input(_("Head size d"), 2, limits.head_size, key="d")
    right.number_input(_("Heads"), 1, limits.heads, key="heads")
    st.slider(
        _("Sharpness"), 0.0, 16.0, step=0.25, key="sharpness", help=_("Multiplies the logits: higher is more decided.")
    )
    left, right = st.columns(2, vertical_alignment="bottom")
    left.number_input(_("Seed"), 0, 2**31 - 1, key="seed")
    right.toggle(
        _("RoPE"), key="rope", help=_("Turns queries and keys by their position, as Llama does (arXiv 2104.09864).")
    )


def _upload() -> None:
    file = st.file_uploader(_("An .npz file with the arrays q, k and v"), type="npz", key="upload.widget")
    if file is not None:
        st.session_state[UPLOAD] = UploadSource.of(file.name, file.getvalue())
    elif UPLOAD in st.session_state:
        st.caption(_("Showing {name}", name=literal(st.session_state[UPLOAD].name)))
    st.download_button(
        _("An example file"), ac.inputs.example_npz(), "example.npz", icon=":material/download:", type="tertiary"
    )


def _head(qkv: ac.inputs.QKV) -> None:
    """Pickers for layer and head, by list and by picture."""
    state = st.session_state
    source = _source()
    layers = 1
    if isinstance(source, TextSource):
        layers = ac.inputs.models.layer_count(source.model)
        state["layer"] = source.layer
        source = replace(source, layer=0)  # the pictures show every layer
    state["head"] = min(state["head"], qkv.heads - 1)
    columns = iter(st.columns(2))
    if layers > 1:
        next(columns).selectbox(_("Layer"), range(layers), key="layer")
    next(columns).selectbox(
        _("Head"),
        range(AVERAGE, qkv.heads),
        key="head",
        format_func=lambda head: _("average") if head == AVERAGE else str(head),
    )
    here = (state["layer"] if layers > 1 else 0, state["head"])
    pictures = compute.head_miniatures(source, state["causal"])
    thumbnail_board(pictures, selected=here, key="heads.board", on_choose=_take_head)


def _take_head(choice: tuple[int, int]) -> None:
    layer, st.session_state["head"] = choice
    if st.session_state["input"] == "text":  # elsewhere there is one layer, and the text's own layer stays
        st.session_state["layer"] = layer
