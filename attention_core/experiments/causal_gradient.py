"""Compares three ways to compute the gradient of causal linear attention: their results and their memory.

The ways are running sums, autograd through the states of all tokens, and autograd through the full matrix.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core import registry
from attention_core.benchmarking.counting import count
from attention_core.errors import InputError
from attention_core.experiments.causal_modes import DTYPES, MATRIX, causal_forward
from attention_core.experiments.task import Load, load
from attention_core.inputs.source import Source, first_tokens_at_most
from attention_core.limits import current
from attention_core.ops.softmax.masked import safe_divisor

SUMS, STATES = "chunked", "cumsum"
ALGORITHMS = (SUMS, STATES, MATRIX)
"""``SUMS``, whose backward pass takes constant extra memory, and two algorithms that autograd differentiates."""
LONGEST = 2048
"""Longest length in tokens. Autograd then stores 32 MiB of states per head of size 64, in about ``STATE_COPIES``
copies.
"""
STATE_COPIES = 4
"""Approximate number of copies of all states that autograd holds when memory is at its peak."""
COMPARED_TOKENS = 512
"""Maximum number of tokens on which gradients are compared."""


@dataclass(frozen=True, kw_only=True)
class BytesTask:
    """A task that counts the memory of one algorithm's forward and backward pass on one head of Gaussian q, k, v.

    Attributes:
        word: a variant that has all ``ALGORITHMS``, with its settings.
        algorithm: one of ``ALGORITHMS``.
    """

    word: str
    algorithm: str
    n: int
    d: int
    d_v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesRow:
    """The peak bytes of one algorithm's forward and backward pass, without q, k, v and the output's gradient."""

    algorithm: str
    n: int
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class DifferenceTask:
    """A task that compares the gradients of all algorithms on an input.

    Attributes:
        word: a variant that has all ``ALGORITHMS``, with its settings.
    """

    word: str
    source: Source
    head: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRow:
    """The difference between the gradients by ``SUMS`` and by another algorithm, at one dtype of ``DTYPES``.

    Attributes:
        gradient: ``"q"``, ``"k"`` or ``"v"``.
        difference: largest difference of any entry, divided by the other algorithm's largest gradient entry.
    """

    dtype: str
    gradient: str
    algorithm: str
    difference: float


def lengths(d: int, d_v: int) -> tuple[int, ...]:
    """Return powers of two, from 16 to at most ``LONGEST``, at which the states stored by autograd fit into memory."""
    state = 4 * d * (d_v + 1) * STATE_COPIES
    longest = min(LONGEST, max(32, current().timed_bytes // state))
    return tuple(2**i for i in range(4, int(math.log2(longest)) + 1))


def tasks(
    source: Source, *, d: int, d_v: int, head: int | None = None, word: str = "linear"
) -> tuple[DifferenceTask | BytesTask, ...]:
    """Return one task that compares the gradients on the input, then tasks that count bytes at growing lengths.

    Args:
        source: source of q, k and v.
        d: size of queries and keys.
        d_v: size of values.
        head: index of the only head whose gradients are compared; None for all heads.
        word: a variant that has all ``ALGORITHMS``, with its settings.
    """
    bytes_tasks = [
        BytesTask(word=word, algorithm=algorithm, n=n, d=d, d_v=d_v)
        for n in lengths(d, d_v)
        for algorithm in ALGORITHMS
    ]
    return (DifferenceTask(word=word, source=source, head=head), *bytes_tasks)


def run(task: DifferenceTask | BytesTask, *, load: Load = load) -> tuple[DifferenceRow, ...] | tuple[BytesRow]:
    """Compare gradients, or count bytes.

    Returns:
        For a difference task, one row per dtype, gradient and algorithm except ``SUMS``; for a bytes task, one row.
    """
    return _differences(task, load) if isinstance(task, DifferenceTask) else (count_bytes(task),)


def _gradients(word: str, algorithm: str, q: Tensor, k: Tensor, v: Tensor) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that computes the gradients for q, k and v of the variant ``word``.

    The gradient of the output is random, with a fixed seed.
    """
    forward = causal_forward(registry.from_word(word), algorithm)
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    output_gradient = torch.randn(v.shape, generator=torch.Generator().manual_seed(0), dtype=v.dtype)
    return lambda: torch.autograd.grad(forward(q, k, v), (q, k, v), output_gradient)


def _differences(task: DifferenceTask, load: Load) -> tuple[DifferenceRow, ...]:
    qkv = first_tokens_at_most(load(task.source, None), COMPARED_TOKENS).of_head(task.head)
    rows = []
    for name, dtype in DTYPES.items():
        q, k, v = (x.to(dtype) for x in qkv.tensors)
        # Gradients are computed one head at a time, because autograd would otherwise store the states of all heads.
        gradients: dict[str, list[Tensor]] = {}
        for algorithm in ALGORITHMS:
            heads = [_gradients(task.word, algorithm, q[h], k[h], v[h])() for h in range(len(q))]
            gradients[algorithm] = [torch.stack(per_head) for per_head in zip(*heads, strict=True)]
            check_finite(gradients[algorithm])
        for algorithm in ALGORITHMS[1:]:
            # All differences are divided by the largest entry of the gradients of q, k and v, because one of these
            # gradients may be zero, for example that of q if all values are equal.
            largest = safe_divisor(torch.stack([x.abs().amax() for x in gradients[algorithm]]).amax())
            rows += [
                DifferenceRow(
                    dtype=name,
                    gradient=letter,
                    algorithm=algorithm,
                    difference=float((expected - other).abs().amax() / largest),
                )
                for letter, expected, other in zip("qkv", gradients[SUMS], gradients[algorithm], strict=True)
            ]
    return tuple(rows)


def check_finite(gradients: Iterable[Tensor]) -> None:
    """Check that gradients are finite, so that they can be compared.

    Raises:
        InputError: if an entry is not finite.
    """
    if not all(gradient.isfinite().all() for gradient in gradients):
        raise InputError(
            "On this input, a gradient is not finite, because the weights of a row add up to almost zero before they "
            "are normalised. Choose an input whose queries and keys have smaller norms."
        )


def count_bytes(task: BytesTask) -> BytesRow:
    """Count the peak bytes of a task's forward and backward pass."""
    generator = torch.Generator().manual_seed(task.n)
    q, k, v = (torch.randn(1, task.n, size, generator=generator) for size in (task.d, task.d, task.d_v))
    counts = count(_gradients(task.word, task.algorithm, q, k, v), unit=torch.uint8)
    return BytesRow(algorithm=task.algorithm, n=task.n, peak_bytes=counts.peak_elements)


def ratios(rows: Sequence[BytesRow], algorithm: str) -> list[tuple[int, float]]:
    """Return ``(n, factor)`` for each length n at which both an algorithm and ``SUMS`` were counted.

    The factor is the algorithm's bytes divided by those of ``SUMS``.
    """
    sums = {row.n: row.peak_bytes for row in rows if row.algorithm == SUMS}
    return [(row.n, row.peak_bytes / sums[row.n]) for row in rows if row.algorithm == algorithm and row.n in sums]
