"""The computations ("subjects") that the benchmark times, such as full attention, variants, bounds and peers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from attention_core.benchmarking.timing import Backward
from benchmarks.bounds import BOUNDS
from benchmarks.cases import Case
from benchmarks.peers import PEERS
from benchmarks.rows import Mode, Role, Row

EXPLICIT_TOKENS = 2048
"""The longest explicit matrix: at 4096 the 8 heads of one are half a gigabyte, and several are alive at a time."""
EXPLICIT_SECONDS = 1.0
"""The longest call of an explicit matrix, in seconds: those of the delta rules took half of a run at 2048."""

Call = Callable[[], Any]


@dataclass
class Subject:
    """A computation that is timed at every size, with the times and memory measured so far.

    Attributes:
        label: the label of its case.
        key: the variant's key.
        name: its own name.
        role: the kind of subject.
        causal: whether it is causal.
        build: ``(q, k, v, n) -> call``.
        counted: whether its tensors can be counted.
        most: the largest n it supports.
        seconds: CPU seconds of one call at each n.
        peaks: peak bytes at each n.
    """

    label: str
    key: str
    name: str
    role: Role
    causal: bool
    build: Callable[[Tensor, Tensor, Tensor, int], Call]
    counted: bool = True
    most: int = 1 << 30
    seconds: dict[int, float] = field(default_factory=dict)
    peaks: dict[int, int] = field(default_factory=dict)

    def reason_to_skip(self, n: int, *, longest: float, memory: int) -> str:
        """Return why the subject is skipped at n tokens, judged by smaller n; empty if it is not skipped."""
        if self.role == "full":
            return ""
        if n > self.most:
            return f"made for n ≤ {self.most}"
        longest = min(longest, EXPLICIT_SECONDS) if self.role == "explicit" else longest
        if _expected(self.seconds, n, steepest=4.5) > longest:
            return f"over {longest:g} s"
        if _expected(self.peaks, n, steepest=4.0) > memory:
            return f"over {memory / 2**30:.0f} GiB"
        return ""

    def row(
        self, n: int, mode: Mode, *, seconds: Sequence[float] = (), base: Sequence[float] = (), skipped: str = ""
    ) -> Row:
        """Return the subject's row at one size in one mode."""
        return Row(
            label=self.label,
            key=self.key,
            name=self.name,
            role=self.role,
            n=n,
            mode=mode,
            seconds=list(seconds),
            base=list(base),
            peak=self.peaks.get(n),
            skipped=skipped,
        )


def full(causal: bool, *, backward: bool = False) -> Subject:
    """Return full attention by torch's own kernel, or its backward pass."""
    label = "full attention, causal" if causal else "full attention"

    def build(q: Tensor, k: Tensor, v: Tensor, n: int) -> Call:
        attend = partial(F.scaled_dot_product_attention, is_causal=causal)
        return Backward(attend, q, k, v) if backward else partial(attend, q, k, v)

    return Subject(label, "", label, "full", causal, build)


def subjects(cases: Sequence[Case], absent: Mapping[str, str]) -> list[Subject]:
    """Return the variants, each followed by its bound, its available peers, and its explicit matrix."""
    selected = []
    for case in cases:
        names = [name for name in case.peers if name not in absent]
        bound = [_bound(case)] if case.bound else []
        selected += [variant_of(case), *bound, *(_peer(case, name) for name in names), _explicit(case)]
    return selected


def variant_of(case: Case, *, backward: bool = False) -> Subject:
    """Return a case's variant itself, or its backward pass."""

    def build(q: Tensor, k: Tensor, v: Tensor, n: int) -> Call:
        attend = partial(case.attention(case.settings_at(n)).attend, causal=case.causal)
        return Backward(attend, q, k, v) if backward else partial(attend, q, k, v)

    return Subject(case.label, case.key, case.label, "variant", case.causal, build)


def _bound(case: Case) -> Subject:
    def build(q: Tensor, k: Tensor, v: Tensor, n: int) -> Call:
        # A case stores only the settings that differ from the defaults, but a bound reads all settings.
        settings = asdict(case.attention(case.settings_at(n)).params)
        return BOUNDS[case.bound](q, k, v, settings)

    # A bound's memory is meaningless, and counting its many small steps takes longer than running them.
    return Subject(case.label, case.key, case.bound, "bound", case.causal, build, counted=False)


def _peer(case: Case, name: str) -> Subject:
    peer = PEERS[name]

    def build(q: Tensor, k: Tensor, v: Tensor, n: int) -> Call:
        return peer.build(q, k, v, case.settings_at(n)).call

    return Subject(case.label, case.key, name, "peer", case.causal, build, peer.counted, peer.longest)


def _explicit(case: Case) -> Subject:
    def build(q: Tensor, k: Tensor, v: Tensor, n: int) -> Call:
        attention = case.attention(case.settings_at(n))
        return lambda: attention.weights(q, k, causal=case.causal) @ v

    return Subject(case.label, case.key, "explicit", "explicit", case.causal, build, most=EXPLICIT_TOKENS)


def _expected(seconds: Mapping[int, float], n: int, *, steepest: float) -> float:
    """Extrapolate to n from the last two sizes, with a factor between 2 and ``steepest`` per doubling."""
    if not seconds:
        return 0.0
    sizes = sorted(seconds)
    last, growth = sizes[-1], steepest
    if len(sizes) > 1:
        before = sizes[-2]
        growth = min(max((seconds[last] / seconds[before]) ** (1 / math.log2(last / before)), 2.0), steepest)
    return seconds[last] * growth ** math.log2(n / last)
