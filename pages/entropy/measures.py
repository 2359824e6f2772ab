"""The numbers of the Entropy page that a lesson can ask about: the entropy at the longest length, and its slope."""

import math

import attention_core as ac
from app.figures.lines.spread import Spread, spread
from app.lessons import sweep_results
from app.lessons.screen import Screen
from app.measures import CurveMeasure, VariantMeasure
from app.words.i18n import N_
from attention_core.experiments import entropy_length
from attention_core.experiments.lengths import ladder
from attention_core.metrics.fit import fit_entropy
from pages.entropy.options import EntropyOptions, Question, question


def _question(screen: Screen) -> Question:
    return question(screen.chosen, screen.options(EntropyOptions), causal=screen.visit.causal)


def _curve(screen: Screen, attention: ac.Attention) -> Spread:
    """Return a variant's entropy by length in nats, combined over heads as on the page."""
    asked = _question(screen)
    if attention.key == "softmax_log_n":
        attention = attention.with_settings(base_length=asked.options.base)
    word, longest = attention.word, asked.longest
    tasks = entropy_length.tasks(asked.source, [word], longest=longest, causal=asked.causal, seeds=asked.seeds)
    heads = asked.of_heads(sweep_results.rows("entropy_length", tasks))
    return spread(((row.n, row.entropy) for row in heads), mean=asked.mean)


def _slope(screen: Screen, attention: ac.Attention) -> float | None:
    found = _curve(screen, attention)
    fit = fit_entropy(found.x, found.middle)
    return None if fit is None else fit.exponent


def _highest(screen: Screen) -> float:
    """Return the entropy of uniform weights at the longest length measured."""
    return math.log(_question(screen).longest)


MEASURES = {
    "last_entropy": VariantMeasure(
        N_("entropy of the rows of {name} at the longest length measured"),
        lambda screen, attention: _curve(screen, attention).middle[-1],
        unit=N_("nats"),
        high=_highest,
        step=0.1,
        digits=2,
        tolerance=0.3,
    ),
    "slope": VariantMeasure(
        N_("slope of the entropy of {name} against log n"),
        _slope,
        low=-0.5,
        high=1.5,
        step=0.05,
        digits=2,
        tolerance=0.1,
        missing_message=N_("Measuring a slope needs at least three lengths. Use a longer input."),
    ),
}
CURVES = {
    "entropy": CurveMeasure(
        N_("entropy of the rows of {name} against length"),
        lambda screen, attention: _curve(screen, attention).middle,
        positions=lambda screen, attention: ladder(_question(screen).longest),
        x_title=N_("tokens n"),
        y_title=N_("entropy H (nats)"),
        unit=N_("nats"),
        high=_highest,
        step=0.1,
        digits=2,
        tolerance=0.3,
    )
}
