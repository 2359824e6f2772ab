"""Claim: the output of Performer depends on a random seed, and the output of Nyström attention does not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from attention_core import articles, metrics, registry
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, Rule
from attention_core.experiments.error import seed_variants

NYSTROM, PERFORMER = "Nyström", "Performer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """The relative difference between the output of a repeated run and of the first run, in one head."""

    variant: str
    run: int
    head: int
    change: float


def measure(inputs: ExperimentInput) -> Iterator[RunRow]:
    """Yield the relative difference between each repeated run's output and the first output, per head.

    Performer is causal if the input is causal; Nyström cannot be causal.
    """
    qkv = inputs.record()
    performers, nystrom = seed_variants(registry.get("performer")), registry.get("nystrom")
    compared = ((PERFORMER, performers, qkv.causal), (NYSTROM, [nystrom] * len(performers), False))
    for variant, runs, causal in compared:
        first, *others = (run.attend(*qkv.tensors, causal=causal) for run in runs)
        for number, output in enumerate(others, 2):
            change = metrics.relative_error(output, first)
            yield from inputs.head_rows(RunRow, variant=variant, run=number, change=change)


def numbers(rows: Sequence[RunRow]) -> Numbers:
    """Return the median change of Performer's output and the largest change of Nyström's output."""
    return {
        "performer": 100 * median(values(rows, "change", variant=PERFORMER)),
        "nystrom": 100 * max(values(rows, "change", variant=NYSTROM)),
        "runs": max(row.run for row in rows),
    }


CLAIM = Claim(
    statement="Performer draws random functions of queries and keys (features), so its output changes from run to "
    "run. Nyström attention's output does not change.",
    short="Performer is random, Nyström is not",
    source=articles.NYSTROMFORMER,
    place=Place("inside", {"inside": "performer"}),
    experiment="Performer estimates softmax from random features, and draws new ones for every run. Nyström attention "
    "uses means of neighbouring tokens, which involve no random numbers. Each method is run several times on this "
    "input. In every head, each output is compared with the output of the method's first run.",
    rule="The claim holds if two conditions are met. (1) Nyström's output never differs by more than {still}% from "
    "the output of its first run. (2) In the median over runs and heads, Performer's output differs by at least "
    "{moves}% from the output of its first run. The claim partly holds if only the first condition is met.",
    bounds={"still": 1e-4, "moves": 1},
    verdict=Rule(requires=Condition("nystrom", "<=", "still"), holds=Condition("performer", ">=", "moves")),
    finding="Performer draws new random features in each of {runs} runs, so its output differs by "
    "{performer}% from the output of the first run (median over runs and heads). Nyström attention uses no random "
    "numbers, so its output is the same in every run.",
    details="If the input is causal (queries attend to no later tokens), Performer is measured with a causal mask. "
    "Nyström has no causal form and is measured without a mask.",
    quantities=(
        Quantity("performer", "change of Performer's output from its first run, median over runs and heads", "%"),
        Quantity("nystrom", "change of Nyström's output from its first run, largest over runs and heads", "%"),
        Quantity("runs", "number of runs of each method"),
    ),
    figure=Figure(
        x=Axis("run", "run number"),
        y=Axis("change", "difference from the first run's output (%)"),
        by="variant",
        percent=True,
    ),
    counterexample="If all queries and keys are zero, Performer's random features have no effect, and the claim holds "
    "only partly.",
)
