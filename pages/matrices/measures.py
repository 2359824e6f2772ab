"""The numbers of the Matrices page that a lesson can ask about, such as a variant's entropy and output error."""

import math

import attention_core as ac
from app.jobs import cached
from app.lessons.screen import Screen
from app.measures import PageMeasure, VariantMeasure
from app.words.i18n import N_


def _effective_rank(screen: Screen, attention: ac.Attention) -> float:
    return cached.ranks(screen.view, attention).effective_rank


def _sink(screen: Screen) -> float | None:
    """Return softmax's weight on the first token in the chosen head, in per cent; None for the average of heads."""
    chosen, shared = screen.chosen, screen.shared
    scores = cached.head_scores(chosen.source.at_layer(0), shared.causal, shared.special)
    layer = shared.layer if chosen.source.layer_count > 1 else 0
    sinks = [s.sink for s in scores if (s.layer, s.head) == (layer, chosen.head)]
    return 100 * sinks[0] if sinks else None


def _shown_tokens(screen: Screen) -> int:
    """Return the number of tokens that the matrices show; special tokens may be hidden."""
    record = screen.chosen.qkv
    return record.n if screen.shared.special else record.n - sum(record.special)


MEASURES = {
    "entropy": VariantMeasure(
        N_("mean entropy of the rows in the matrix of {name}"),
        lambda screen, attention: screen.compare(attention).passport.entropy,
        unit=N_("nats"),
        high=lambda screen: math.log(max(_shown_tokens(screen), 1)),
        step=0.1,
        digits=2,
        tolerance=0.3,
        in_table=True,
    ),
    "effective_rank": VariantMeasure(
        N_("effective rank of the matrix of {name}"),
        _effective_rank,
        low=1,
        high=_shown_tokens,
        digits=1,
        tolerance=5,
        in_table=True,
    ),
    "matrix_error": VariantMeasure(
        N_("matrix error of {name}"),
        lambda screen, attention: screen.compare(attention).passport.relative_error,
        high=3,
        step=0.05,
        digits=2,
        tolerance=0.1,
        in_table=True,
    ),
    "misplaced": VariantMeasure(
        N_(
            "average share of a row's weight that {name} gives to different keys than its reference does (misplaced "
            "weight)"
        ),
        lambda screen, attention: 100 * screen.compare(attention).passport.total_variation,
        unit="%",
        tolerance=8,
    ),
    "output_error": VariantMeasure(
        N_("output error of {name}"),
        lambda screen, attention: 100 * screen.compare(attention).output_error,
        unit="%",
        high=200,
        tolerance=8,
    ),
    "sink": PageMeasure(
        N_("average weight of the first token under softmax in this head, over all queries except the first"),
        _sink,
        unit="%",
        tolerance=8,
        missing_message=N_(
            "The first token's weight is measured in single heads, but this screen shows the average of all heads. "
            "Choose one head."
        ),
    ),
}
