"""Claim: trained attention is concentrated near the diagonal, so that a local window loses little."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import (
    Claim,
    ExperimentInput,
    Figure,
    Numbers,
    Place,
    Quantity,
    UntestableError,
    Verdict,
)
from attention_core.experiments.error import uniform
from attention_core.metrics.error import relative_error
from attention_core.variant import Paper

PART = 16
"""The judged window extends 1/16 of the text to either side, so that it covers about an eighth of all keys."""
MEASURED, REST, UNIFORM = "this input", "without the first token", "spread evenly"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow:
    """The attention of one head within one distance of the diagonal.

    Attributes:
        window: the distance w, in tokens.
        judged: whether the claim is judged at this distance.
        even: per cent of uniform attention within ± w.
        attention: ``MEASURED``, ``REST`` or ``UNIFORM``.
        head: the head; None for uniform attention.
        mass: per cent of the attention within ± w.
        first: per cent of the attention on the first key.
        error: relative error of local attention's output in per cent, at the judged window only.
    """

    window: int
    judged: bool
    even: float
    attention: str
    head: int | None
    mass: float
    first: float | None = None
    error: float | None = None


def measure(inputs: ExperimentInput) -> Iterator[WindowRow]:
    """Yield the attention mass within ± w of the diagonal per head, and local attention's error at the judged w.

    Everything is measured twice: with all tokens, and without the first token as query and key, with renormalized rows.

    Raises:
        UntestableError: if the input is synthetic.
    """
    if not inputs.source.trained:
        raise UntestableError(
            "This claim is about the attention of trained models; choose a text, or upload a model's queries and keys."
        )
    qkv = inputs.record()
    judged = max(1, round(qkv.n / PART))
    windows = sorted({judged, *(2**i for i in range((qkv.n - 1).bit_length()))})
    for attention, first in ((MEASURED, 0), (REST, 1)):
        q, k, v = (x[:, first:] for x in qkv.tensors)
        softmax, n = registry.get("softmax"), qkv.n - first
        weights = softmax.weights(q, k, causal=qkv.causal).double()
        even = uniform(n, causal=qkv.causal).double()
        on_first = inputs.by_head(100 * weights[..., 0].mean(-1))
        for window in windows:
            local = registry.get("local", window=window)
            near = local.mask(n, causal=qkv.causal)
            share, seen = within(even, near), partial(WindowRow, window=window, judged=window == judged)
            if attention == MEASURED:
                yield seen(even=share, attention=UNIFORM, head=None, mass=share)
            errors: Sequence[float | None] = [None] * len(weights)
            if window == judged:
                outputs = (each.attend(q, k, v, causal=qkv.causal) for each in (local, softmax))
                errors = [100 * error for error in relative_error(*outputs).tolist()]
            for own, (head, on), error in zip(weights, on_first, errors, strict=True):
                mass = within(own, near)
                yield seen(even=share, attention=attention, head=head, mass=mass, first=on, error=error)


def within(weights: Tensor, near: Tensor | None) -> float:
    """Return the per cent of a matrix's mass on the pairs selected by ``near``; None selects all pairs."""
    return 100 * float(weights[near].sum() / weights.sum())


def numbers(rows: Sequence[WindowRow]) -> Numbers:
    """Return medians over heads at the judged window, with the first token and without it."""
    judged = [row for row in rows if row.judged]
    own, rest = ([row for row in judged if row.attention == attention] for attention in (MEASURED, REST))
    return {
        "mass": median(row.mass for row in own),
        "even": own[0].even,
        "error": median(row.error for row in own if row.error is not None),
        "first": median(row.first for row in own if row.first is not None),
        "mass_rest": median(row.mass for row in rest),
        "even_rest": rest[0].even,
        "error_rest": median(row.error for row in rest if row.error is not None),
        "window": judged[0].window,
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Judge both parts of the statement, each with the first token and without it."""
    return Verdict.of_parts(
        numbers["mass"] >= bounds["times"] * numbers["even"],
        numbers["error"] <= bounds["error"],
        numbers["mass_rest"] >= bounds["times"] * numbers["even_rest"],
        numbers["error_rest"] <= bounds["error"],
    )


CLAIM = Claim(
    key="near_diagonal",
    number=17,
    statement="Trained attention is concentrated near the diagonal, so a local window loses little.",
    source=Paper("Longformer: The Long-Document Transformer", 2020, "https://arxiv.org/abs/2004.05150"),
    place=Place("matrices", variants=("softmax", "local")),
    experiment="Of every head's attention on this input, the share within w tokens of the diagonal is taken for "
    "growing w; where w is a sixteenth of the text (at least one token), the output of local attention is compared "
    "with that of full attention. All of it is done again without the first token, on which trained models park "
    "attention that they have no other use for.",
    rule="Holds where in the middle head the window holds at least {times}× what it would hold if attention were "
    "spread evenly, and local attention errs by at most {error}%, both with the first token and without it; partly "
    "where any of the four is so.",
    bounds={"times": 2, "error": 25},
    finding="Within w = {window} of the diagonal lies {mass}% of the middle head's attention ({even}% if spread "
    "evenly), and local attention with this window errs by {error}%; without the first token, on which {first}% "
    "lies, these are {mass_rest}% ({even_rest}%) and {error_rest}%.",
    quantities=(
        Quantity("mass", "attention within the window", "%"),
        Quantity("even", "the same if spread evenly", "%"),
        Quantity("error", "output error of local attention", "%"),
        Quantity("first", "attention on the first token", "%"),
        Quantity("mass_rest", "within the window, without the first token", "%"),
        Quantity("even_rest", "the same if spread evenly, without it", "%"),
        Quantity("error_rest", "output error of local attention, without it", "%"),
        Quantity("window", "window", "tokens"),
    ),
    figure=Figure(
        x="window",
        y="mass",
        by="attention",
        x_title="distance from the diagonal w (tokens)",
        y_title="attention within ± w (%)",
        log_x=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)
