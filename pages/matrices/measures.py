"""The numbers of the Matrices page that a lesson can ask about, equal to the numbers in its table."""

import math

import attention_core as ac
from app.jobs import cached
from app.lessons.screen import Screen
from app.measures import Measure
from app.words.i18n import N_
from attention_core.analysis.matrix.compare import Compared


def _compared(screen: Screen, attention: ac.Attention | None) -> Compared:
    assert attention is not None
    return screen.compared(attention)


def _effective_rank(screen: Screen, attention: ac.Attention | None) -> float:
    assert attention is not None
    return cached.ranks(screen.view, attention).effective_rank


def _sink(screen: Screen, attention: ac.Attention | None) -> float | None:
    """Return softmax's weight on the first token in the chosen head, in per cent; None for the average of heads."""
    chosen, visit = screen.chosen, screen.visit
    scores = cached.head_scores(chosen.source.at_layer(0), visit.causal, visit.special)
    layer = visit.layer if chosen.source.layer_count > 1 else 0
    found = [each.sink for each in scores if (each.layer, each.head) == (layer, chosen.head)]
    return 100 * found[0] if found else None


def _shown(screen: Screen) -> int:
    """Return the number of tokens that the matrices show; special tokens may be hidden."""
    record = screen.chosen.qkv
    return record.n if screen.visit.special else record.n - sum(record.special)


MEASURES = {
    "entropy": Measure(
        title=N_("entropy of the rows of {name}, averaged over rows"),
        find=lambda screen, attention: _compared(screen, attention).passport.entropy,
        unit=N_("nats"),
        high=lambda screen: math.log(max(_shown(screen), 1)),
        step=0.1,
        digits=2,
        tolerance=0.3,
    ),
    "effective_rank": Measure(
        title=N_("effective rank of the matrix of {name}"),
        find=_effective_rank,
        low=1,
        high=_shown,
        step=1,
        digits=1,
        tolerance=5,
        in_table=True,
    ),
    "matrix_error": Measure(
        title=N_("matrix error of {name}"),
        find=lambda screen, attention: _compared(screen, attention).passport.relative_error,
        high=3,
        step=0.05,
        digits=2,
        tolerance=0.1,
    ),
    "misplaced": Measure(
        title=N_("share of its weight that {name} puts on other keys than its reference (total variation)"),
        find=lambda screen, attention: 100 * _compared(screen, attention).passport.total_variation,
        unit="%",
        high=100,
        step=1,
        digits=0,
        tolerance=8,
    ),
    "output_error": Measure(
        title=N_("output error of {name}"),
        find=lambda screen, attention: 100 * _compared(screen, attention).output_error,
        unit="%",
        high=200,
        step=1,
        digits=0,
        tolerance=8,
    ),
    "sink": Measure(
        title=N_("weight that softmax gives to the first token in this head, averaged over queries"),
        find=_sink,
        of_variant=False,
        unit="%",
        high=100,
        step=1,
        digits=0,
        tolerance=8,
        missing_message=N_("This screen shows the average of all heads. Choose one head to see this number."),
    ),
}
