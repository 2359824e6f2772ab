"""Claim: trained models attend mostly to nearby tokens (near the diagonal), so that a local window loses little."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from torch import Tensor

from attention_core import registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, UntestableError, values
from attention_core.claims.rule import Condition, Measured, Numbers, parts
from attention_core.experiments.error import uniform_weights
from attention_core.metrics.approximation import relative_error

WINDOW_DIVISOR = 16
"""The judged window extends 1/16 of the text to either side, so that it covers about an eighth of all keys."""
ALL_TOKENS, REST, UNIFORM = "softmax, all tokens", "softmax, first token removed", "equal weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow:
    """The share of one head's attention within one distance of the diagonal.

    Attributes:
        window: the distance w, in tokens.
        judged: whether the claim is judged at this distance.
        attention: ``ALL_TOKENS``, ``REST`` (without the first token) or ``UNIFORM`` attention.
        head: the head; None for uniform attention.
        mass: per cent of the attention within ± w.
        even: the same share for equal weights, per cent.
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
    if not inputs.source.may_be_trained:
        raise UntestableError(
            "This claim is about the attention of trained models. Choose a text, or upload a model's queries and keys."
        )
    qkv = inputs.record()
    judged = max(1, round(qkv.n / WINDOW_DIVISOR))
    windows = sorted({judged, *(2**i for i in range((qkv.n - 1).bit_length()))})
    for attention, first in ((ALL_TOKENS, 0), (REST, 1)):
        q, k, v = (x[:, first:] for x in qkv.tensors)
        softmax, n = registry.get("softmax"), qkv.n - first
        weights = softmax.weights(q, k, causal=qkv.causal).double()
        even = uniform_weights(n, causal=qkv.causal).double()
        for window in windows:
            local = registry.get("local", window=window)
            near = local.mask(n, causal=qkv.causal)
            row = {"window": window, "judged": window == judged, "even": percent_within(even, near)}
            if attention == ALL_TOKENS:
                yield WindowRow(**row, attention=UNIFORM, head=None, mass=row["even"])
            error = None
            if window == judged:
                outputs = (each.attend(q, k, v, causal=qkv.causal) for each in (local, softmax))
                error = 100 * relative_error(*outputs)
            mass = [percent_within(matrix, near) for matrix in weights]
            first_mass = 100 * weights[..., 0].mean(-1)
            yield from inputs.head_rows(WindowRow, **row, attention=attention, mass=mass, first=first_mass, error=error)


def percent_within(weights: Tensor, near: Tensor | None) -> float:
    """Return the per cent of a matrix's mass on the pairs selected by ``near``; None selects all pairs."""
    return 100 * float(weights[near].sum() / weights.sum())


def numbers(rows: Sequence[WindowRow]) -> Numbers:
    """Return medians over heads at the window that decides the verdict, with the first token and without it."""
    own, rest = ([row for row in rows if row.judged and row.attention == each] for each in (ALL_TOKENS, REST))
    return {
        "mass": median(values(own, "mass")),
        "even": own[0].even,
        "error": median(values(own, "error")),
        "first": median(values(own, "first")),
        "mass_rest": median(values(rest, "mass")),
        "even_rest": rest[0].even,
        "error_rest": median(values(rest, "error")),
        "window": own[0].window,
    }


CLAIM = Claim(
    statement="Trained models attend mostly to nearby tokens. Their output changes little if each query may attend "
    "only to a window of nearby keys.",
    short="attention is mostly local",
    source=registry.variant("longformer").source,
    place=Place("matrices", variants=("softmax", "local~window~{window}")),
    experiment="For increasing distances w, the experiment measures the share of every head's attention on keys at "
    "most w tokens from the query. The verdict uses w = n/16 (at least one token), where n is the number of tokens. "
    "Local attention allows only keys within this window, and its output is compared with that of full attention. Both "
    "measurements are repeated after the first token is removed from the input, because trained models often put much "
    "weight on this token for every query.",
    rule="The local window of a query contains the keys up to about n/16 tokens away, where n is the number of "
    "tokens. Two conditions are tested, each on the whole input and again without its first token. (1) The "
    "window receives at least {times}× as much attention as with equal weights for all keys. (2) Local "
    "attention, which allows only the window, has an output error of at most {error}% (relative difference from "
    "softmax's output). The four tests use medians over heads. The claim holds if all four are passed, and "
    "partly holds if one, two or three are passed.",
    bounds={"times": 2, "error": 25},
    verdict=parts(
        Condition("mass", ">=", Measured("even", "times")),
        Condition("error", "<=", "error"),
        Condition("mass_rest", ">=", Measured("even_rest", "times")),
        Condition("error_rest", "<=", "error"),
    ),
    finding="Softmax gives {mass}% of its weight (median over heads) to keys within a distance of {window} from the "
    "query; equal weights would give {even}%.",
    details="The first token receives {first}% of the attention (median over heads).",
    quantities=(
        Quantity("mass", "attention within the window, median over heads", "%"),
        Quantity("even", "share of attention within the local window if all keys have equal weights", "%"),
        Quantity("error", "output error of local attention, median over heads", "%"),
        Quantity("first", "share of attention on the first token, median over heads", "%"),
        Quantity("mass_rest", "attention within the window without the first token, median over heads", "%"),
        Quantity(
            "even_rest",
            "share of attention within the local window if all keys have equal weights and the first token is removed",
            "%",
        ),
        Quantity("error_rest", "output error without the first token, median over heads", "%"),
        Quantity("window", "largest distance between a query and a key within the window", "tokens"),
    ),
    figure=Figure(
        x=Axis("window", "distance w (tokens)", log=True),
        y=Axis("mass", "attention on keys within distance w (%)"),
        by="attention",
    ),
    needs=8,
)
