"""The default selection of each learning task: the variants to train, and the sequences to test trained models on."""

from attention_core.experiments import learning

VARIANTS = ("softmax", "local", "linear", "gla", "deltanet", "gated_deltanet")
"""Variants compared by default: full attention, a window, and four whose state has a fixed size."""
TASK_VARIANTS: dict[str, tuple[str, ...]] = {
    "parity": ("softmax", "linear", "gla", "gated_deltanet", "deltanet~strength~2.0"),
    "maximum": ("softmax", "softmax_log_n", "sigmoid", "relu2", "linear"),
    "digits": ("softmax", "local", "linear", "nystrom", "linformer"),
}
"""Variants compared by default on tasks for which ``VARIANTS`` is not used."""
SEEDS = (0, 1, 2)
STEPS = 400
TEST_LENGTHS = {
    "recall": (32, 64, 128, 256),
    "maximum": (17, 65, 257),
    "parity": (32, 64, 128, 256),
    "induction": (32, 64, 128),
}
"""Lengths that trained models are tested on."""
TEST_ITEMS = {"recall": (4, 8, 12, 16, 24)}
"""Numbers of items that trained models are tested on."""


def default_plan(task: str) -> learning.Plan:
    """Return the plan of a task, given by its key, with the variants, lengths and items selected by default."""
    return learning.plan(
        TASK_VARIANTS.get(task, VARIANTS),
        task=task,
        steps=STEPS,
        seeds=SEEDS,
        lengths=TEST_LENGTHS.get(task, ()),
        more_items=TEST_ITEMS.get(task, ()),
    )
