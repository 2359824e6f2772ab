"""The parts of a tiny model that can be removed: the short convolution, the gate, the positions, and the last layer."""

from collections.abc import Callable
from dataclasses import replace

from attention_core import registry
from attention_core.attention import Attention
from attention_core.experiments.learning import Plan
from attention_core.learning.model import ModelSpec
from attention_core.learning.rates import rate
from attention_core.learning.train import TrainSpec
from attention_core.settings import Value

UNGATED: dict[str, Value] = {"gate": "constant", "decay": 1.0}
"""Settings at which a gate changes nothing."""


def _without_convolution(model: ModelSpec) -> ModelSpec:
    return replace(model, convolution=0)


def _without_gate(model: ModelSpec) -> ModelSpec:
    attention = registry.from_word(model.word)
    settings = {name: getattr(attention.params, name, None) for name in UNGATED}
    if None in settings.values() or settings == UNGATED:
        return model
    # With ``write="rest"``, a new value is multiplied by 1 minus the gate. Without a gate (a gate of 1), nothing would
    # be written, so the model keeps its gate.
    if getattr(attention.params, "write", "") == "rest":
        return model
    return replace(model, word=_ungated(attention).word)


def _ungated(attention: Attention) -> Attention:
    """Return a variant without its gate.

    This is another variant, if it equals one at the settings ``UNGATED``, or else the variant itself at these
    settings.
    """
    params = attention.params
    for case in attention.variant.special_cases:
        if case.settings == UNGATED:
            return registry.get(case.key, **case.other, **{each: getattr(params, each) for each in case.shared})
    return attention.with_settings(**UNGATED)


def _without_positions(model: ModelSpec) -> ModelSpec:
    return replace(model, positions="none")


def _with_one_layer_less(model: ModelSpec) -> ModelSpec:
    return replace(model, layers=max(1, model.layers - 1))


PARTS: dict[str, Callable[[ModelSpec], ModelSpec]] = {
    "convolution": _without_convolution,
    "gate": _without_gate,
    "positions": _without_positions,
    "layer": _with_one_layer_less,
}
"""Functions that return a model without one part, by part; a model without this part is returned unchanged."""


def models_without_parts(model: ModelSpec) -> dict[str, ModelSpec]:
    """Return the model without each of its parts in turn, by the keys of ``PARTS``.

    Parts that it lacks are left out.
    """
    return {part: changed for part, remove in PARTS.items() if (changed := remove(model)) != model}


def with_parts_removed(plan: Plan) -> Plan:
    """Return a plan that also trains each model without each of its parts in turn, and tests no model afterwards."""
    specs: list[TrainSpec] = []
    for spec in plan.specs:
        models = models_without_parts(spec.model).values()
        specs += [spec, *(replace(spec, model=model, rate=rate(model)) for model in models)]
    return replace(plan, specs=tuple(dict.fromkeys(specs)), lengths=(), items=())
