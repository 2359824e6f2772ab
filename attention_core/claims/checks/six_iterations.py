"""Claim: six iterations are enough for Nyström's inverse with 64 landmarks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from attention_core import metrics, registry
from attention_core.claims.claim import (
    FUTURE,
    READ_BOTH_WAYS,
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    Verdict,
    future,
)
from attention_core.ops.low_rank.inverse import inverse_steps
from attention_core.variant import Paper

LANDMARKS, SIX, MORE = 64, 6, 12
SHARED = 2
"""Minimum tokens per landmark. If every token is a landmark, the matrix to invert is softmax's own matrix."""
RESIDUAL, ATTENTION = "inverse: I − M V", "attention beside softmax"


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
    exact = registry.get("softmax").weights(qkv.q, qkv.k)
    hidden = future(qkv)
    parts = registry.get("nystrom", landmarks=LANDMARKS).anatomy(*qkv.tensors)
    left, middle, right = parts["left"], parts["middle"], parts["right"]
    identity = torch.eye(middle.shape[-1]).expand_as(middle)
    for iteration, inverse in enumerate(inverse_steps(middle, MORE)):
        for of, values in (
            (RESIDUAL, metrics.relative_error(middle @ inverse, identity)),
            (ATTENTION, metrics.relative_error(left @ (inverse @ right), exact)),
        ):
            for head, error in inputs.by_head(values):
                yield IterationRow(tokens=qkv.n, future=hidden, iteration=iteration, of=of, head=head, error=error)


def numbers(rows: Sequence[IterationRow]) -> Numbers:
    """Return medians over heads after six iterations and after twelve."""

    def middle(of: str, iteration: int) -> float:
        return median(row.error for row in rows if row.of == of and row.iteration == iteration)

    return {
        "residual": middle(RESIDUAL, SIX),
        "error": middle(ATTENTION, SIX),
        "later": middle(ATTENTION, MORE),
        "tokens": rows[0].tokens,
        "future": rows[0].future,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge by the inverse; ``PARTLY`` if a better inverse would hardly improve the attention matrix."""
    if numbers["residual"] <= bounds["inverse"]:
        return Verdict.HOLDS
    near, gained = numbers["error"] <= bounds["near"], numbers["error"] - numbers["later"]
    return Verdict.PARTLY if near or gained <= bounds["gain"] / 100 * numbers["error"] else Verdict.FAILS


CLAIM = Claim(
    key="six_iterations",
    number=8,
    statement="Six iterations are enough to invert the landmarks' matrix of Nyström attention, with 64 landmarks.",
    source=Paper(
        "Nyströmformer: A Nyström-Based Algorithm for Approximating Self-Attention",
        2021,
        "https://arxiv.org/abs/2102.03902",
    ),
    place=Place("inside", {"inside": "nystrom", "step": "3"}),
    experiment="Twelve iterations run on the matrix of 64 landmarks, each the mean of two tokens at least; after each, "
    "what is missing from an inverse V of that matrix M is measured, and how far attention made with it is from "
    "softmax.",
    rule="Holds where the residual I − M V is at most {inverse} of I after six; partly where not, but attention "
    "then errs by at most {near}, or twelve iterations lower its error by no more than {gain}%.",
    bounds={"inverse": 0.1, "near": 0.1, "gain": 5},
    finding="After six iterations {residual} of the identity is still missing with 64 landmarks for {tokens} tokens; "
    "attention then errs by {error}, after twelve by {later}.",
    quantities=(
        Quantity("residual", "residual after six"),
        Quantity("error", "attention's error after six"),
        Quantity("later", "attention's error after twelve"),
        Quantity("tokens", "this input", "tokens"),
        FUTURE,
    ),
    figure=Figure(
        x="iteration", y="error", by="of", x_title="iterations", y_title="residual or relative error", log_y=True
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    notes=(READ_BOTH_WAYS,),
    noncausal_method="Nyström",
    needs=SHARED * LANDMARKS,
)
