"""Learning rates, tuned for each model and task. With one rate for all models, a comparison would be unfair."""

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import cast

from attention_core.learning.model import ModelSpec, Positions
from attention_core.learning.tasks import task as task_of

FILE = Path(__file__).parent / "recorded" / "rates.json"
DEFAULT = 3e-3
GRID = (1e-3, 3e-3, 1e-2)
"""The rates that ``python -m attention_core.learning.record_runs`` compares."""


@cache
def tuned_rates() -> dict[str, dict[str, float]]:
    """Return the recorded best learning rates, by task and by ``model_name``; empty if none are recorded."""
    return json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}


def model_name(model: ModelSpec) -> str:
    """Return the variant's word, followed by the architecture's fields that differ from the task's defaults."""
    default = ModelSpec(task=model.task, word=model.word, positions=cast("Positions", task_of(model.task).positions))
    changed = (
        f"{field.name}={getattr(model, field.name)}"
        for field in fields(model)
        if field.name != "tokens" and getattr(model, field.name) != getattr(default, field.name)
    )
    return " ".join((model.word, *changed))


def rate(model: ModelSpec) -> float:
    """Return the tuned rate of a model, or ``DEFAULT``."""
    tuned = tuned_rate(model)
    return DEFAULT if tuned is None else tuned


def is_tuned(model: ModelSpec) -> bool:
    """Return whether the learning rate was tuned with this model itself."""
    return model_name(model) in tuned_rates().get(model.task, {})


def tuned_rate(model: ModelSpec) -> float | None:
    """Return the tuned rate of a model, or else of its variant in the default architecture; None if neither exists."""
    rates = tuned_rates().get(model.task, {})
    return rates.get(model_name(model), rates.get(model.word))
