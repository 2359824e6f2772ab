"""The tasks on which tiny transformers are trained, one file each."""

from attention_core.errors import InputError, name_hint
from attention_core.learning.learning_task import LearningTask
from attention_core.learning.tasks import characters, digits, induction, maximum, parity, recall, selective_copying

TASKS: dict[str, LearningTask] = {
    each.TASK.key: each.TASK for each in (recall, selective_copying, induction, maximum, parity, characters, digits)
}
"""All tasks by key, in display order."""


def task(key: str) -> LearningTask:
    """Return a task by its key.

    Raises:
        InputError: if the key is unknown.
    """
    if key not in TASKS:
        raise InputError("There is no task {key!r}. {hint}", key=key, hint=name_hint(key, TASKS))
    return TASKS[key]
