"""The numbers of the Causal page that a lesson can ask about, such as how many variants use later tokens."""

import attention_core as ac
from app.jobs import dispatch
from app.lessons.screen import Screen
from app.measures import PageMeasure, VariantMeasure
from app.words.i18n import N_
from attention_core.analysis.matrix.influence import Influence
from attention_core.experiments.leaks import tasks
from pages.causal.leaks import LeaksOptions


def _influence(screen: Screen, attention: ac.Attention) -> Influence:
    chosen = screen.chosen
    [task] = tasks(chosen.source, [attention.word], head=chosen.head)
    [influence] = dispatch.rows("leaks", task)
    return influence


def _changed_outputs(screen: Screen, attention: ac.Attention) -> float:
    """Return the number of outputs before the replaced token that change."""
    influence = _influence(screen, attention)
    return float(influence.earlier_changes(min(screen.options(LeaksOptions).token, len(influence.moved) - 1)))


def _leaking(screen: Screen) -> float:
    """Return the number of compared variants that leak."""
    return float(sum(_influence(screen, each).leaking_share > 0 for each in screen.shared.variants))


def _replaced_token(screen: Screen) -> int:
    """Return the position of the replaced token, which is also the number of outputs before it; at least 1."""
    return max(1, min(screen.options(LeaksOptions).token, screen.chosen.qkv.n - 1))


MEASURES = {
    "leak": VariantMeasure(
        N_("share of earlier outputs of {name} that change when a later token is replaced, over all replaced tokens"),
        lambda screen, attention: 100 * _influence(screen, attention).leaking_share,
        unit="%",
        tolerance=8,
    ),
    "moved": VariantMeasure(
        N_("number of earlier outputs of {name} that change when the selected token is replaced"),
        _changed_outputs,
        unit=N_("outputs"),
        high=_replaced_token,
        tolerance=1,
    ),
    "leaking": PageMeasure(
        N_("number of compared variants whose earlier outputs depend on later tokens (a leak)"),
        _leaking,
        unit=N_("variants"),
        high=lambda screen: len(screen.shared.variants),
        tolerance=0,
    ),
}
