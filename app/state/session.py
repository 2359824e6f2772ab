"""The options that all pages share: the input, the chosen attention variants, and the switch of the causal mask.

They are stored in the visitor's session, and links carry them.
"""

import base64
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

import attention_core as ac
from app.state import presets
from app.state.controls import Options, choice, int_choice, integer, link_only_option, pills, selection, switch
from app.state.link_fields import Field, TruncatedError, number, one_of, single_word
from app.words.i18n import LANGUAGE, N_, _, enumeration, languages
from attention_core.inputs import ImageSource, Source, SyntheticSource, image, models
from attention_core.inputs.positions import ALIBI, NONE, OWN, ROPE
from attention_core.inputs.synthetic import KINDS, SyntheticSpec
from attention_core.inputs.trained import SEQUENCES, run_from_words, training_run, words_of
from attention_core.learning.train import TrainSpec
from attention_core.limits import Limits, current

LINK_TEXT = 12_000
"""Characters of compressed text that a link can carry: web servers refuse addresses longer than about 16,000."""
REFERENCE = "softmax"
OWN_PHOTO = "own"
"""Value of ``SharedOptions.photo`` for a photograph that the visitor has uploaded."""
PINNED = "row"
"""Name, in links and in the session state, of the pinned token of the Matrices page."""
AUTOMATIC = -1
"""Value of the pinned token if no token was chosen: the page then picks an informative one."""
DEFAULT_SPEC = SyntheticSpec()
BROWSER = "browser"
"""Value of the language if the visitor has not chosen one, so that the browser's is used."""


def variant_field(accepts: Callable[[ac.Variant], bool], default: str) -> Field:
    """Return a field for one variant with its settings.

    Only variants for which ``accepts`` returns True are allowed.
    """

    def read(words: list[str]) -> ac.Attention:
        attention = ac.from_word(single_word(words))
        if not accepts(attention.variant):
            raise ValueError
        return attention

    return Field(ac.get(default), read, lambda attention: [attention.word])


def read_model(words: list[str]) -> str:
    """Return the model that a link names; raise ValueError if the profile of limits does not allow it."""
    name = single_word(words)
    if not models.is_model_allowed(name):
        raise ValueError
    return name


def write_model(name: str) -> list[str]:
    """Return a model's strings in a link: its name, or an empty list if the profile of limits forbids the model."""
    return [name] if models.is_model_allowed(name) else []


def is_allowed_model_name(name: object) -> bool:
    """Return whether a value is a model name that the session may hold.

    If visitors may type any name of a model, all names are allowed, and the page shows an error for an unknown one.
    """
    return isinstance(name, str) and (models.is_model_allowed(name) or current().hub_models)


def read_text(words: list[str]) -> str:
    """Return the text for its string in a link: a preset for ``@name``, or the text that ``write_text`` packed."""
    word = single_word(words)
    if word.startswith("@"):
        return presets.texts()[word[1:]]
    packed = base64.urlsafe_b64decode(word.encode("ascii") + b"=" * (-len(word) % 4))
    decompressor = zlib.decompressobj()
    text = decompressor.decompress(packed, _max_bytes())
    if decompressor.unconsumed_tail or not decompressor.eof:
        raise ValueError
    return text.decode()


def write_text(text: str) -> list[str]:
    """Return a text's string in a link: ``@name`` of a preset, or the packed text.

    Only the beginning of a long text is packed: the characters that pages read, or fewer if the link has no room.
    """
    for name, preset in presets.texts().items():
        if text == preset:
            return ["@" + name]
    text = text[: current().text_characters]
    while len(packed := _pack(text)) > LINK_TEXT:
        text = text[: len(text) * LINK_TEXT * 19 // (len(packed) * 20)]  # 5 % less than the average character needs
    return [packed]


def _pack(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return base64.urlsafe_b64encode(zlib.compress(data, 9)).decode().rstrip("=")


def _max_bytes() -> int:
    """Return the largest number of bytes to which a link's text may unpack."""
    return 4 * current().text_characters


def read_variants(words: list[str]) -> tuple[ac.Attention, ...]:
    """Return a link's variants in order, each once, with softmax first if it is missing.

    Raises:
        TruncatedError: if the returned list would be longer or shorter than the link's; it holds the list to show.
    """
    by_key = {attention.key: attention for attention in map(ac.from_word, words)}
    if REFERENCE not in by_key:
        by_key = {REFERENCE: ac.get(REFERENCE)} | by_key
    variants = tuple(by_key.values())[: current().compared_variants]
    if len(words) != len(variants):
        raise TruncatedError(variants)
    return variants


def first_variants() -> tuple[ac.Attention, ...]:
    """Return the variants of a first visit: the reference, and one sparse, one linear and one low-rank variant."""
    return (ac.get("softmax"), ac.get("local"), ac.get("linear"), ac.get("nystrom", landmarks=16))


def default_variants() -> tuple[ac.Attention, ...]:
    """Return the variants for an address that has a query but no variants: softmax and 7 others of several families.

    Existing links depend on this list, so it must not change.
    """
    return tuple(
        ac.get(key) for key in ("softmax", "linear", "efficient", "local", "atrous", "sparse", "topk", "nystrom")
    )


def read_run(words: list[str]) -> TrainSpec:
    """Return the training run of a link; raise ValueError if the profile of limits does not allow it."""
    try:
        return run_from_words(words)
    except ac.LabError as error:
        raise ValueError(str(error)) from None


def is_run_allowed(spec: object) -> bool:
    """Return whether a value is a training run that the profile of limits allows."""
    return isinstance(spec, TrainSpec) and _is_run_allowed(spec, current())


@lru_cache(maxsize=256)
def _is_run_allowed(spec: TrainSpec, _profile: Limits) -> bool:
    # Cached, because this check would otherwise take 5 % of each run of the script.
    try:
        return run_from_words(words_of(spec)) == spec
    except ac.LabError:
        return False


def kinds() -> dict[str, str]:
    """Return the titles of the kinds of synthetic sequences, by key."""
    return {kind.key: _(kind.title) for kind in KINDS}


class SharedOptions(Options, shared=1):
    """The options that every page has: the input, the variants, the causal switch."""

    input = pills(lambda: {kind.key: kind.key for kind in Source.__subclasses__() if kind.is_offered}, N_("Input"))
    text = link_only_option(
        lambda: Field(
            presets.texts()["english"],
            read_text,
            write_text,
            describe_allowed=lambda: _(
                "a text in the lab's compressed form, with at most {n:,} characters before compression, or the name of "
                "an example: {names}",
                n=current().text_characters,
                names=enumeration(f"@{name}" for name in presets.texts()),
            ),
            opening=presets.texts()["story"],
        ),
        N_("Your text"),
        widget=st.text_area,
    )
    model = link_only_option(
        lambda: Field("minilm", read_model, write_model, accepts=is_allowed_model_name),
        N_("Model"),
        widget=st.selectbox,
    )
    layer = int_choice(presets.LAYER, 0, 999, N_("Layer"))
    head = int_choice(presets.HEAD, -1, 999, N_("Head"))
    kind = selection(kinds, N_("Kind"), default=DEFAULT_SPEC.kind)
    n = integer(DEFAULT_SPEC.n, 1, lambda: current().matrix_tokens, N_("Tokens n"), widget=st.slider)
    d = integer(DEFAULT_SPEC.d, 2, lambda: current().head_size, N_("Head size d"))
    heads = integer(DEFAULT_SPEC.heads, 1, lambda: current().heads, N_("Heads"))
    sharpness = link_only_option(
        lambda: number(DEFAULT_SPEC.sharpness, 0.0, 16.0),
        N_("Sharpness"),
        widget=st.slider,
        arguments=lambda: {"min_value": 0.0, "max_value": 16.0, "step": 0.25},
        help=N_(
            "Factor by which the logits are multiplied. A larger factor concentrates the weight of each row on fewer "
            "keys."
        ),
    )
    seed = integer(DEFAULT_SPEC.seed, 0, 2**31 - 1, N_("Seed"))
    rope = switch(
        DEFAULT_SPEC.rope, N_("RoPE"), help=N_("Rotates queries and keys by position, as in Llama (arXiv 2104.09864).")
    )
    trained = link_only_option(
        lambda: Field(
            training_run("recall", rate=0.01, steps=200),
            read_run,
            words_of,
            accepts=is_run_allowed,
            describe_allowed=lambda: _(
                "a task, a variant that can be trained on this task, and training settings, for example steps~200, "
                "with at most {n:,} steps",
                n=current().learn_steps,
            ),
        )
    )
    sequence = integer(
        0,
        0,
        SEQUENCES - 1,
        N_("Sequence"),
        help=N_("Number of the test sequence that the trained model reads. Test sequences are not used in training."),
    )
    positions = selection(
        {OWN: N_("original"), NONE: N_("no RoPE"), ROPE: N_("RoPE"), ALIBI: N_("ALiBi")},
        N_("Positions"),
        help=N_(
            "How positions affect attention. RoPE (arXiv 2104.09864) rotates queries and keys by angles that grow "
            "with their positions. ALiBi (arXiv 2108.12409) subtracts a multiple of the distance from each logit. "
            "Uploaded queries and keys are assumed to have no position encoding."
        ),
    )
    variants = link_only_option(
        lambda: Field(
            default_variants(),
            read_variants,
            lambda chosen: [attention.word for attention in chosen],
            describe_allowed=lambda: _("up to {n} variants, each once", n=current().compared_variants),
            opening=first_variants(),
        )
    )
    causal = switch(
        False, N_("Causal"), help=N_("Hides later tokens: each query attends only to its own token and earlier tokens.")
    )
    special = switch(
        True,
        N_("Special tokens"),
        help=N_(
            "Shows the special tokens that the tokenizer adds, such as [CLS]. If they are hidden, the other weights "
            "of each row are scaled so that the row keeps its sum."
        ),
    )
    picture = choice({"png": "PNG", "svg": "SVG"}, N_("Format of the camera button"))
    photo = choice({"portrait": N_("Portrait"), "camera": N_("Camera"), OWN_PHOTO: N_("Own")}, N_("Photograph"))
    grid = int_choice(
        ImageSource.size,
        image.MIN_SIDE,
        lambda: current().picture_side,
        N_("Pixel grid"),
        widget=st.select_slider,
        layout={"format_func": "{0} × {0}".format},
        help=N_("Height and width of the image in pixels. Every pixel is a token."),
    )
    patch = choice(
        {side: f"{side} × {side}" for side in (5, 3, 7)},
        N_("Patch"),
        help=N_(
            "Side of the square patch of pixels around each pixel. The patch is both the query and the key of that "
            "pixel."
        ),
    )
    noise = link_only_option(
        lambda: number(ImageSource.noise, 0.0, 0.5),
        N_("Noise"),
        widget=st.slider,
        arguments=lambda: {"min_value": 0.0, "max_value": 0.5, "step": 0.01},
        help=N_("Standard deviation of the noise that is added to each pixel. Black is 0 and white is 1."),
    )
    strength = link_only_option(
        lambda: number(ImageSource.strength, 0.02, 1.0),
        N_("Filter strength h"),
        widget=st.slider,
        arguments=lambda: {"min_value": 0.02, "max_value": 1.0, "step": 0.01},
        help=N_(
            "The logit of two pixels is minus the mean squared difference of their patches, with more weight on "
            "central pixels, divided by h². With a smaller h, the most similar patches get more of the attention."
        ),
    )


def opening_fields(opening: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields that all pages have; ``opening`` holds one page's values for an address without a query.

    If the default model's weights are not installed, such an address opens with synthetic input.
    """
    if not models.are_default_weights_installed():
        opening = {SharedOptions.input.name: SyntheticSource.key, **opening}
    fields = Options.shared()
    return fields | {name: replace(fields[name], opening=value) for name, value in opening.items()}


class LanguageOptions(Options, shared=3):
    """The language of all texts, in the link to every page. It changes nothing that a page computes."""

    language = link_only_option(
        lambda: replace(one_of(BROWSER, [BROWSER, *languages()]), presentation_only=True), link=LANGUAGE
    )


class HashOptions(Options):
    """The option of pages that show one hashing round of a variant that hashes all tokens several times."""

    hash_round = int_choice(0, 0, 63, N_("Hashing round"), layout={"width": 120})


def opens_causal(variant: ac.Variant) -> bool:
    """Return whether the page Inside, and links to it, turn the causal mask on for a variant.

    This is so for the recurrent variants of the family ``gated``.
    """
    return variant.family == "gated"


def with_chosen_settings(key: str) -> ac.Attention:
    """Return the variant ``key`` with the visitor's settings if it is among the chosen ones, else with its defaults."""
    return next((attention for attention in SharedOptions.variants.value if attention.key == key), None) or ac.get(key)


def set_text(text: str) -> None:
    """Change the input text and reset the pinned token, whose position refers to the old text."""
    SharedOptions.text.set(text)
    st.session_state[PINNED] = AUTOMATIC
