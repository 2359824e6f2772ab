"""Taking the mean key from every key leaves softmax as it is and brings its Taylor series closer to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles, registry
from attention_core.claims.claim import Ask, Claim, Figure, Numbers, Place, Quantity, Verdict, check_uneven
from attention_core.experiments.error import uniform
from attention_core.metrics.error import relative_error

GIVEN, CENTRED = "keys as they are", "keys less their mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    """One head with keys of one kind.

    Attributes:
        keys: ``GIVEN`` or ``CENTRED``.
        head: the head.
        error: per cent that the series' matrix lies from softmax's of the keys as they are.
        moved: per cent that softmax's own matrix lies from that.
    """

    keys: str
    head: int
    error: float
    moved: float


def measure(ask: Ask) -> Iterator[SeriesRow]:
    """The same series of the same logits' exponentials, with and without the mean key, in float64.

    Raises:
        UntestableError: if all tokens weigh the same.
    """
    qkv = ask.record()
    q, k = qkv.q.double(), qkv.k.double()
    softmax, series = registry.get("softmax"), registry.get("taylor2")
    wanted = softmax.weights(q, k, causal=qkv.causal)
    check_uneven(relative_error(uniform(qkv.n, causal=qkv.causal).double().expand_as(wanted), wanted))
    for name, keys in ((GIVEN, k), (CENTRED, k - k.mean(-2, keepdim=True))):
        errors, moves = (
            ask.by_head(100 * relative_error(each.weights(q, keys, causal=qkv.causal), wanted))
            for each in (series, softmax)
        )
        for (head, error), (_, moved) in zip(errors, moves, strict=True):
            yield SeriesRow(keys=name, head=head, error=error, moved=moved)


def numbers(rows: Sequence[SeriesRow]) -> Numbers:
    """The middle head's errors, in how many heads the mean helps, and the most that softmax moves."""
    given, centred = ([row.error for row in rows if row.keys == keys] for keys in (GIVEN, CENTRED))
    return {
        "centred": median(centred),
        "given": median(given),
        "helped": 100 * sum(after < before for before, after in zip(given, centred, strict=True)) / len(given),
        "moved": max(row.moved for row in rows),
        "heads": len(given),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """By whether softmax stays and, if so, whether the series comes closer in the middle head and in most."""
    if numbers["moved"] > bounds["moved"]:
        return Verdict.FAILS
    return Verdict.of_parts(numbers["centred"] < numbers["given"], numbers["helped"] >= bounds["helped"])


CLAIM = Claim(
    key="centred_keys",
    number=22,
    statement="Taking the mean key from every key leaves softmax as it is and brings its Taylor series closer.",
    source=articles.TAYLOR_EXPANSIONS,
    place=Place("matrices", variants=("softmax", "taylor2", "centred_taylor")),
    experiment="Of every head's logits on this input the exponential is replaced by its second-order Taylor series, "
    "each row over its sum; once with the keys as they are and once with their mean over the text taken from each. "
    "Both matrices, and softmax of the keys less their mean, are compared with softmax of the keys as they are.",
    rule="Holds where softmax moves by at most {moved} % and the series errs less in the middle head and in at least "
    "{helped} % of the heads; partly where only one of the last two is so.",
    bounds={"moved": 1e-6, "helped": 75},
    finding="With the keys less their mean the series errs by {centred} % in the middle head, with the keys as they "
    "are by {given} %; in {helped} % of the {heads} heads the mean's leaving helps. Softmax moves by {moved} % at "
    "most.",
    quantities=(
        Quantity("centred", "error of the series, keys less their mean", "%"),
        Quantity("given", "error of the series, keys as they are", "%"),
        Quantity("helped", "heads that it helps", "%"),
        Quantity("moved", "most that softmax moves", "%"),
        Quantity("heads", "heads"),
    ),
    figure=Figure(
        x="head", y="error", by="keys", x_title="head", y_title="error of the series' matrix (%)", log_y=True
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=2,
)
