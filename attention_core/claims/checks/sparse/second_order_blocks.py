"""Claim: block scores to second order find more of softmax's mass than mean keys do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Limit, Numbers, Place, Quantity, UntestableError, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE

MEAN, SECOND, BOUND, MASS = "mean key", "second order", "bound", "true mass"
SCORES = (MEAN, SECOND, BOUND, MASS)
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
    rows: list[BlocksRow] = []
    for chosen in BUDGETS:
        rivals = own if qkv.causal else torch.full_like(own, int(own[-1]))
        choosing = rivals > chosen  # queries with more blocks to choose from than they may choose
        for score in SCORES:
            blocks = registry.get("blocks", block=BLOCK, blocks=chosen, score=score)
            assert blocks.variant.pattern is not None
            seen = blocks.variant.pattern(qkv.q, qkv.k, blocks.params, causal=qkv.causal)
            mass = 100 * (full * seen)[..., choosing, :].double().sum(-1).mean(-1)
            rows += inputs.head_rows(BlocksRow, chosen=chosen, score=score, mass=mass)
    found = _judged(rows)
    if all((abs(found[score] - found[MEAN]) < 100 * FLOAT32_TOLERANCE).all() for score in (SECOND, MASS)):
        raise UntestableError(
            "Selecting blocks by mean keys, second order or the true mass works equally well in every head, so there "
            "is nothing to compare. Choose an input whose tokens have different weights."
        )
    yield from rows


def _judged(rows: Sequence[BlocksRow]) -> dict[str, np.ndarray]:
    return {score: np.array(values(rows, "mass", score=score, chosen=JUDGED)) for score in SCORES}


def numbers(rows: Sequence[BlocksRow]) -> Numbers:
    """Return medians over heads, and the shares of heads where second order finds more or less than the mean key."""
    found = _judged(rows)
    gain = found[SECOND] - found[MEAN]
    return {
        "wins": 100 * float((gain > 100 * FLOAT32_TOLERANCE).mean()),
        "loses": 100 * float((gain < -100 * FLOAT32_TOLERANCE).mean()),
        "mean": float(np.median(found[MEAN])),
        "second": float(np.median(found[SECOND])),
        "bound": float(np.median(found[BOUND])),
        "best": float(np.median(found[MASS])),
    }


CLAIM = Claim(
    measure,
    numbers,
    Limit("wins", "most", lambda numbers, bounds: numbers["wins"] > numbers["loses"], least=True),
    statement="With the same number of key blocks, second-order scores find more of softmax's attention mass than "
    "mean keys.",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("inside", {"inside": "blocks~score~second order", "step": "3"}),
    experiment="Each query q attends to its own block of 8 tokens and to 2 others, the blocks with the highest "
    "scores. The score is either q·k̄, with the block's mean key k̄, or q·k̄ + ½ qᵀΣq, with the covariance Σ of its "
    "keys (second order). Softmax's mass is its total weight on the selected blocks. It is averaged over the queries "
    "that have more than 2 other blocks. The figure also shows 1 and 4 blocks, Quest's bound and the true mass.",
    rule="The claim holds if second-order scores find more mass than mean keys in at least {most}% of the heads. It "
    "holds partly if the heads where they find more mass outnumber the heads where they find less.",
    bounds={"most": 75},
    finding="Second-order scores find more mass than mean keys in {wins}% of the heads and less in {loses}%. In the "
    "median head, second-order scores find {second}% of softmax's mass, and mean keys find {mean}%. Quest's bound "
    "finds {bound}%. Selecting blocks by their true mass finds {best}%.",
    quantities=(
        Quantity("wins", "heads where second order finds more", "%"),
        Quantity("loses", "heads where mean keys find more", "%"),
        Quantity("second", "mass by second order", "%"),
        Quantity("mean", "mass by mean keys", "%"),
        Quantity("bound", "mass by Quest's bound", "%"),
        Quantity("best", "mass by the true mass", "%"),
    ),
    figure=Figure(x="chosen", y="mass", by="score", x_title="other blocks", y_title="softmax's mass on the blocks (%)"),
    needs=48,
)
