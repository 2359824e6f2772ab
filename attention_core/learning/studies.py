"""Plans of recorded training runs: for claims about trained models, rotary positions, and models with a part removed.

``STUDIES`` holds the plans by the claim's key. Two functions return the runs with rotary positions and with one part
of the model removed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attention_core.experiments import learning
from attention_core.experiments.learning import Plan
from attention_core.learning.defaults import SEEDS, STEPS, TEST_ITEMS, TEST_LENGTHS
from attention_core.learning.removed_parts import with_parts_removed

LONG_STEPS = 1600
"""Training steps of the models without a short convolution, which learn recall later than models with one."""
SHORT_WINDOW, LONG_WINDOW = 4, 32
"""Windows in tokens: much shorter than most distances between a key and its query, and as long as the sequence."""
PARITY_VARIANTS = ("deltanet~strength~2.0", "deltanet", "softmax")
"""Variants of the claim about parity: DeltaNet with write strengths 2 and 1, and softmax."""
MAXIMUM_VARIANTS = ("softmax", "softmax_log_n", "sigmoid", "relu2")
"""Variants of the claim about maximum retrieval."""
REMOVED_PART_VARIANTS = ("linear", "softmax", "gated_deltanet")
"""Variants for which runs with one part of the model removed are recorded."""


def _plan(
    *words: str,
    task: str = "recall",
    steps: int = STEPS,
    tests: bool = False,
    **model: Any,  # noqa: ANN401 - the fields of ModelSpec
) -> Plan:
    """Return a plan that trains these variants with the seeds of the recorded runs.

    ``tests`` is whether the trained models are tested on other sequences, and ``model`` holds fields of ``ModelSpec``.
    ``steps`` may exceed the number of steps that a profile allows visitors.
    """
    plan = learning.plan(
        words,
        task=task,
        seeds=SEEDS,
        lengths=TEST_LENGTHS.get(task, ()) if tests else (),
        more_items=TEST_ITEMS.get(task, ()) if tests else (),
        **model,
    )
    return replace(plan, specs=tuple(replace(spec, steps=steps) for spec in plan.specs))


STUDIES: dict[str, Callable[[], tuple[Plan, ...]]] = {
    "negative_eigenvalues": lambda: (_plan(*PARITY_VARIANTS, task="parity", tests=True),),
    "maximum_disperses": lambda: (_plan(*MAXIMUM_VARIANTS, task="maximum", tests=True),),
    "linear_convolution": lambda: (_plan("linear", tests=True), _plan("linear", convolution=0)),
    "two_layers_recall": lambda: (
        *(_plan("softmax", layers=layers, convolution=0, positions="learned", steps=LONG_STEPS) for layers in (2, 1)),
        _plan("softmax", layers=1),
    ),
    "short_window": lambda: (_plan(*(f"local~window~{window}" for window in (SHORT_WINDOW, LONG_WINDOW))),),
    "relu2_longer": lambda: (_plan("softmax", "relu2", tests=True),),
    "linear_pairs": lambda: (_plan("softmax", "linear", tests=True),),
}
"""The runs of each claim."""


def rotary_plan() -> Plan:
    """Return the runs of recall with rotary positions, to compare with those without positions in ``relu2_longer``."""
    return _plan("softmax", "relu2", positions="rotary", tests=True)


def removed_parts_plan() -> Plan:
    """Return the runs of recall with one part of the model removed at a time."""
    return with_parts_removed(_plan(*REMOVED_PART_VARIANTS))
