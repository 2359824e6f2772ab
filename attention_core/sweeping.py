"""The function ``sweep``, which measures several variants on one input for several budgets or numbers of tokens.

A budget is the setting that trades a variant's cost for its accuracy. All measurements run in this process.
"""

from functools import cache
from typing import Literal, overload

from attention_core import registry
from attention_core.errors import InputError
from attention_core.experiments import entropy_length, error
from attention_core.experiments.entropy_length import EntropyRow
from attention_core.experiments.error import ErrorRow
from attention_core.experiments.task import load
from attention_core.inputs.record import QKV, Array
from attention_core.inputs.source import Source
from attention_core.inputs.tensors import TensorSource
from attention_core.registry import Variants

Input = Source | QKV | tuple[Array, Array, Array]
"""An input of a sweep: a source, a ``QKV``, or queries, keys and values as tensors or arrays."""


@overload
def sweep(
    question: Literal["error"], source: Input, variants: Variants, *, head: int | None = None, causal: bool = False
) -> tuple[ErrorRow, ...]: ...
@overload
def sweep(
    question: Literal["entropy"], source: Input, variants: Variants, *, head: int | None = None, causal: bool = False
) -> tuple[EntropyRow, ...]: ...
def sweep(
    question: Literal["error", "entropy"],
    source: Input,
    variants: Variants,
    *,
    head: int | None = None,
    causal: bool = False,
) -> tuple[ErrorRow, ...] | tuple[EntropyRow, ...]:
    """Measure several variants on one input for several values of their budgets, or for several numbers of tokens.

    ``pandas.DataFrame(rows)`` makes a table of the result.

    Args:
        question: ``"error"`` for the approximation error over the budget, the setting that trades cost for accuracy.
            ``"entropy"`` for the entropy of the rows over the number of tokens.
        source: a source such as ``inputs.TextSource("the cat")``, a ``QKV``, or a tuple of q, k and v.
        variants: one variant or several, each as a word such as ``nystrom~landmarks~16`` or as an ``Attention``.
        head: index of the only head to measure; None for all heads.
        causal: whether future keys are hidden. Variants that cannot be causal are then left out.

    Returns:
        One ``experiments.error.ErrorRow`` per variant, budget, head and seed, with rows of uniform attention as a
        baseline. Or one ``experiments.entropy_length.EntropyRow`` per variant, number of tokens and head.

    Raises:
        ValueError: if the question is neither ``"error"`` nor ``"entropy"``.
        LabError: if the source cannot be read, a variant or the head does not exist, or a variant is trained.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> rows = ac.sweep("entropy", tuple(torch.randn(3, 1, 32, 8)), ["softmax"])
        >>> [row.n for row in rows]
        [8, 11, 16, 23, 32]
    """
    if question not in ("error", "entropy"):
        raise ValueError(f"The question is {question!r}. Choose 'error' or 'entropy'.")
    attentions = registry.attentions(variants)
    for each in attentions:
        if each.params.learned:
            raise InputError(
                "A sweep makes each variant again from its settings, so {title} would lose its trained tensors. Leave "
                "them out, or use compare.",
                title=each.title,
            )
    words = [each.word for each in attentions if not (causal and each.variant.causal_reason)]
    if not isinstance(source, Source):
        source = TensorSource.of(source) if isinstance(source, QKV) else TensorSource.of(*source)
    load_cached = cache(load)  # so that a model reads the text once, not once per task
    record = load_cached(source, None)
    record.check_head(head)
    n = record.m
    if question == "error":
        tasks = error.tasks(source, n, words, head=head, causal=causal)
        return tuple(row for task in tasks for row in error.run(task, load=load_cached))
    rows = (
        row
        for task in entropy_length.tasks(source, words, longest=n, causal=causal)
        for row in entropy_length.run(task, load=load_cached)
    )
    return tuple(row for row in rows if head in (None, row.head))
