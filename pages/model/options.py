"""The options and widgets of the Model page, and the ``Question`` class, which describes one measurement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.reading_board import ReadingState
from app.state import link_fields, presets
from app.state.controls import Control, Options, choice, index, int_choice, integer, link_only_option, selection, switch
from app.state.link_fields import Field, TruncatedError
from app.state.session import SharedOptions, read_text, write_text
from app.ui.export_metadata import shorten
from app.ui.scope import Scope
from app.words.i18n import C_, N_, _, _n
from app.words.labels import in_words, setting_name
from attention_core import registry
from attention_core.experiments import embedding, swap
from attention_core.inputs import models
from attention_core.inputs.trained import words_of as words_of_run
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import TrainSpec
from attention_core.limits import current
from attention_core.model_patching import UNIFORM, from_word, layer_range

OWN_TEXT = "own"
DEFAULT_WORDS = ("local~window~64", "sink~window~64~sinks~1")
"""Variants of a first visit, as in links: a sliding window, and the same window with one attention sink.

Such a text, with a variant's key and its changed settings, is called a word.
"""
ENCODER_WORDS = ("local~window~2", "linear", "nystrom~landmarks~8")
"""Variants of a first visit in the encoder."""
REPLACEMENT_WORDS = ("local~window~4", "linear", UNIFORM)
"""Variants of a first visit in the tiny model that is trained on this server."""
ALL_LAYERS = -1
"""Value of the option ``replaced`` if all layers are replaced."""
DEFAULT_QUERY = "A child is looking for a lost key."
TEXTS = {
    "long": C_("example text", "Long"),
    "story": C_("example text", "Story"),
    "english": C_("example text", "English"),
    "repeats": C_("example text", "Repeats"),
    "chinese": C_("example text", "Chinese"),
    OWN_TEXT: N_("Your text"),
}
ORIGINAL = N_("Original model")
"""Name of the unchanged model on screen."""


def depth() -> int:
    """Return the number of layers of the decoder."""
    return models.layer_count(swap.MODEL)


def read_words(values: list[str], *, causal: bool) -> tuple[str, ...]:
    """Return the words (variants) of a link without duplicates.

    Args:
        values: the values of the query parameter.
        causal: whether all variants have to be causal.

    Raises:
        ValueError: if a variant has to be causal and is not.
        TruncatedError: if there are too many variants.
    """
    if values == ["none"]:
        return ()
    words = tuple(dict.fromkeys(from_word(word).word for word in values))
    if causal and len(swap.causal_words(words)) < len(words):
        raise ValueError
    kept_words = words[: current().swap_variants]
    if len(values) > len(kept_words):
        raise TruncatedError(kept_words)
    return kept_words


def layers_control(count: Callable[[], int]) -> Control[tuple[int, int]]:
    """Return the control of the first and last replaced layer, among ``count()`` layers."""

    def read(given: list[str]) -> tuple[int, int]:
        layers = layer_range(link_fields.single_word(given), count())
        return layers[0], layers[-1]

    def accepts(value: object) -> bool:
        if not isinstance(value, tuple | list) or len(value) != 2 or not all(isinstance(end, int) for end in value):
            return False
        return 0 <= value[0] <= value[1] < count()

    return link_only_option(
        lambda: Field((0, count() - 1), read, lambda ends: [f"{ends[0]}-{ends[1]}"], accepts=accepts),
        C_("choice of layers", "Layers"),
        widget=st.slider,
        arguments=lambda: {"min_value": 0, "max_value": count() - 1, "width": 220},
        help=N_("Softmax is replaced in these layers. Layers are numbered from 0."),
    )


def words_control(default: tuple[str, ...], *, causal: bool) -> Control[tuple[str, ...]]:
    """Return the control of the variants that replace softmax."""
    return link_only_option(
        lambda: Field(
            default,
            partial(read_words, causal=causal),
            lambda words: list(words) or ["none"],
            describe_allowed=lambda: _("up to {n} variants, each once", n=current().swap_variants),
        )
    )


def encoder_depth() -> int:
    """Return the number of layers of the encoder."""
    return models.layer_count(embedding.ENCODER)


class ModelOptions(Options, prefix="m_"):
    """The options that a link to this page carries in addition to those of all pages."""

    view = choice(
        {
            "text": N_("Perplexity"),
            "copying": N_("Copying"),
            "continuation": N_("Generation"),
            "layers": N_("Layers"),
            "budget": N_("Budget"),
            "predicts": N_("Output error"),
            "encoder": N_("Embeddings"),
            "trained": N_("Tiny model"),
        },
        N_("View"),
    )
    words = words_control(DEFAULT_WORDS, causal=True)
    layers = layers_control(depth)
    text = selection(TEXTS, N_("Text"), layout={"width": 150})
    live = switch(
        False,
        N_("Recompute"),
        help=N_(
            "For built-in texts, the page shows recorded results. Turn this on to compute the results on "
            "this machine instead."
        ),
    )
    shown = integer(0, 0, lambda: current().swap_variants - 1, "")
    against = integer(0, 0, lambda: current().swap_variants, "")
    token = index(lambda: current().swap_tokens)
    edge = selection(
        {
            "bottom": N_("Layers from bottom"),
            "middle": N_("Layers from middle"),
            "top": N_("Layers from top"),
            "single": N_("One layer at a time"),
        },
        N_("Layers replaced"),
        layout={"width": 210},
    )
    encoders = words_control(ENCODER_WORDS, causal=False)
    encoder_layers = layers_control(encoder_depth)
    query = link_only_option(
        lambda: Field(DEFAULT_QUERY, read_text, write_text, accepts=lambda text: isinstance(text, str)),
        N_("Query sentence"),
        help=N_(
            "Ten fixed sentences are ranked by the cosine similarity of their embeddings with the embedding of "
            "this sentence."
        ),
        widget=st.text_input,
    )
    replacements = words_control(REPLACEMENT_WORDS, causal=False)
    replaced = int_choice(ALL_LAYERS, ALL_LAYERS, 7, N_("Layers replaced"), layout={"width": 150})


@dataclass(frozen=True, kw_only=True)
class Question:
    """Definition of a measurement according to the options: the text, the variants and the replaced layers.

    Attributes:
        text: the text that the model reads.
        title: name of the text on screen.
        words: words of the variants that replace softmax.
        layers: indices of the replaced layers.
        live: whether to compute results even if they are recorded.
        options: the page's options.
        headline: the element below the title in which the findings are shown; None outside the page.
    """

    text: str
    title: str
    words: Sequence[str]
    layers: tuple[int, ...]
    live: bool
    options: ModelOptions
    headline: DeltaGenerator | None = None

    @property
    def layers_text(self) -> str:
        """The replaced layers as text, such as ``layers 10 to 20``."""
        return layers_text(self.layers, depth())


def current_question() -> Question:
    """Return what to measure according to the current options."""
    return question_of(ModelOptions.current(), SharedOptions.text.value)


def question_of(options: ModelOptions, own_text: str) -> Question:
    """Return what to measure according to options and the visitor's own text."""
    low, high = options.layers
    return Question(
        text=own_text if options.text == OWN_TEXT else presets.texts()[options.text],
        title=_(TEXTS[options.text]),
        words=options.words,
        layers=tuple(range(low, high + 1)),
        live=options.live,
        options=options,
    )


def scope() -> Scope:
    """Return the scope of the page: the variants that replace softmax, the model, its layers and the text."""
    options = ModelOptions.current()
    if options.view == "encoder":
        low, high = options.encoder_layers
        values = {"text": shorten(options.query), "model": model_title(embedding.ENCODER), "layers": f"{low}-{high}"}
        return Scope(variants=tuple(options.encoders), causal=False, facts=values)
    if options.view == "trained":
        return trained_scope(options, SharedOptions.trained.value)
    question = current_question()
    values = {"text": shorten(question.text), "model": model_title(swap.MODEL)}
    if options.view != "layers":  # In the Layers view, each row names its replaced layers.
        values["layers"] = f"{question.layers[0]}-{question.layers[-1]}"
    return Scope(variants=tuple(question.words), causal=True, facts=values)


def trained_scope(options: ModelOptions, spec: TrainSpec) -> Scope:
    """Return the scope of the view of the tiny model that is trained on this server."""
    layers = "all" if options.replaced == ALL_LAYERS else str(options.replaced)
    values = {"model": " ".join(words_of_run(spec)), "layers": layers}
    return Scope(variants=tuple(options.replacements), causal=TASKS[spec.model.task].causal, facts=values)


def model_title(key: str) -> str:
    """Return the title of a built-in model."""
    return next(info.title for info in models.BUILT_IN if info.key == key)


def layers_text(layers: Sequence[int], count: int) -> str:
    """Return layers of a model with ``count`` layers as text: ``all 30 layers``, ``layer 7``, ``layers 10 to 20``."""
    if len(layers) == count:
        return _("all {n} layers", n=count)
    if len(layers) == 1:
        return _("layer {layer}", layer=layers[0])
    return _("layers {first} to {last}", first=layers[0], last=layers[-1])


def display_name(word: str) -> str:
    """Return the name of a variant on screen, with its main setting (budget) and other changed settings."""
    if word == UNIFORM:
        return _("Equal weights")
    if word == swap.BASELINES[1]:
        return _("Random Synthesizer")
    attention = registry.from_word(word)
    budget, changed = attention.variant.budget, attention.params.changed()
    names = dict.fromkeys([*([budget.name] if budget else []), *changed])
    values = (f"{setting_name(name)} {_(str(getattr(attention.params, name)))}" for name in names)
    return " · ".join([_(attention.title), *values])


def short_name(word: str, words: Sequence[str]) -> str:
    """Return the name of a variant on screen, without its settings unless two of ``words`` have the same name."""
    title, *others = (display_name(each).partition(" · ")[0] for each in dict.fromkeys((word, *words)))
    return display_name(word) if title in others else title


def name_in_sentence(word: str, words: Sequence[str]) -> str:
    """Return the short name of a variant among ``words`` within a sentence, with any settings in words."""
    return in_words(short_name(word, words))


def select_reading(reported: ReadingState) -> None:
    """Store which variant, token and baseline of the colours the visitor has selected on the board of readings."""
    ModelOptions.shown.set(reported.shown)
    ModelOptions.against.set(reported.baseline)
    ModelOptions.token.set(reported.token if reported.token >= 0 else None)


def tokens_text(tokens: int, total: int) -> str:
    """Return how much of a text is read, such as ``the first 64 of 80 tokens``."""
    if tokens == total:
        return _n("{n} token", "{n} tokens", n=tokens)
    return _n("the first {tokens} of {n} token", "the first {tokens} of {n} tokens", n=total, tokens=tokens)
