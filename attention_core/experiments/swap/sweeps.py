"""Tasks in their order: a variant beside the model as it is, more and more layers, one layer each, a budget."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from attention_core import registry
from attention_core.experiments import error
from attention_core.experiments.swap.rows import MODEL, CopyTask, ReadingTask, StrayTask, SwapTask
from attention_core.model_patching import UNIFORM
from attention_core.variant import SOFTMAX, Attention

FLOORS = (UNIFORM, "synthesizer~kind~random")
"""What any claim must beat: the plain mean of the values, and random weights."""
EDGES = ("bottom", "middle", "top")
"""From where more and more layers are replaced."""

T = TypeVar("T")


def tasks(
    text: str,
    words: Sequence[str],
    layers: tuple[int, ...],
    *,
    tokens: int | None = None,
    seeds: int = 1,
    live: bool = False,
    model: str = MODEL,
) -> tuple[SwapTask, ...]:
    """The model as it is and each variant in its layers: the text read, and the copy test, in turn.

    Args:
        text: the text.
        words: what attends.
        layers: in which layers.
        tokens: as of ``ReadingTask``.
        seeds: draws of the copy test's tokens.
        live: likewise.
        model: likewise.
    """
    places: list[tuple[str, tuple[int, ...]]] = [(SOFTMAX, ()), *((word, layers) for word in words)]
    found: list[SwapTask] = []
    for seed in range(seeds):
        for word, which in places:
            if seed == 0:
                found.append(
                    ReadingTask(text=text, word=word, layers=which, tokens=tokens, detail=True, live=live, model=model)
                )
            found.append(CopyTask(word=word, layers=which, seed=seed, detail=True, live=live, model=model))
    return tuple(found)


def depths(count: int) -> tuple[int, ...]:
    """Numbers of layers that are replaced: one, then twice as many each time up to a quarter, then quarters."""
    doubled = {2**i for i in range(count.bit_length()) if 2**i <= count // 4}
    return tuple(sorted({1, *doubled, *(-(-count * part // 4) for part in (1, 2, 3, 4))}))


def stack(edge: str, depth: int, count: int) -> tuple[int, ...]:
    """So many neighbouring layers of ``count``, from the first on, up to the last, or in the middle."""
    start = {"bottom": 0, "top": count - depth, "middle": (count - depth) // 2}[edge]
    return tuple(range(start, start + depth))


def layer_tasks(text: str, words: Sequence[str], edge: str, count: int, *, live: bool = False) -> tuple[SwapTask, ...]:
    """Reading and copying against the layers that are replaced; the floors, then the ends, then what lies between.

    Args:
        text: the text.
        words: what attends.
        edge: one of ``EDGES``, from which more and more layers are replaced; ``single`` for one layer at a time.
        count: layers of the model.
        live: as of ``ReadingTask``.
    """
    steps = _coarse_first(range(count) if edge == "single" else depths(count))
    places = [(step,) if edge == "single" else stack(edge, step, count) for step in steps]
    found: list[SwapTask] = [ReadingTask(text=text, live=live), CopyTask(live=live)]
    for place in places:
        for word in words:
            found += [
                ReadingTask(text=text, word=word, layers=place, live=live),
                CopyTask(word=word, layers=place, live=live),
            ]
    return tuple(found)


def budget_tasks(
    text: str, words: Sequence[str], layers: tuple[int, ...], n: int, *, stray: bool = False, live: bool = False
) -> tuple[SwapTask, ...]:
    """Reading and copying against each variant's budget, and with it how far its outputs stray.

    Args:
        text: the text.
        words: the variants with their settings; one without a budget is read as it is.
        layers: in which layers.
        n: tokens of the text, where the ladders of whole numbers end.
        stray: whether that is asked for as well.
        live: as of ``ReadingTask``.
    """
    found: list[SwapTask] = [ReadingTask(text=text, live=live), CopyTask(live=live)]
    ladders = [[a.word for a in ladder(word, n)] for word in words]
    for step in range(max(map(len, ladders), default=0)):
        for rungs in ladders:
            if step < len(rungs):
                word = _coarse_first(rungs)[step]
                found += [
                    ReadingTask(text=text, word=word, layers=layers, live=live),
                    CopyTask(word=word, layers=layers, live=live),
                ]
                if stray:
                    found.append(StrayTask(text=text, word=word, layers=layers, live=live))
    return tuple(found)


def ladder(word: str, n: int) -> tuple[Attention, ...]:
    """A variant over its budget, as the Error page asks for it; as it is where it has none, nothing for the mean."""
    if word == UNIFORM:
        return ()
    return tuple(error.rungs(registry.from_word(word), n))


def able(words: Iterable[str]) -> list[str]:
    """Those of the words whose variants can hide the future."""
    return [word for word in words if word == UNIFORM or not registry.from_word(word).variant.causal_reason]


def _coarse_first(steps: Sequence[T]) -> list[T]:
    """The ends and every fourth first, then every second, then the rest, so that a chart has its form early."""
    last = len(steps) - 1
    order = sorted(range(len(steps)), key=lambda i: (0 if i % 4 == 0 or i == last else 1 if i % 2 == 0 else 2, i))
    return [steps[i] for i in order]
