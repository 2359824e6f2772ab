"""The numbers of the Masks page that a lesson can ask about, such as the share of pairs that a variant allows.

Other numbers describe a stack (a sequence of layers), such as the share of pairs of tokens that it connects.
"""

import attention_core as ac
from app.jobs import cached
from app.jobs.cached import MatrixView
from app.lessons.screen import Screen
from app.measures import PageMeasure, VariantMeasure
from app.words.i18n import C_, N_
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from attention_core.limits import current
from pages.masks.options import MasksOptions


def _pattern(screen: Screen, attention: ac.Attention) -> Pattern:
    chosen = screen.chosen
    return cached.pattern(chosen.source, attention, head=chosen.head, causal=screen.shared.causal)


def _allowed_share(screen: Screen, attention: ac.Attention) -> float:
    pattern = _pattern(screen, attention)
    return 100 * pattern.pairs / pattern.possible


def _layers_needed(screen: Screen, attention: ac.Attention) -> float | None:
    depth = _pattern(screen, attention).diameter
    return None if depth is None else float(depth)


def _reach(screen: Screen) -> Reach | None:
    """Return which pairs the stack on a lesson's screen connects; None for a stack without layers.

    With a causal mask, layers whose variant cannot be causal are left out.
    """
    shared, chosen = screen.shared, screen.chosen
    layers = [screen.variant(key) for key in screen.options(MasksOptions).stack]
    usable = tuple(each for each in layers if not (shared.causal and each.variant.causal_reason))
    view = MatrixView(source=chosen.source, head=chosen.head, causal=shared.causal, special=True)
    return cached.reach(view, usable, current().stack_layers) if usable else None


def _connected_share(screen: Screen) -> float | None:
    reach = _reach(screen)
    return None if reach is None else 100 * reach.shares[screen.options(MasksOptions).stack_depth]


def _complete_depth(screen: Screen) -> float | None:
    reach = _reach(screen)
    return None if reach is None or reach.complete is None else float(reach.complete)


def _tokens(screen: Screen) -> int:
    return screen.chosen.qkv.n


MEASURES = {
    "pairs": VariantMeasure(
        N_("share of query–key pairs that {name} allows"), _allowed_share, unit="%", digits=1, tolerance=4
    ),
    "depth": VariantMeasure(
        N_("number of layers with {name} that are needed to connect all tokens"),
        _layers_needed,
        unit=C_("unit after a number", "layers"),
        low=1,
        high=_tokens,
        tolerance=1,
        missing_message=N_("Even with more layers of this variant, some pairs are never connected."),
    ),
    "connected": PageMeasure(
        N_("share of query–key pairs that this stack connects"),
        _connected_share,
        unit="%",
        digits=1,
        tolerance=5,
        missing_message=N_("The stack is empty. Add a layer."),
    ),
    "complete": PageMeasure(
        N_("number of layers after which this stack connects all tokens"),
        _complete_depth,
        unit=C_("unit after a number", "layers"),
        low=1,
        high=_tokens,
        tolerance=1,
        missing_message=N_("This stack never connects all tokens, however often its layers are repeated."),
    ),
}
