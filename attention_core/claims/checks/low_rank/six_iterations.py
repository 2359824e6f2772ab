"""Claim: six iterations are enough for Nyström's inverse with 64 landmarks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Figure, Limit, Numbers, Place, Quantity, values
from attention_core.claims.conditions import FUTURE, MEASURED_UNMASKED, future
from attention_core.ops.low_rank.inverse import inverse_steps
from attention_core.variant import Paper

LANDMARKS, SIX, MORE = 64, 6, 12
SHARED = 2
"""Minimum tokens per landmark. If every token is a landmark, the matrix to invert is softmax's own matrix."""
RESIDUAL, ATTENTION = "residual I − M V", "attention error"


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationRow:
    """The relative error of one head's inverse or attention matrix (``of``) after one iteration, and ``FUTURE``."""

    tokens: int
    future: float
    iteration: int
    of: str
    head: int
    error: float


def measure(inputs: ExperimentInput) -> Iterator[IterationRow]:
    """Yield, after each iteration and per head, the inverse's residual and the attention matrix's relative error."""
    qkv = inputs.record()
    exact, hidden = registry.get("softmax").weights(qkv.q, qkv.k), future(qkv)
    parts = registry.get("nystrom", landmarks=LANDMARKS).anatomy(*qkv.tensors)
    left, middle, right = parts["left"], parts["middle"], parts["right"]
    identity = torch.eye(middle.shape[-1]).expand_as(middle)
    for iteration, inverse in enumerate(inverse_steps(middle, MORE)):
        row = {"tokens": qkv.n, "future": hidden, "iteration": iteration}
        residual = metrics.relative_error(middle @ inverse, identity)
        yield from inputs.head_rows(IterationRow, **row, of=RESIDUAL, error=residual)
        error = metrics.relative_error(left @ (inverse @ right), exact)
        yield from inputs.head_rows(IterationRow, **row, of=ATTENTION, error=error)


def numbers(rows: Sequence[IterationRow]) -> Numbers:
    """Return medians over heads after six iterations and after twelve."""
    return {
        "residual": median(values(rows, "error", of=RESIDUAL, iteration=SIX)),
        "error": median(values(rows, "error", of=ATTENTION, iteration=SIX)),
        "later": median(values(rows, "error", of=ATTENTION, iteration=MORE)),
        "tokens": rows[0].tokens,
        "future": rows[0].future,
    }


def hardly_improves(numbers: Numbers, bounds: Numbers) -> bool:
    """Return whether attention is accurate, or a better inverse would hardly improve it."""
    gained = numbers["error"] - numbers["later"]
    return numbers["error"] <= bounds["near"] or gained <= bounds["gain"] / 100 * numbers["error"]


CLAIM = Claim(
    measure,
    numbers,
    Limit("residual", "inverse", hardly_improves),
    statement="Six iterations are enough to invert the landmark matrix of Nyström attention with 64 landmarks.",
    source=Paper(
        "Nyströmformer: A Nyström-Based Algorithm for Approximating Self-Attention",
        2021,
        "https://arxiv.org/abs/2102.03902",
    ),
    place=Place("inside", {"inside": "nystrom", "step": "3"}),
    experiment="M is the landmark matrix of 64 landmarks, each of which is the mean of at least two tokens. Twelve "
    "iterations compute V, an approximate inverse of M. After each iteration, the residual I − M V and the error of "
    "the attention matrix are measured.",
    rule="M is the matrix to invert, and V is its approximate inverse. The claim holds if, after six iterations, the "
    "norm of I − M V is at most {inverse} times the norm of I. Otherwise it holds partly in either of two cases: the "
    "attention error after six iterations is at most {near}, or six more iterations lower it by at most {gain}%.",
    bounds={"inverse": 0.1, "near": 0.1, "gain": 5},
    finding="After six iterations, the residual of the inverse in the median head is {residual}; an exact inverse "
    "has 0. The attention error is {error} after six iterations and {later} after twelve.",
    quantities=(
        Quantity("residual", "residual after six iterations"),
        Quantity("error", "attention error after six iterations"),
        Quantity("later", "attention error after twelve iterations"),
        Quantity("tokens", "this input", "tokens"),
        FUTURE,
    ),
    figure=Figure(x="iteration", y="error", by="of", x_title="iterations", y_title="residual or error", log="y"),
    notes=(MEASURED_UNMASKED,),
    noncausal_method="Nyström",
    needs=SHARED * LANDMARKS,
)
