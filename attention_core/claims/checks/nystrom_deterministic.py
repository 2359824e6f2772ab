"""Claim: the output of Performer is random, and the output of Nyström is not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Case, Claim, ExperimentInput, Figure, Numbers, Place, Quantity, Verdict
from attention_core.experiments.error import draws

NYSTROM, PERFORMER = "Nyström", "Performer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """The relative difference between the output of a repeated run and of the first run, in one head."""

    variant: str
    causal: bool
    run: int
    head: int
    change: float


def measure(inputs: ExperimentInput) -> Iterator[RunRow]:
    """Yield the relative difference between each repeated run's output and the first output, per head.

    Performer is causal if the input is causal; Nyström cannot be causal.
    """
    qkv = inputs.record()
    performers, nystrom = draws(registry.get("performer")), registry.get("nystrom")
    every = ((PERFORMER, performers, qkv.causal), (NYSTROM, [nystrom] * len(performers), False))
    for variant, runs, causal in every:
        first, *others = (run.attend(*qkv.tensors, causal=causal) for run in runs)
        for number, out in enumerate(others, 2):
            for head, change in inputs.by_head(metrics.relative_error(out, first)):
                yield RunRow(variant=variant, causal=causal, run=number, head=head, change=change)


def numbers(rows: Sequence[RunRow]) -> Numbers:
    """Return the median change of Performer's output and the largest change of Nyström's output."""
    return {
        "performer": 100 * median(row.change for row in rows if row.variant == PERFORMER),
        "nystrom": 100 * max(row.change for row in rows if row.variant == NYSTROM),
        "runs": max(row.run for row in rows),
        "causal": any(row.causal for row in rows),
    }


def verdict(numbers: Numbers, bounds: Numbers) -> Verdict:
    """Check that Nyström's output does not change, and that Performer's output changes visibly."""
    if numbers["nystrom"] > bounds["still"]:
        return Verdict.FAILS
    return Verdict.HOLDS if numbers["performer"] >= bounds["moves"] else Verdict.PARTLY


CLAIM = Claim(
    key="nystrom_deterministic",
    number=10,
    statement="Performer's answer depends on random numbers, Nyström's does not.",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "performer"}),
    experiment="Both run several times on this input, Performer with other random features each time; every output is "
    "compared with the first.",
    rule="Holds where Nyström's output never changes (by more than {still}%) and Performer's typically by {moves}% "
    "or more; partly where Performer's changes less than that.",
    bounds={"still": 1e-4, "moves": 1},
    finding="Over {runs} runs Performer's output changes by {performer}% and Nyström's by {nystrom}%.",
    quantities=(
        Quantity("performer", "typical change of Performer", "%"),
        Quantity("nystrom", "largest change of Nyström", "%"),
        Quantity("runs", "runs of each"),
    ),
    figure=Figure(x="run", y="change", by="variant", x_title="run", y_title="relative change from the first run"),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    notes=(
        Case(
            finding="This model writes from left to right: Performer hid the future, as it does; Nyström cannot, and "
            "read both ways, as this model never does.",
            applies=lambda numbers: numbers["causal"] > 0,
        ),
    ),
    counterexample="Where all queries and keys are zero, Performer's draws change nothing, and it holds only partly.",
)
