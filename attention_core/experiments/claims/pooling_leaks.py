"""Anything that pools tokens before it attends lets the future leak, and no mask laid on afterwards stops it."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from attention_core import registry
from attention_core.algorithms.causal_scan import nonzero
from attention_core.experiments.claims.claim import Ask, Claim, Figure, Quantity, Verdict, column
from attention_core.experiments.leak import MOST
from attention_core.experiments.task import Row
from attention_core.inputs.source import first_tokens
from attention_core.variant import Attention, Paper, Variant

OTHERS = ("softmax", "local", "linear")
"""Variants that do not pool, one of each kind."""
MOVED = 1e-6
"""Relative change from which on an output counts as moved: far above float64's rounding."""
OPEN, CUT = "all tokens seen", "future cut out"


def measure(ask: Ask) -> list[Row]:
    """How far before the last token outputs move when that token changes, by variant, with and without a mask."""
    qkv = ask.record()
    qkv = first_tokens(qkv, min(qkv.n, MOST))
    before = [x.double() for x in (qkv.q, qkv.k, qkv.v)]
    after = [torch.cat([x[:, :-1], -x[:, -1:]], 1) for x in before]
    pooled = [pooling(variant, qkv.n) for variant in registry.all_variants() if variant.family == "low_rank"]
    rows: list[Row] = []
    for attention in (*pooled, *(registry.get(key) for key in OTHERS)):
        for mask in (OPEN, CUT):
            outputs = (output(attention, *x, cut=mask == CUT) for x in (before, after))
            first = first_moved(*outputs)
            rows.append(
                {
                    "variant": attention.title,
                    "mask": mask,
                    "pools": attention in pooled,
                    "back": 0 if first is None else qkv.n - 1 - first,
                }
            )
    return rows


def pooling(variant: Variant, n: int) -> Attention:
    """A low-rank variant as it is set at first, with at most half as many landmarks as tokens: each then pools some."""
    budget = variant.budget
    if budget is None or not isinstance(budget.default, int):
        return registry.get(variant.key)
    return registry.get(variant.key, **{budget.name: max(int(budget.low or 1), min(budget.default, n // 2))})


def output(attention: Attention, q: Tensor, k: Tensor, v: Tensor, *, cut: bool) -> Tensor:
    """``A v``, ``[..., n, d_v]``; cut, every weight on the future is struck out and its row divided by what is left."""
    weights = attention.weights(q, k)
    if cut:
        weights = weights.tril()
        weights = weights / nonzero(weights.sum(-1, keepdim=True))
    return weights @ v


def first_moved(before: Tensor, after: Tensor) -> int | None:
    """The first output before the last that differs, in any head, ``[H, n, d_v]``; None where none does."""
    change, size = (torch.linalg.vector_norm(x[:, :-1], dim=-1) for x in (after - before, before))
    places = (change > MOVED * size).any(0).nonzero()
    return int(places[0]) if len(places) else None


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """How many variants of each kind leak through the mask, and how far back."""
    pooled, others = (column(rows, "back", mask=CUT, pools=pools) for pools in (True, False))
    return {
        "leaking": sum(back > 0 for back in pooled),
        "pooled": len(pooled),
        "back": max(pooled),
        "moved": sum(back > 0 for back in others),
        "others": len(others),
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By how many pooled variants leak, and by nothing else leaking."""
    if numbers["leaking"] == numbers["pooled"] and not numbers["moved"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["leaking"] >= bounds["partly"] else Verdict.FAILS


CLAIM = Claim(
    key="pooling_leaks",
    number=11,
    statement="Attention that pools tokens lets the future leak into the past, so it cannot write text word by word; "
    "hiding the future afterwards does not help.",
    source=Paper("Nyströmformer: linearised attention by matrix decomposition", 2021, "https://kexue.fm/archives/8180"),
    experiment="The last token (of the first 256) gets the opposite query, key and value. Which earlier outputs move: "
    "first with all tokens seen, then with every weight on the future struck out and the rest of its row scaled back "
    "to one?",
    rule="Holds where every pooled variant leaks in spite of the cut and no other variant does, partly where at least "
    "{partly} pooled ones leak.",
    bounds={"partly": 3},
    finding="With the future cut out, the last token still moves earlier outputs in {leaking} of {pooled} pooled "
    "variants, up to {back} tokens back, and in {moved} of {others} variants that do not pool.",
    quantities=(
        Quantity(name="leaking", label="pooled variants that leak"),
        Quantity(name="pooled", label="pooled variants"),
        Quantity(name="back", label="farthest output moved", unit="tokens"),
        Quantity(name="moved", label="other variants that leak"),
        Quantity(name="others", label="other variants"),
    ),
    figure=Figure(
        x="variant", y="back", by="mask", x_title="variant", y_title="how far back outputs move (tokens)", kind="bars"
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=4,
)
