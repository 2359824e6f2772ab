"""Claim: with 64 landmarks, six iterations are enough to compute the inverse in Nyström attention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.conditions import FUTURE, future_percent
from attention_core.claims.rule import Condition, Numbers, Rule, any_of
from attention_core.ops.low_rank.inverse import inverse_steps

LANDMARKS, ITERATIONS, MAX_ITERATIONS = 64, 6, 12
TOKENS_PER_LANDMARK = 2
"""Minimum tokens per landmark. If every token is a landmark, the matrix to invert is softmax's own matrix."""
RESIDUAL, ATTENTION = "residual of the inverse", "error of the attention matrix"


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationRow:
    """The relative error of one head's inverse or attention matrix (``of``) after a number of iterations.

    ``future`` (``FUTURE``): for a causal model, the percentage of softmax's attention on later tokens without a mask.
    """

    tokens: int
    future: float
    iteration: int
    of: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[IterationRow]:
    """Yield, after each iteration and per head, the inverse's residual and the attention matrix's relative error."""
    qkv = inputs.record()
    exact, hidden = registry.get("softmax").weights(qkv.q, qkv.k), future_percent(qkv)
    parts = registry.get("nystrom", landmarks=LANDMARKS).anatomy(*qkv.tensors)
    left, middle, right = parts["left"], parts["middle"], parts["right"]
    identity = torch.eye(middle.shape[-1]).expand_as(middle)
    for iteration, inverse in enumerate(inverse_steps(middle, MAX_ITERATIONS)):
        row = {"tokens": qkv.n, "future": hidden, "iteration": iteration}
        residual = metrics.relative_error(middle @ inverse, identity)
        yield from inputs.head_rows(IterationRow, **row, of=RESIDUAL, error=residual)
        error = metrics.relative_error(left @ (inverse @ right), exact)
        yield from inputs.head_rows(IterationRow, **row, of=ATTENTION, error=error)


def numbers(rows: Sequence[IterationRow]) -> Numbers:
    """Return median errors over heads: the inverse's after six iterations, the matrix's after six and twelve."""
    return {
        "residual": median(values(rows, "error", of=RESIDUAL, iteration=ITERATIONS)),
        "error": median(values(rows, "error", of=ATTENTION, iteration=ITERATIONS)),
        "later": median(values(rows, "error", of=ATTENTION, iteration=MAX_ITERATIONS)),
        "future": rows[0].future,
    }


CLAIM = Claim(
    statement="Nyström attention with 64 landmarks (averaged tokens) must invert a 64 × 64 matrix. Six steps of an "
    "iterative method are enough for this.",
    short="six iterations invert Nyström's matrix",
    source=registry.variant("nystrom").source,
    place=Place("inside", {"inside": f"nystrom~landmarks~{LANDMARKS}", "step": "3"}),
    experiment="Nyström attention summarises the tokens by 64 landmarks, each of which is the mean of at least two "
    "tokens. It needs the inverse of M, the 64 × 64 matrix of attention between landmarks. Twelve iterations compute "
    "V, an approximate inverse of M. After each iteration, two numbers are measured. The residual is the norm of I − "
    "M V relative to the norm of the identity I. The matrix error is the relative difference of Nyström attention's "
    "matrix from softmax's matrix.",
    rule="M is the matrix of attention between Nyström's landmarks (averaged tokens), and V is its approximate "
    "inverse. The residual is the norm of I − M V divided by the norm of the identity I, so it is 0 for an exact "
    "inverse. The claim holds if the median residual over heads after six iterations is at most {inverse}. Otherwise, "
    "it partly holds in either of two cases: (1) The median matrix error of Nyström attention over heads after six "
    "iterations is at most {near}. (2) Six more iterations lower this error by at most {gain}%.",
    bounds={"inverse": 0.1, "near": 0.1, "gain": 5},
    verdict=Rule(
        holds=Condition("residual", "<=", "inverse"),
        partly=any_of(
            Condition("error", "<=", "near"),
            Condition("later", ">=", lambda numbers, bounds: (1 - bounds["gain"] / 100) * numbers["error"]),
        ),
    ),
    finding="Nyström attention approximates the inverse of its landmark matrix step by step. After six iterations, "
    "the residual (distance from an exact inverse) is {residual} (median over heads). The matrix error (difference "
    "from softmax's matrix, median over heads) is {error}.",
    quantities=(
        Quantity("residual", "residual of the inverse after six iterations (0: exact), median over heads", share=True),
        Quantity("error", "Nyström's matrix error after six iterations, median over heads", share=True),
        Quantity("later", "Nyström's matrix error after twelve iterations, median over heads", share=True),
        FUTURE,
    ),
    figure=Figure(
        x=Axis("iteration", "number of iterations"),
        y=Axis("error", "residual of the inverse, or error of the attention matrix (1 = 100%)", log=True),
        by="of",
    ),
    noncausal_method="Nyström",
    needs=TOKENS_PER_LANDMARK * LANDMARKS,
)
