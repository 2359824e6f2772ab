"""The forms of the input panel, one for each kind of input, such as text, synthetic data or an image."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

import attention_core as ac
from app.jobs import cached
from app.state import presets, url
from app.state.session import OWN_PHOTO, SharedOptions, kinds, set_text
from app.ui.sources import trained_form
from app.words.i18n import C_, N_, _, escape_markdown
from attention_core.errors import InputError
from attention_core.inputs import image
from attention_core.inputs.image_source import ImageSource
from attention_core.inputs.source import Source, SyntheticSource, TextSource, UploadSource
from attention_core.inputs.synthetic import KINDS, SyntheticSpec
from attention_core.inputs.trained import TrainedSource
from attention_core.limits import current

UPLOAD = "upload.file"
"""Session key of the uploaded file, without its data."""
PHOTO = "photo.file"
"""Session key of the uploaded photograph, without its data."""
GRID_STEP = 8
"""Difference in pixels between two neighbouring sizes on the slider of the pixel grid's side."""


@dataclass(frozen=True)
class Form:
    """The form for one kind of input.

    Attributes:
        title: label of the kind in the choice of kinds.
        draw: draws the widgets.
        source: returns the source that the widgets describe; None while it is incomplete.
        name: returns the input's name for the top of a page, as Markdown.
        missing: message of the page while there is no source.
        make: creates a missing input, for example by training a model; None if only the visitor can provide it.
    """

    title: str
    draw: Callable[[], None]
    source: Callable[[SharedOptions], Source | None]
    name: Callable[[], str]
    missing: str = ""
    make: Callable[[], None] | None = None


def forms() -> dict[str, Form]:
    """Return the forms for all kinds of input, by the name of the kind in links."""
    return {
        TextSource.key: Form(_("Text"), _draw_text, _text_source, _model_name),
        SyntheticSource.key: Form(
            _("Synthetic"), _draw_synthetic, _synthetic_source, lambda: kinds()[SharedOptions.kind.value]
        ),
        UploadSource.key: Form(
            _("File"),
            _draw_upload,
            _upload_source,
            lambda: escape_markdown(st.session_state[UPLOAD].name),
            missing=_(
                "Upload an .npz file with arrays q, k and v in the input panel. A file is not kept after a reload, so "
                "upload an earlier file again."
            ),
        ),
        TrainedSource.key: Form(
            _("Trained"), trained_form.draw, trained_form.source, trained_form.name, make=trained_form.train
        ),
        ImageSource.key: Form(
            _("Image"),
            _draw_image,
            _image_source,
            _image_name,
            missing=_(
                "Upload a PNG or JPEG image in the input panel. A file is not kept after a reload, so upload an "
                "earlier image again."
            ),
        ),
    }


def _text_source(options: SharedOptions) -> Source:
    last_layer = ac.inputs.models.layer_count(options.model) - 1
    return TextSource(options.text, options.model, min(options.layer, last_layer), positions=options.positions)


def _model_name() -> str:
    titles = {info.key: info.title for info in ac.inputs.models.BUILT_IN}
    return titles.get(SharedOptions.model.value) or escape_markdown(SharedOptions.model.value)


def _synthetic_source(options: SharedOptions) -> Source:
    spec = SyntheticSpec(
        kind=options.kind,
        n=options.n,
        d=options.d,
        heads=options.heads,
        sharpness=options.sharpness,
        seed=options.seed,
        rope=options.rope,
    )
    return SyntheticSource(spec, positions=options.positions)


def _upload_source(options: SharedOptions) -> Source | None:
    upload: UploadSource | None = st.session_state.get(UPLOAD)
    if upload is None:
        return None
    data = upload.data or _load_upload(upload.digest, upload.name)
    return replace(upload, data=data, positions=options.positions)


def _load_upload(digest: str, name: str) -> bytes:
    """Return the bytes of an uploaded file; raise InputError if they were removed to make room."""
    data = cached.uploads().known(digest)
    if data is None:
        text = N_(
            "{file} was removed, because the files of all visitors together may use at most {most:.0f} MiB. Upload "
            "the file again."
        )
        raise InputError(text, file=name, most=current().uploads_bytes / 2**20)
    return data


def _image_source(options: SharedOptions) -> ImageSource | None:
    photo = ImageSource(options.photo)
    if options.photo == OWN_PHOTO:
        upload: ImageSource | None = st.session_state.get(PHOTO)
        if upload is None:
            return None
        photo = replace(upload, data=upload.data or _load_upload(upload.digest, upload.photo))
    return replace(
        photo,
        size=options.grid,
        patch=options.patch,
        noise=options.noise,
        seed=options.seed,
        strength=options.strength,
        positions=options.positions,
    )


def _image_name() -> str:
    name = SharedOptions.photo.label_of(SharedOptions.photo.value)
    if SharedOptions.photo.value == OWN_PHOTO and PHOTO in st.session_state:
        name = escape_markdown(st.session_state[PHOTO].photo)
    return _("{name}, noise {noise:g}", name=name, noise=SharedOptions.noise.value)


def has_upload(kind: str) -> bool:
    """Return whether an input of this kind is an uploaded file, which no link contains."""
    return kind == UploadSource.key or (kind == ImageSource.key and SharedOptions.photo.value == OWN_PHOTO)


def _draw_text() -> None:
    titles = {
        "story": _(C_("example text", "Story")),
        "english": _(C_("example text", "English")),
        "repeats": _(C_("example text", "Repeats")),
        "sequence": _(C_("example text", "Repeated sequence")),
        "chinese": _(C_("example text", "Chinese")),
        "long": _(C_("example text", "Long")),
    }
    key = url.sync_widget(
        "preset", next((name for name, text in presets.texts().items() if text == SharedOptions.text.value), None)
    )
    st.pills(_("Example"), list(titles), key=key, format_func=titles.__getitem__, on_change=_use_preset, args=(key,))
    SharedOptions.text.draw(height=150)
    models = {info.key: info for info in ac.inputs.models.BUILT_IN}
    model = SharedOptions.model.value
    SharedOptions.model.draw(
        options=list(models) + ([model] if model not in models else []),
        format_func=lambda key: models[key].title if key in models else key,
        accept_new_options=current().hub_models,
        on_change=_match_causal,
        help=_("Type owner/name to download any other model from Hugging Face.") if current().hub_models else None,
    )
    if model in models:
        st.caption(_(models[model].note))


def _use_preset(key: str) -> None:
    if preset := st.session_state[key]:
        set_text(presets.texts()[preset])


def use_model(model: str) -> None:
    """Choose a built-in model for the text and adapt the causal switch, as the menu of models does."""
    SharedOptions.model.set(model)
    _match_causal()


def _match_causal() -> None:
    # The causal switch is set to match the model: models that generate text hide later tokens, and encoders do not.
    models = {info.key: info for info in ac.inputs.models.BUILT_IN}
    if SharedOptions.model.value in models:
        SharedOptions.causal.set(models[SharedOptions.model.value].causal)


def _draw_synthetic() -> None:
    summaries = {kind.key: kind.summary for kind in KINDS}
    st.caption(_(summaries[SharedOptions.kind.draw()]))
    SharedOptions.n.draw()
    left, right = st.columns(2)
    with left:
        SharedOptions.d.draw()
    with right:
        SharedOptions.heads.draw()
    SharedOptions.sharpness.draw()
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        SharedOptions.seed.draw()
    with right:
        SharedOptions.rope.draw()


def _draw_upload() -> None:
    # With ``type="npz"``, the browser would refuse a file of another type without a reason, and show it next to a file
    # that is chosen later. Without ``type``, the page reports what is wrong with the file.
    file = st.file_uploader(
        _("File (.npz) with arrays q, k and v"),
        key="upload.widget",
        max_upload_size=current().upload_bytes // 2**20,
        help=_(
            "In cross-attention, k and v come from a different sequence than q, and the two sequences may differ in "
            "length. Optional arrays: tokens and key_tokens (labels), mask and key_mask (1 for a token, 0 for "
            "padding), causal."
        ),
    )
    if file is not None:
        _store(UPLOAD, UploadSource.of(file.name, file.getvalue()), file)
    elif UPLOAD in st.session_state:
        st.caption(_("Showing {name}", name=escape_markdown(st.session_state[UPLOAD].name)))
    st.download_button(
        _("Example file"), ac.inputs.example_npz(), "example.npz", icon=":material/download:", type="tertiary"
    )


def _draw_image() -> None:
    SharedOptions.photo.draw(width="stretch")
    if SharedOptions.photo.value == OWN_PHOTO:
        file = st.file_uploader(
            _("Image (PNG or JPEG)"),
            type=["png", "jpg", "jpeg"],
            key="photo.widget",
            max_upload_size=current().photo_bytes // 2**20,
        )
        if file is not None:
            _store(PHOTO, ImageSource.of(file.name, file.getvalue()), file)
        elif PHOTO in st.session_state:
            st.caption(_("Showing {name}", name=escape_markdown(st.session_state[PHOTO].photo)))
    side = SharedOptions.grid.value
    SharedOptions.grid.draw(options=sorted({*range(image.MIN_SIDE, current().picture_side + 1, GRID_STEP), side}))
    SharedOptions.patch.draw()
    SharedOptions.noise.draw()
    SharedOptions.strength.draw()
    SharedOptions.seed.draw()


def _store(key: str, source: UploadSource | ImageSource, file: UploadedFile) -> None:
    """Store a file in the uploads of all visitors, and its name and digest in the session under a key."""
    cached.uploads().get(source.digest, lambda: source.data)
    st.session_state[key] = replace(source, data=b"")
    # Streamlit would keep its own copy of the file as long as the session lasts, so the copy is removed.
    context = get_script_run_ctx()
    remove = getattr(getattr(context, "uploaded_file_mgr", None), "remove_file", None)
    if context is not None and remove is not None:
        remove(context.session_id, file.file_id)
