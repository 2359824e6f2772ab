"""Trained attention is concentrated near the diagonal, so that a local window loses little."""

from collections.abc import Mapping, Sequence
from statistics import median

from torch import Tensor

from attention_core import registry
from attention_core.experiments.claims.claim import Ask, Claim, Figure, Quantity, UntestableError, Verdict, column
from attention_core.experiments.error import uniform
from attention_core.experiments.task import Row
from attention_core.inputs.source import SyntheticSource
from attention_core.metrics.error import relative_error
from attention_core.variant import Paper

PART = 16
"""The window judged by reaches this part of the text on either side: about an eighth of all keys in all."""
MEASURED, UNIFORM = "this input", "spread evenly"


def measure(ask: Ask) -> list[Row]:
    """What lies within ± w of the diagonal, and what local attention with this window errs by, head by head.

    Raises:
        UntestableError: if the input is synthetic.
    """
    if isinstance(ask.source, SyntheticSource):
        raise UntestableError(
            "This claim is about the attention of trained models; choose a text, or upload a model's queries and keys."
        )
    qkv = ask.record()
    softmax = registry.get("softmax")
    weights = softmax.weights(qkv.q, qkv.k, causal=qkv.causal).double()
    exact = softmax.attend(qkv.q, qkv.k, qkv.v, causal=qkv.causal)
    even = uniform(qkv.n, causal=qkv.causal).double()
    judged = max(1, round(qkv.n / PART))
    rows: list[Row] = []
    for window in sorted({judged, *(2**i for i in range((qkv.n - 1).bit_length()))}):
        local = registry.get("local", window=window)
        near = local.mask(qkv.n, causal=qkv.causal)
        errors = relative_error(local.attend(qkv.q, qkv.k, qkv.v, causal=qkv.causal), exact)
        common = {"window": window, "judged": window == judged}
        rows.append({**common, "attention": UNIFORM, "head": None, "mass": within(even, near), "error": None})
        rows += [
            {**common, "attention": MEASURED, "head": head, "mass": within(own, near), "error": 100 * error}
            for own, (head, error) in zip(weights, ask.by_head(errors), strict=True)
        ]
    return rows


def within(weights: Tensor, near: Tensor | None) -> float:
    """Per cent of a matrix' mass on the pairs ``near``."""
    return 100 * float(weights[near].sum() / weights.sum())


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """The middle head at the window judged by."""
    return {
        "mass": median(column(rows, "mass", judged=True, attention=MEASURED)),
        "even": column(rows, "mass", judged=True, attention=UNIFORM)[0],
        "error": median(column(rows, "error", judged=True, attention=MEASURED)),
        "window": column(rows, "window", judged=True)[0],
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By both parts of the statement."""
    return Verdict.of_parts(numbers["mass"] >= bounds["times"] * numbers["even"], numbers["error"] <= bounds["error"])


CLAIM = Claim(
    key="near_diagonal",
    number=17,
    statement="Trained attention is concentrated near the diagonal, so a local window loses little.",
    source=Paper("Longformer: The Long-Document Transformer", 2020, "https://arxiv.org/abs/2004.05150"),
    experiment="Of every head's attention on this input, the share within w tokens of the diagonal is taken for "
    "growing w; where w is a sixteenth of the text (at least one token), the output of local attention is compared "
    "with that of full attention.",
    rule="Holds where in the middle head the window holds at least {times} times what it would hold if attention were "
    "spread evenly, and local attention errs by at most {error} %; partly where one of the two is so.",
    bounds={"times": 2, "error": 25},
    finding="Within {window} tokens of the diagonal lies {mass} % of the middle head's attention, where it would be "
    "{even} % if spread evenly; local attention with this window errs by {error} %.",
    quantities=(
        Quantity(name="mass", label="attention within the window", unit="%"),
        Quantity(name="even", label="the same if spread evenly", unit="%"),
        Quantity(name="error", label="output error of local attention", unit="%"),
        Quantity(name="window", label="window", unit="tokens"),
    ),
    figure=Figure(
        x="window", y="mass", by="attention", x_title="distance from the diagonal w (tokens)",
        y_title="attention within ± w (%)", log_x=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)  # fmt: skip
