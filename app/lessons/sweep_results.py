"""Access to measurements over several lengths or settings, for a lesson that asks about them.

The page that a lesson's step shows makes these measurements. This module only reads the page's cached results.
"""

from collections.abc import Sequence
from typing import Any

from app.jobs import dispatch
from app.lessons.lesson import LessonError
from app.words.i18n import N_
from attention_core.experiments.task import Task


def read_rows(experiment: str, tasks: Sequence[Task]) -> list[Any]:
    """Return the rows (results) of an experiment's tasks that the page has run.

    Raises:
        LessonError: if the page has not run all of them.
    """
    results = [dispatch.cached_rows(experiment, task) for task in tasks]
    if any(each is None for each in results):
        raise LessonError(N_("The page has not finished measuring. Let it run, or press “Continue”."))
    return [row for each in results for row in each or ()]
