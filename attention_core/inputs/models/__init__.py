"""Language models that turn text into queries, keys and values: two built-in models, an optional one, and hub models.

Hub models are those of the Hugging Face hub. transformers is imported when the first model is loaded, so that the rest
of the library starts fast.
"""

import threading
from functools import cache, lru_cache

from attention_core import limits
from attention_core.errors import ModelError, name_hint
from attention_core.inputs.models import e5, minilm, smollm2
from attention_core.inputs.models.info import NAME, LoadedModel, ModelInfo

__all__ = [
    "BUILT_IN",
    "DEFAULT_MODELS",
    "LoadedModel",
    "ModelInfo",
    "are_default_weights_installed",
    "is_model_allowed",
    "layer_count",
    "load",
]

DEFAULT_MODELS: tuple[ModelInfo, ...] = (minilm.INFO, smollm2.INFO)
"""The models whose weights ``requirements-models.txt`` installs."""
BUILT_IN: tuple[ModelInfo, ...] = (*DEFAULT_MODELS, *([e5.INFO] if e5.WEIGHTS.are_installed() else []))
"""The models to choose from. The optional one is offered only if its weights are installed."""

_READERS = {minilm.INFO.key: minilm.read, smollm2.INFO.key: smollm2.read, e5.INFO.key: e5.read}
# Each model has a lock of its own, so that a download of minutes does not block models that are already loaded.
_LOCKS = {key: threading.Lock() for key in (*_READERS, "hub")}


def load(model: str) -> LoadedModel:
    """Load a model, once per process even if several threads ask for it.

    Args:
        model: key of a built-in model, or ``owner/name`` of a model on the Hugging Face hub.

    Raises:
        ModelError: if there is no such model, it is not available, or a package that models need is not installed.
    """
    try:
        return _load_once(model)
    except ModuleNotFoundError as error:
        raise ModelError(
            "Trained models need the package {package}, which is not installed. Run: "
            "pip install 'attention-lab[models]'",
            package=error.name,
        ) from error


def _load_once(model: str) -> LoadedModel:
    if model in _READERS:
        with _LOCKS[model]:
            return _built_in(model)
    if "/" not in model:
        raise ModelError(
            "There is no built-in model {name!r}. {hint} Write a model of the Hugging Face hub as owner/name.",
            name=model[:80],
            hint=name_hint(model, _READERS),
        )
    with _LOCKS["hub"]:
        return _from_hub(model)


def is_model_allowed(model: str) -> bool:
    """Return whether a model is built in, or is a valid hub name in a profile that allows hub models."""
    return model in _READERS or (limits.current().hub_models and NAME.fullmatch(model) is not None)


def are_default_weights_installed() -> bool:
    """Return whether the weights of MiniLM, the default model, are installed."""
    return minilm.WEIGHTS.are_installed()


def layer_count(model: str) -> int:
    """Return the number of attention layers of a model; a model that is not built in is loaded for this.

    Raises:
        ModelError: if there is no such model or it is not available.
    """
    known = {info.key: info.layers for info in BUILT_IN}
    return known[model] if model in known else load(model).info.layers


@cache
def _built_in(key: str) -> LoadedModel:
    return _READERS[key]()


@lru_cache(maxsize=2)  # at most two, because a model may take gigabytes of memory
def _from_hub(name: str) -> LoadedModel:
    from attention_core.inputs.models import hub  # not imported at the top, because it imports transformers

    return hub.read(name)
