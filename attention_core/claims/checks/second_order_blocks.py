"""Claim: block scores to second order find more of softmax's mass than mean keys do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_core import articles, registry
from attention_core.claims.claim import (
    FLOAT32_TOLERANCE,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    UntestableError,
    Verdict,
)

MEAN, SECOND, MASS = "mean key", "second order", "true mass"
SCORES = (MEAN, SECOND, "bound", MASS)
BLOCK, BUDGETS, JUDGED = 8, (1, 2, 4), 2
"""Tokens per block; numbers of other blocks chosen next to the query's own: those measured, and the one judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksRow:
    """Per cent of softmax's mass in the own block and in ``chosen`` other blocks of one head's queries."""

    chosen: int
    score: str
    head: int
    mass: float


def measure(inputs: ExperimentInput) -> Iterator[BlocksRow]:
    """Yield the softmax mass in the attended blocks per head, causal if the input is causal.

    Raises:
        UntestableError: if all scores choose equally well.
    """
    qkv = inputs.record()
    full = registry.get("softmax").weights(qkv.q, qkv.k, causal=qkv.causal)
    own = torch.arange(qkv.n) // BLOCK
    rows = []
    for chosen in BUDGETS:
        rivals = own if qkv.causal else torch.full_like(own, int(own[-1]))
        choosing = rivals > chosen  # queries with more blocks to choose from than they may choose
        for score in SCORES:
            blocks = registry.get("blocks", block=BLOCK, blocks=chosen, score=score)
            assert blocks.variant.pattern is not None
            seen = blocks.variant.pattern(qkv.q, qkv.k, blocks.params, causal=qkv.causal)
            mass = 100 * (full * seen)[..., choosing, :].double().sum(-1).mean(-1)
            rows += [BlocksRow(chosen=chosen, score=score, head=head, mass=x) for head, x in inputs.by_head(mass)]
    found = _judged(rows)
    if all((abs(found[score] - found[MEAN]) < 100 * FLOAT32_TOLERANCE).all() for score in (SECOND, MASS)):
        raise UntestableError(
            "Mean keys, second order and the true mass choose equally well in every head here, so that there is "
            "nothing to compare; choose an input whose tokens do not all weigh the same."
        )
    yield from rows


def _judged(rows: Sequence[BlocksRow]) -> dict[str, np.ndarray]:
    return {score: np.array([r.mass for r in rows if (r.score, r.chosen) == (score, JUDGED)]) for score in SCORES}


def numbers(rows: Sequence[BlocksRow]) -> Numbers:
    """Return medians over heads, and the shares of heads where second order finds more or less than the mean key."""
    found = _judged(rows)
    gain = found[SECOND] - found[MEAN]
    return {
        "wins": 100 * float((gain > 100 * FLOAT32_TOLERANCE).mean()),
        "loses": 100 * float((gain < -100 * FLOAT32_TOLERANCE).mean()),
        "mean": float(np.median(found[MEAN])),
        "second": float(np.median(found[SECOND])),
        "bound": float(np.median(found["bound"])),
        "best": float(np.median(found[MASS])),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the share of heads where second order finds more mass."""
    if numbers["wins"] >= bounds["most"]:
        return Verdict.HOLDS
    return Verdict.PARTLY if numbers["wins"] > numbers["loses"] else Verdict.FAILS


CLAIM = Claim(
    key="second_order_blocks",
    number=27,
    statement="Of as many blocks of keys, those that score best to second order hold more of softmax's mass than those "
    "that score best by their mean key.",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("inside", {"inside": "blocks~score~second order", "step": "3"}),
    experiment="Each query looks at its own block of 8 tokens and at 2 others, chosen by q·k̄ and by q·k̄ + ½ qᵀΣq; "
    "softmax's mass on these is taken over the queries that have more to choose from, head by head and causal where "
    "the model is. Beside 2 blocks 1 and 4 are drawn, beside the two scores Quest's bound and the true mass.",
    rule="Holds where second order finds more in {most}% of the heads or more; partly where in more heads than it "
    "finds less.",
    bounds={"most": 75},
    finding="Second order finds more in {wins}% of the heads and less in {loses}%: {second}% of softmax's mass in "
    "the middle head where mean keys find {mean}%, Quest's bound {bound}% and the true mass {best}%.",
    quantities=(
        Quantity("wins", "heads where second order finds more", "%"),
        Quantity("loses", "heads where mean keys find more", "%"),
        Quantity("second", "mass by second order", "%"),
        Quantity("mean", "mass by mean keys", "%"),
        Quantity("bound", "mass by Quest's bound", "%"),
        Quantity("best", "mass by the true mass", "%"),
    ),
    figure=Figure(
        x="chosen",
        y="mass",
        by="score",
        x_title="blocks chosen beside the own one",
        y_title="softmax's mass on the blocks, %",
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=48,
)
