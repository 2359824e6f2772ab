"""Ordered lists of tasks of the swap experiment, in which variants replace softmax in some layers of a model.

The tasks of a list differ by the variant, by the replaced layers, or by the variant's budget, the setting that trades
cost for accuracy.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from attention_core import registry
from attention_core.attention import Attention
from attention_core.experiments import error
from attention_core.experiments.swap.rows import MODEL, CopyTask, OutputErrorTask, ReadingTask, SwapTask
from attention_core.model_patching import UNIFORM
from attention_core.variant import SOFTMAX

BASELINES = (UNIFORM, "synthesizer~kind~random")
"""Baselines that a useful variant must beat: the plain mean of the values, and random weights."""
EDGES = ("bottom", "middle", "top")
"""The end of the model from which growing numbers of layers are replaced."""

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
    """Return the reading and copy tasks for the unchanged model, and for the model with each variant in some layers.

    Args:
        text: the text.
        words: the attention variants.
        layers: the layers that use the variants.
        tokens: as in ``ReadingTask``.
        seeds: number of sequences of random tokens for the copy test.
        live: whether to compute even if a result is recorded.
        model: key of the model.
    """
    models: list[tuple[str, tuple[int, ...]]] = [(SOFTMAX, ()), *((word, layers) for word in words)]
    result: list[SwapTask] = []
    for seed in range(seeds):
        for word, replaced in models:
            if seed == 0:
                result.append(
                    ReadingTask(
                        text=text, word=word, layers=replaced, tokens=tokens, detail=True, live=live, model=model
                    )
                )
            result.append(CopyTask(word=word, layers=replaced, seed=seed, detail=True, live=live, model=model))
    return tuple(result)


def _pair(text: str, word: str = SOFTMAX, layers: tuple[int, ...] = (), *, live: bool) -> list[SwapTask]:
    return [ReadingTask(text=text, word=word, layers=layers, live=live), CopyTask(word=word, layers=layers, live=live)]


def layer_counts(count: int) -> tuple[int, ...]:
    """Return numbers of layers to replace: doublings from one to a quarter of all ``count`` layers, then quarters."""
    doubled = {2**i for i in range(count.bit_length()) if 2**i <= count // 4}
    return tuple(sorted({1, *doubled, *(-(-count * part // 4) for part in (1, 2, 3, 4))}))


def neighbouring_layers(edge: str, n: int, count: int) -> tuple[int, ...]:
    """Return ``n`` neighbouring layers of ``count`` at an edge of ``EDGES``: the first, the last or the middle ones."""
    start = {"bottom": 0, "top": count - n, "middle": (count - n) // 2}[edge]
    return tuple(range(start, start + n))


def layer_tasks(text: str, words: Sequence[str], edge: str, count: int, *, live: bool = False) -> tuple[SwapTask, ...]:
    """Return reading and copy tasks for the unchanged model, and for each variant in different layers of the model.

    Coarse steps come first, then the steps between them.

    Args:
        text: the text.
        words: the attention variants.
        edge: one of ``EDGES``, from which growing numbers of layers are replaced; ``single`` for one layer at a
            time.
        count: layers of the model.
        live: whether to compute even if a result is recorded.
    """
    steps = _coarse_first(range(count) if edge == "single" else layer_counts(count))
    replaced_layers = [(step,) if edge == "single" else neighbouring_layers(edge, step, count) for step in steps]
    models: list[tuple[str, tuple[int, ...]]] = [(SOFTMAX, ())]
    models += [(word, replaced) for replaced in replaced_layers for word in words]
    return tuple(task for word, layers in models for task in _pair(text, word, layers, live=live))


def budget_tasks(
    text: str, words: Sequence[str], layers: tuple[int, ...], n: int, *, output_errors: bool = False, live: bool = False
) -> tuple[SwapTask, ...]:
    """Return reading and copy tasks for the unchanged model, and for each variant at several budgets.

    Optionally, also return tasks for the variants' output error.

    Args:
        text: the text.
        words: the variants with their settings; a variant without a budget is measured once.
        layers: the layers that use the variants.
        n: tokens of the text, the largest value of integer budgets.
        output_errors: whether to measure the output error too.
        live: whether to compute even if a result is recorded.
    """
    result = _pair(text, live=live)
    word_lists = [[a.word for a in budget_variants(word, n)] for word in words]
    for step in range(max(map(len, word_lists), default=0)):
        for variant_words in word_lists:
            if step < len(variant_words):
                word = _coarse_first(variant_words)[step]
                result += _pair(text, word, layers, live=live)
                if output_errors:
                    result.append(OutputErrorTask(text=text, word=word, layers=layers, live=live))
    return tuple(result)


def budget_variants(word: str, n: int) -> tuple[Attention, ...]:
    """Return the variant at each value of its budget (such as the window); without one, only the variant."""
    if word == UNIFORM:
        return ()
    return tuple(error.budget_variants(registry.from_word(word), n))


def causal_words(words: Iterable[str]) -> list[str]:
    """Return the words of the variants that can be causal."""
    return [word for word in words if word == UNIFORM or not registry.from_word(word).variant.causal_reason]


def _coarse_first(steps: Sequence[T]) -> list[T]:
    """Order steps so that a chart takes shape early: the ends and every fourth, then every second, then the rest."""
    last = len(steps) - 1
    order = sorted(range(len(steps)), key=lambda i: (0 if i == last else error.refinement_level(i), i))
    return [steps[i] for i in order]
