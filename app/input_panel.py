"""The shared input in the sidebar: text, synthetic or upload, becoming one frozen spec that every page works on."""

from dataclasses import dataclass

import streamlit as st

import attention_core as ac
from app import compute, presets
from app.matrix_board import thumbnail_board
from app.text import _, literal, sentence
from app.visit import Visit, take_text
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


def show(*, hides_special: bool) -> None:
    """Draw the panel.

    Args:
        hides_special: whether the page leaves out the tokenizer's own tokens where the visitor wants that; on every
            other page all of them take part.
    """
    {"text": _text, "synthetic": _synthetic, "upload": _upload}[Visit.input.draw()]()
    if Visit.input.value == "upload" and UPLOAD not in st.session_state:
        return
    try:
        if Visit.input.value == "text" or Visit.model.value in [info.key for info in ac.inputs.models.BUILT_IN]:
            Visit.layer.fit(range(ac.inputs.models.layer_count(Visit.model.value)))  # loads one that is not built in
        qkv = compute.record(_source())
    except ac.LabError:
        return  # the page says it, where there is room for a sentence
    Visit.head.fit(range(AVERAGE, qkv.heads))
    _head(qkv)
    drops = hides_special and not Visit.special.value
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
    if Visit.input.value == "upload" and UPLOAD not in st.session_state:
        st.info(_("Upload an .npz file with the arrays q, k and v in the panel on the left."), icon=":material/upload:")
        raise NoInputError
    try:
        source = _source()
        with st.spinner(_("Reading the input …"), show_time=True):
            qkv = compute.record(source)
    except ac.LabError as error:
        st.error(literal(sentence(error)), icon=":material/error:")
        raise NoInputError from error
    head = Visit.head.value
    found = Chosen(source, qkv, None if head == AVERAGE else min(head, qkv.heads - 1))
    if switch and qkv.causal and not Visit.causal.value and qkv.n > 1:
        st.caption(f":material/visibility: {unmasked(compute.future_share(source, head=found.head), found.head)}")
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
    now = Visit.now()
    if now.input == "text":
        last = ac.inputs.models.layer_count(now.model) - 1
        return TextSource(now.text, now.model, min(now.layer, last))
    if now.input == "synthetic":
        spec = SyntheticSpec(
            kind=now.kind, n=now.n, d=now.d, heads=now.heads, sharpness=now.sharpness, seed=now.seed, rope=now.rope
        )
        return SyntheticSource(spec)
    upload: UploadSource = st.session_state[UPLOAD]
    return upload


def _text() -> None:
    names = {"english": _("English"), "repeats": _("Repeats"), "chinese": _("Chinese"), "long": _("Long")}
    st.session_state["preset"] = next(
        (name for name, text in presets.texts().items() if text == Visit.text.value), None
    )
    st.pills(_("Start from"), list(names), key="preset", format_func=names.__getitem__, on_change=_take_preset)
    Visit.text.draw(height=150)
    models = {info.key: info for info in ac.inputs.models.BUILT_IN}
    model = Visit.model.value
    Visit.model.draw(
        options=list(models) + ([model] if model not in models else []),
        format_func=lambda key: models[key].title if key in models else key,
        accept_new_options=current().hub_models,
        on_change=_take_model,
        help=_("Type owner/name for any other model from the hub; it is downloaded once.")
        if current().hub_models
        else None,
    )
    if model in models:
        st.caption(_(models[model].note))


def _take_preset() -> None:
    if preset := st.session_state["preset"]:
        take_text(presets.texts()[preset])


def _take_model() -> None:
    # A model that writes from left to right hides the future; one that reads both ways does not.
    known = {info.key: info for info in ac.inputs.models.BUILT_IN}
    if Visit.model.value in known:
        Visit.causal.set(known[Visit.model.value].causal)


def _synthetic() -> None:
    summaries = {kind.key: kind.summary for kind in KINDS}
    st.caption(_(summaries[Visit.kind.draw()]))
    Visit.n.draw()
    left, right = st.columns(2)
    with left:
        Visit.d.draw()
    with right:
        Visit.heads.draw()
    Visit.sharpness.draw()
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        Visit.seed.draw()
    with right:
        Visit.rope.draw()


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
    source = _source()
    layers = source.layer_count
    if layers > 1:
        Visit.layer.set(min(Visit.layer.value, layers - 1))
    Visit.head.set(min(Visit.head.value, qkv.heads - 1))
    columns = iter(st.columns(2))
    if layers > 1:
        with next(columns):
            Visit.layer.draw(options=range(layers))
    with next(columns):
        Visit.head.draw(
            options=range(AVERAGE, qkv.heads), format_func=lambda head: _("average") if head == AVERAGE else str(head)
        )
    here = (Visit.layer.value if layers > 1 else 0, Visit.head.value)
    pictures = compute.head_miniatures(source.at_layer(0), Visit.causal.value)  # they show every layer
    thumbnail_board(pictures, selected=here, key="heads.board", on_choose=_take_head)


def _take_head(choice: tuple[int, int]) -> None:
    layer, head = choice
    Visit.head.set(head)
    if Visit.input.value == "text":  # elsewhere there is one layer, and the text's own layer stays
        Visit.layer.set(layer)
