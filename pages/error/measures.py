"""The numbers of the Error page that a lesson can ask about: the error of a variant at its chosen settings."""

from dataclasses import replace

import attention_core as ac
from app.lessons import sweep_results
from app.lessons.screen import Screen
from app.measures import VariantMeasure
from app.words.i18n import N_
from attention_core.experiments.error import MEASURES as KINDS
from attention_core.experiments.error import ErrorTask, points
from pages.error.options import ErrorOptions


def _error(screen: Screen, attention: ac.Attention) -> float:
    """Return the median error over heads and seeds at the variant's chosen settings."""
    chosen, causal = screen.chosen, screen.visit.causal
    task = ErrorTask(source=chosen.source, word=attention.word, head=chosen.head, causal=causal)
    if screen.options(ErrorOptions).against == "length":
        task = replace(task, tokens=chosen.qkv.n, floors=False)
    measure = screen.options(ErrorOptions).measure
    assert measure in KINDS
    [point] = points(sweep_results.rows("error", [task]), measure)
    return point.middle


MEASURES = {
    "error": VariantMeasure(
        N_("error of {name} at its current settings, in the error metric of the page"),
        _error,
        high=2,
        step=0.05,
        digits=2,
        tolerance=0.1,
    )
}
