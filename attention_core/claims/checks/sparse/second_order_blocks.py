"""Claim: key blocks chosen by mean and covariance have more of softmax's weight than blocks chosen by mean alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attention_core import articles, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError, values
from attention_core.claims.conditions import FLOAT32_TOLERANCE
from attention_core.claims.rule import Condition, Measured, Numbers, Rule
from attention_core.ops.blocks import key_blocks

MEAN, SECOND, BOUND, MASS = (
    "selected by mean key",
    "selected by mean and covariance of keys",
    "selected by bound on logits",
    "selected by true weight",
)
SCORES = {MEAN: key_blocks.MEAN, SECOND: key_blocks.SECOND, BOUND: key_blocks.BOUND, MASS: key_blocks.MASS}
"""The scores of blocks, by the names of their lines in the figure."""
BLOCK, BUDGETS, JUDGED_BUDGET = 8, (1, 2, 4), 2
"""Tokens per block; numbers of other blocks chosen next to the query's own: those measured, and the one judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksRow:
    """The percentage of one head's softmax mass in the blocks that the queries attend to.

    A query attends to its own block and to the ``chosen`` other blocks that rank highest by ``score``.
    """

    chosen: int
    score: str
    head: int
    mass: float


def measure(inputs: ExperimentInput) -> Iterator[BlocksRow]:
    """Yield the softmax mass in the attended blocks per head, with a causal mask if the input is causal.

    Raises:
        UntestableError: if every choice of blocks has the same mass.
    """
    qkv = inputs.record()
    softmax = registry.get("softmax").weights(qkv.q, qkv.k, causal=qkv.causal)
    block_of = torch.arange(qkv.n) // BLOCK
    rows: list[BlocksRow] = []
    for chosen in BUDGETS:
        n_other_blocks = block_of if qkv.causal else torch.full_like(block_of, int(block_of[-1]))
        has_choice = n_other_blocks > chosen  # queries with more other blocks than they select
        for name, score in SCORES.items():
            blocks = registry.get("blocks", block=BLOCK, blocks=chosen, score=score)
            assert blocks.variant.pattern is not None
            selected = blocks.variant.pattern(qkv.q, qkv.k, blocks.params, causal=qkv.causal)
            mass = 100 * (softmax * selected)[..., has_choice, :].double().sum(-1).mean(-1)
            rows += inputs.head_rows(BlocksRow, chosen=chosen, score=name, mass=mass)
    judged = _judged_mass(rows)
    if all((abs(judged[score] - judged[MEAN]) < 100 * FLOAT32_TOLERANCE).all() for score in (SECOND, MASS)):
        raise UntestableError(
            "Blocks of keys selected by mean, by mean and covariance, or by true weight contain the same share of "
            "softmax's weight in every head. Choose an input whose tokens have different weights."
        )
    yield from rows


def _judged_mass(rows: Sequence[BlocksRow]) -> dict[str, np.ndarray]:
    return {score: np.array(values(rows, "mass", score=score, chosen=JUDGED_BUDGET)) for score in SCORES}


def numbers(rows: Sequence[BlocksRow]) -> Numbers:
    """Return the median masses, and the shares of heads where second order finds more or less mass than mean keys."""
    mass = _judged_mass(rows)
    gain = mass[SECOND] - mass[MEAN]
    return {
        "wins": 100 * float((gain > 100 * FLOAT32_TOLERANCE).mean()),
        "loses": 100 * float((gain < -100 * FLOAT32_TOLERANCE).mean()),
        "mean": float(np.median(mass[MEAN])),
        "second": float(np.median(mass[SECOND])),
        "bound": float(np.median(mass[BOUND])),
        "best": float(np.median(mass[MASS])),
    }


CLAIM = Claim(
    statement="To save time, each query can attend to only a few blocks of keys. Blocks chosen by the mean and the "
    "spread (covariance) of their keys contain more of softmax's weight than blocks chosen by the mean alone.",
    short="covariance of keys helps to select blocks",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("inside", {"inside": "blocks~score~second order", "step": "3"}),
    experiment="Each query q attends to its own block of 8 tokens and to the 2 other blocks with the highest scores. "
    "The score of a block is q·k̄, where k̄ is the mean of its keys, or the second-order score q·k̄ + ½ qᵀΣq, where Σ "
    "is their covariance. For each head, softmax's total weight on the 3 blocks that a query attends to is averaged "
    "over the queries that can choose from more than 2 other blocks. The figure also shows the results for 1 and 4 "
    "other blocks, and for two more scores of a block: Quest's upper bound on its logits, and its true weight.",
    rule="Each query attends to its own block of keys and to the 2 other blocks with the highest scores. A block is "
    "scored by the mean of its keys alone, or by their mean and covariance. The claim holds if scoring by mean and "
    "covariance selects blocks with more of softmax's weight in at least {most}% of the heads. It partly holds if the "
    "heads where these blocks contain more of softmax's weight outnumber the heads where they contain less.",
    bounds={"most": 75},
    verdict=Rule(holds=Condition("wins", ">=", "most"), partly=Condition("wins", ">", Measured("loses"))),
    finding="The mean of a block's keys hides a single key with a large logit, but the covariance shows how far keys "
    "deviate from the mean. Blocks selected by mean and covariance contain more of softmax's weight than blocks "
    "selected by the mean alone in {wins}% of the heads.",
    details="Blocks selected by the mean and covariance of their keys contain {second}% of softmax's weight, and "
    "blocks selected by the mean alone contain {mean}% (medians over heads). Selection by Quest's score, an upper "
    "bound on the logits of a block, reaches {bound}%. Selection by true weight reaches the maximum, {best}%.",
    quantities=(
        Quantity(
            "wins", "heads where mean and covariance select better blocks than the mean alone", "%", of_heads=True
        ),
        Quantity(
            "loses", "heads where mean and covariance select worse blocks than the mean alone", "%", of_heads=True
        ),
        Quantity(
            "second", "share of softmax's weight in the blocks selected by mean and covariance, median over heads", "%"
        ),
        Quantity(
            "mean", "share of softmax's weight in the blocks selected by the mean key alone, median over heads", "%"
        ),
        Quantity(
            "bound",
            "share of softmax's weight in the blocks selected by Quest's upper bound on their logits, median over "
            "heads",
            "%",
        ),
        Quantity(
            "best",
            "share of softmax's weight in the blocks with the largest true weights (best possible selection), median "
            "over heads",
            "%",
        ),
    ),
    figure=Figure(
        x=Axis("chosen", "number of selected blocks in addition to the query's own"),
        y=Axis("mass", "softmax's weight in the selected blocks (%)"),
        by="score",
    ),
    needs=48,
)
