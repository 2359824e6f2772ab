"""A source of queries, keys and values: a tiny model, trained on a learning task, that reads one sequence of the task.

A training run is written as words in links and code: the task, the variant, then each number that differs from its
default, such as ``("recall", "local~window~16", "steps~200")``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Self

from attention_core import registry
from attention_core.errors import InputError, Name, Names, Notice, check_range, name_hint
from attention_core.formatting import N_
from attention_core.inputs.labels import readable
from attention_core.inputs.positions import OWN, Positions, Rope
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Load, Source, first_tokens
from attention_core.learning.learning_task import Batch
from attention_core.learning.model import POSITIONS, ModelSpec, refusal
from attention_core.learning.tasks import task as task_of
from attention_core.learning.train import EVALUATION_SEQUENCES, TrainSpec, evaluation_batch, model_of, train_until
from attention_core.limits import current
from attention_core.variant import SOFTMAX

SEQUENCES = EVALUATION_SEQUENCES
"""Number of sequences that a trained model can read."""
MAX_RATE = 1.0
"""Largest learning rate."""
# The settings of a training run that a link can change. The batch size is left out, because the training time grows
# with it.
_MODEL, _TRAINING = (
    tuple(each.name for each in fields(kind) if each.name not in ("model", "task", "word", "batch"))
    for kind in (ModelSpec, TrainSpec)
)


def training_run(task: str, word: str = SOFTMAX, **changed: Any) -> TrainSpec:  # noqa: ANN401 - the fields of the specs
    """Return the training run of a variant on a task.

    Args:
        task: key of the task.
        word: the variant and its settings.
        **changed: fields of ``TrainSpec`` and ``ModelSpec``; the others have the task's defaults.

    Raises:
        LabError: if the task or the variant does not exist, or a number is out of bounds.
    """
    defaults = _defaults(task, changed)
    for name in changed:
        if name not in defaults:
            raise InputError(
                "A training run has no setting {name!r}. {hint}", name=name[:40], hint=name_hint(name, defaults)
            )
    values = defaults | changed
    model_values = {name: value for name, value in values.items() if name in _MODEL}
    training_values = {name: value for name, value in values.items() if name in _TRAINING}
    spec = TrainSpec(model=ModelSpec(task=task, word=registry.from_word(word).word, **model_values), **training_values)
    check_run(spec)
    return spec


def _defaults(task: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default of every field that a run of this task can change.

    The default of ``tokens`` is the run's length: that in ``changes``, or else the task's default length.
    """
    task_ = task_of(task)
    values: dict[str, Any] = {each.name: each.default for each in (*fields(ModelSpec), *fields(TrainSpec))}
    values |= {"length": task_.length, "items": task_.items, "positions": task_.positions}
    current_values = values | dict(changes)
    values["tokens"] = current_values["length"]
    return {name: values[name] for name in (*_MODEL, *_TRAINING)}


def check_run(spec: TrainSpec) -> None:
    """Check that a model can be trained, and that the profile allows it.

    Raises:
        LabError: if the variant cannot be trained, or a number exceeds the profile's limit.
    """
    task, limits = task_of(spec.model.task), current()
    task.check(spec.length, spec.items)
    if reason := refusal(spec.model):
        title = registry.from_word(spec.model.word).title
        raise InputError("{title} cannot be trained on this task: {reason}", title=title, reason=reason)
    if spec.model.positions not in POSITIONS:
        raise InputError(
            "There is no position encoding {name!r}. {hint}",
            name=spec.model.positions[:40],
            hint=name_hint(spec.model.positions, POSITIONS),
        )
    size = spec.model.layers * spec.length * spec.model.width
    check_range(N_("steps"), spec.steps, 1, limits.learn_steps)
    check_range(N_("seed"), spec.seed, 0, 2**31 - 1)
    check_range(N_("learning rate"), spec.rate, 0.0, MAX_RATE)
    check_range(N_("tokens"), spec.model.tokens, 0, task.longest)
    check_range(N_("layers × sequence length × width"), size, 1, limits.learn_numbers)


def words_of(spec: TrainSpec) -> list[str]:
    """Return a training run as words: the task, the variant, and each changed field as ``name~value``.

    ``run_from_words`` is the inverse.
    """
    values = {name: getattr(spec.model, name) for name in _MODEL} | {name: getattr(spec, name) for name in _TRAINING}
    defaults = _defaults(spec.model.task, values)
    defaults["tokens"] = replace(spec.model, tokens=defaults["tokens"]).tokens
    changed = [f"{name}~{value}" for name, value in values.items() if value != defaults[name]]
    return [spec.model.task, spec.model.word, *changed]


def run_from_words(words: Sequence[str]) -> TrainSpec:
    """Return the training run that words describe: a task, a variant, and changed fields as ``name~value``.

    Raises:
        LabError: if the words describe no valid run, or the profile does not allow it.
    """
    if len(words) < 2:
        raise InputError("A training run needs a task and a variant, for example “recall softmax”.")
    task, word, *settings = words
    defaults, changed = _defaults(task, {}), {}
    for setting in settings:
        name, _, text = setting.partition("~")
        changed[name] = _parsed(name, text, defaults[name]) if name in defaults else text
    return training_run(task, word, **changed)


def _parsed(name: str, text: str, default: Any) -> Any:  # noqa: ANN401 - a value of the default's type
    if isinstance(default, bool):
        if text not in ("True", "False"):
            raise InputError("Invalid {name}: {value!r}. Choose True or False.", name=Name(name), value=text[:40])
        return text == "True"
    try:
        return type(default)(text)
    except ValueError:
        raise InputError("{name} is {text!r}. Write a number.", name=Name(name), text=text[:40]) from None


class _Layers(tuple[QKV, ...]):
    """The ``QKV`` of every layer of a model, and the number of bytes they hold."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for each in self for x in each.tensors)


@dataclass(frozen=True, repr=False)
class TrainedSource(Source):
    """A sequence that is not used in training, as one layer of a tiny trained model reads it.

    Attributes:
        spec: the training run.
        sequence: number of the sequence, below ``SEQUENCES``. The Learn page shows the attention matrices of
            sequence 0. The other sequences are among those on which the accuracy is measured.
        layer: layer, counted from 0.
        weights: the trained parameters as safetensors, ignored when sources are compared. If they are empty, the
            model is trained when the source is first read.
    """

    spec: TrainSpec
    sequence: int = 0
    layer: int = 0
    weights: bytes = field(default=b"", repr=False, compare=False, kw_only=True)

    key = "trained"

    def __post_init__(self) -> None:
        check_run(self.spec)
        check_range(Name("sequence"), self.sequence, 0, SEQUENCES - 1)
        check_range(Name("layer"), self.layer, 0, self.spec.model.layers - 1)

    @classmethod
    def of(cls, *words: str, sequence: int = 0, layer: int = 0, positions: Positions = OWN) -> Self:
        """Return the source of the training run that ``words`` describe, as in ``run_from_words``."""
        return cls(run_from_words(words), sequence, layer, positions=positions)

    def _load_original(self, tokens: int | None) -> QKV:
        return first_tokens(self._read()[self.layer], tokens)

    def _read(self) -> _Layers:
        task, inputs = task_of(self.spec.model.task), sequence_of(self.spec, self.sequence).inputs
        layers = model_of(self.spec, self.weights or trained_weights(self.spec)).qkv_by_layer(inputs)
        if not all(x.isfinite().all() for layer in layers for x in layer):
            raise InputError("Training failed: the weights are not finite. Choose another variant or fewer steps.")
        title = registry.from_word(self.spec.model.word).title
        notices: tuple[Notice, ...] = ()
        if self.spec.model.word != SOFTMAX:
            text = N_(
                "This model was trained with {title}. Its own attention matrix is that of {title}, not of softmax."
            )
            notices = (Notice(text, (("title", title),)),)
        if learned := Names(Notice(each.title) for each in self.spec.model.trainable):
            text = N_(
                "This model has also learned: {names}. This page does not use these learned parts. Instead, each "
                "variant uses the values of its settings."
            )
            notices += (Notice(text, (("names", learned),)),)
        return _Layers(
            QKV.of_tokens(
                q[0],
                k[0],
                v[0],
                tuple(map(readable, task.names(inputs[0]))),
                causal=task.causal,
                origin=f"model trained on {task.key}, layer {layer}",
                notices=notices,
            )
            for layer, (q, k, v) in enumerate(layers)
        )

    @property
    def layer_count(self) -> int:
        """The number of layers of the model."""
        return self.spec.model.layers

    def at_layer(self, layer: int) -> "TrainedSource":
        """Return the same sequence at another layer."""
        return replace(self, layer=layer)

    def layers(self, load: Load) -> Sequence[QKV]:
        """Return the ``QKV`` records of all layers from one forward pass."""
        return self.apply_positions(self._read())

    @property
    def own_rope(self) -> Rope | None:
        """The RoPE of the model, or None."""
        return Rope() if self.spec.model.positions == "rotary" else None

    @property
    def code(self) -> str:
        """The Python expression that makes this source again; it trains the model again."""
        words = ", ".join(map(repr, words_of(self.spec)))
        return (
            f"ac.inputs.TrainedSource.of({words}, sequence={self.sequence}, layer={self.layer}{self._positions_code})"
        )


def sequence_of(spec: TrainSpec, number: int) -> Batch:
    """Return one sequence that training does not use, ``[1, n]``; see ``TrainedSource.sequence``."""
    if number == 0:
        return evaluation_batch(spec, spec.length, spec.items, sequences=1)
    batch = evaluation_batch(spec, spec.length, spec.items)
    selected = slice(number, number + 1)
    return Batch(inputs=batch.inputs[selected], targets=batch.targets[selected])


@lru_cache(maxsize=32)
def trained_weights(spec: TrainSpec) -> bytes:
    """Train a model, once per process, and return its parameters as safetensors."""
    return train_until(spec, spec.steps)[1].weights
