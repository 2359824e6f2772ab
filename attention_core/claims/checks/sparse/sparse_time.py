"""Claim: attention to every k-th token is faster than full attention, but two other sparse variants are slower."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from attention_core import articles, registry
from attention_core.benchmarking.clock import CpuClock
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule, all_of, any_of

LENGTHS = (32, 128, 512, 1024)
"""Lengths timed in addition to the input's own length, in tokens, if they are greater. Each is at most four times the
previous one, so that the time at the next length can be predicted."""
ROUNDS = 5
"""Samples per variant and length."""
MIN_SECONDS = 2e-3
"""Minimum seconds per sample; shorter calls are repeated."""
MAX_SECONDS = 0.25
"""Maximum predicted seconds of a full-matrix call. A variant that would exceed it is left out from that length on."""
FULL, MATRIX, MASKED = (
    "Full attention, fused kernel",
    "Full attention, explicit matrix",
    "Full attention, masked matrix",
)
LOCAL, SPARSE, ATROUS = "Local", "Sparse", "Atrous"
QUADRATIC = (FULL, MATRIX, MASKED)
ATTENTIONS = {FULL: "softmax", MATRIX: "softmax", MASKED: "local", LOCAL: "local", SPARSE: "sparse", ATROUS: "atrous"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One time sample in milliseconds, and its ratio to the time of ``FULL`` in the same round of samples.

    ``own`` is true if the length is the input's own length. ``unmasked`` is the time of ``MASKED`` divided by the
    time of ``MATRIX``, the same computation without a mask.
    """

    variant: str
    n: int
    own: bool
    ms: float
    ratio: float
    unmasked: float | None


def measure(inputs: ExperimentInput) -> Iterator[TimeRow]:
    """Yield time samples relative to fused full attention in the same round, at the input's length and longer ones.

    Times depend on shapes and not on values, so random numbers of the input's shape are timed.
    """
    qkv, clock = inputs.record(), CpuClock()
    last_n, took = qkv.n, dict.fromkeys(ATTENTIONS, 0.0)
    for n in (qkv.n, *(n for n in LENGTHS if n > qkv.n)):
        names = [name for name in took if name not in QUADRATIC or took[name] * (n / last_n) ** 2 <= MAX_SECONDS]
        if FULL not in names:
            break
        generator = torch.Generator().manual_seed(n)
        q, k, v = torch.randn(3, qkv.heads, n, qkv.q.shape[-1], generator=generator)
        calls = {name: timed_call(name, q, k, v, causal=qkv.causal) for name in names}
        last_n, took = n, {name: seconds_after_warm_up(clock, each) for name, each in calls.items()}
        for index in range(ROUNDS):
            order = names if index % 2 == 0 else names[::-1]
            ms = {name: 1e3 * clock.seconds(calls[name], math.ceil(MIN_SECONDS / took[name])) for name in order}
            for name in names:
                masked = name == MASKED and MATRIX in ms
                yield TimeRow(
                    variant=name,
                    n=n,
                    own=n == qkv.n,
                    ms=ms[name],
                    ratio=ms[name] / ms[FULL],
                    unmasked=ms[MASKED] / ms[MATRIX] if masked else None,
                )


def timed_call(name: str, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Callable[[], Tensor]:
    """Return the timed function: the variant's own algorithm, or the explicit matrix times the values."""
    attention = registry.get(ATTENTIONS[name])
    if name in (MATRIX, MASKED):
        return lambda: attention.weights(q, k, causal=causal) @ v
    return lambda: attention.attend(q, k, v, causal=causal)


def seconds_after_warm_up(clock: CpuClock, call: Callable[[], Tensor]) -> float:
    """Return the seconds of a call after one warm-up call."""
    call()
    return max(clock.seconds(call, 1), 1e-6)


def numbers(rows: Sequence[TimeRow]) -> Numbers:
    """Return the median time of each sparse variant, at the longest and the input's own length, divided by ``FULL``'s.

    ``held`` is the same ratio for ``MATRIX``, and ``masked`` is the ratio ``MASKED`` ÷ ``MATRIX``, both at the longest
    length at which the matrices were timed.
    """
    own, longest = next(row.n for row in rows if row.own), max(row.n for row in rows)
    matrix = max(row.n for row in rows if row.unmasked is not None)

    def ratio(name: str, n: int) -> float:
        return median(values(rows, "ratio", variant=name, n=n))

    return {
        **{name.lower(): ratio(name, longest) for name in (LOCAL, SPARSE, ATROUS)},
        **{f"{name.lower()}_here": ratio(name, own) for name in (LOCAL, SPARSE, ATROUS)},
        "held": ratio(MATRIX, matrix),
        "masked": median(values(rows, "unmasked", n=matrix)),
        "matrix": matrix,
        "own": own,
        "longest": longest,
    }


CLAIM = Claim(
    statement="Local attention (nearby keys) and sparse attention (nearby keys and every k-th key) compute less than "
    "full attention but take longer. Atrous attention (every k-th key) takes less time than full attention, and "
    "masking the full matrix saves no time.",
    short="only atrous attention saves time",
    source=articles.STANDARD_TO_SPARSE,
    place=Place("timing", variants=("softmax", "local", "sparse", "atrous")),
    experiment="Three kinds of attention that skip pairs of tokens are timed on this machine's processor with their "
    "default settings: local (nearby keys), atrous (regularly spaced keys) and sparse (both). The inputs are random "
    "numbers, first with this input's shape, then with more tokens. Full attention is timed in three ways: (1) as a "
    "fused kernel, which stores no score matrix, (2) with an explicit score matrix, (3) with this matrix masked to the "
    "local window. All of these are timed in several rounds. Each measured time is divided by the fused kernel's time "
    "in the same round.",
    rule="Full attention runs as a fused kernel, which stores no score matrix. Each comparison is made at the "
    "longest length that was timed for it. The claim holds if three conditions are met. (1) Local and sparse "
    "attention both take more than {even}× the time of full attention. (2) Atrous attention takes less time than "
    "full attention. (3) A mask saves hardly any time: with an explicit score matrix, full attention takes at "
    "most {even}× as long without a mask as with a mask. The claim partly holds if local or sparse attention "
    "takes more than {even}× the time of full attention, at the longest length or at this input's length.",
    bounds={"even": 1.1},
    verdict=Rule(
        holds=all_of(
            Condition("local", ">", "even"),
            Condition("sparse", ">", "even"),
            Condition("atrous", "<", 1.0),
            Condition("masked", ">=", lambda numbers, bounds: 1 / bounds["even"]),
        ),
        partly=any_of(*(Condition(name, ">", "even") for name in ("local", "sparse", "local_here", "sparse_here"))),
    ),
    finding="Skipping pairs of tokens saves multiplications but needs extra steps to gather the keys. At {longest} "
    "tokens, local attention takes {local}× the time of full attention, sparse attention {sparse}× and atrous "
    "attention {atrous}×.",
    details="At this input's {own} tokens, atrous attention takes {atrous_here}× the time of full attention. Full "
    "attention is timed with torch's fused kernel, which stores no score matrix. At {matrix} tokens, full attention "
    "with an explicit score matrix takes {held}× the time of the fused kernel.",
    quantities=(
        Quantity("local", "time of local attention ÷ time of full attention at the longest length"),
        Quantity("sparse", "time of sparse attention ÷ time of full attention at the longest length"),
        Quantity("atrous", "time of atrous attention ÷ time of full attention at the longest length"),
        Quantity("longest", "longest timed length", "tokens"),
        Quantity("local_here", "time of local attention ÷ time of full attention at this input's length"),
        Quantity("sparse_here", "time of sparse attention ÷ time of full attention at this input's length"),
        Quantity("atrous_here", "time of atrous attention ÷ time of full attention at this input's length"),
        Quantity("own", "length of this input", "tokens"),
        Quantity("held", "time of full attention with an explicit score matrix ÷ time with the fused kernel"),
        Quantity("masked", "time of full attention with a mask ÷ time without a mask"),
        Quantity("matrix", "longest length at which full attention with an explicit score matrix was timed", "tokens"),
    ),
    figure=Figure(
        x=Axis("n", "tokens n", log=True),
        y=Axis("ratio", "time ÷ time of full attention (fused kernel)", log=True),
        by="variant",
    ),
    timed=True,
)
