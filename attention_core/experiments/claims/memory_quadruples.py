"""Doubling n quadruples the memory of full attention's scores."""

from collections.abc import Mapping, Sequence

from attention_core import registry
from attention_core.experiments.claims.claim import Ask, Claim, Figure, Quantity, Verdict
from attention_core.experiments.lengths import ladder
from attention_core.experiments.task import Row
from attention_core.measure.counting import count
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper


def measure(ask: Ask) -> list[Row]:
    """The largest tensor that the explicit matrix needs at each length, ``elements`` per head."""
    softmax, rows = registry.get("softmax"), []
    for n in ladder(ask.record().n):
        qkv = ask.record(n)
        counts = count(lambda qkv=qkv: softmax.weights(qkv.q, qkv.k))
        rows.append({"variant": "full attention", "n": n, "elements": counts.largest_elements / qkv.heads})
    return rows


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """The factor per doubling, by a power law through all lengths."""
    fit = fit_power([row["n"] for row in rows], [row["elements"] for row in rows])
    return {"factor": 2**fit.exponent, "longest": rows[-1]["n"], "elements": rows[-1]["elements"]}


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By how near the factor is to four."""
    off = abs(numbers["factor"] - 4)
    return Verdict.HOLDS if off <= bounds["holds"] else Verdict.PARTLY if off <= bounds["partly"] else Verdict.FAILS


CLAIM = Claim(
    key="memory_quadruples",
    number=1,
    statement="Doubling the number of tokens quadruples the memory that full attention's scores take.",
    source=Paper("Generating Long Sequences with Sparse Transformers", 2019, "https://arxiv.org/abs/1904.10509"),
    experiment="The explicit matrix is computed at growing lengths of this input, and the numbers it holds are counted.",
    rule="Holds where a doubling multiplies them by 4 ± {holds}, partly within ± {partly}.",
    bounds={"holds": 0.1, "partly": 0.5},
    finding="Each doubling of n multiplies the score matrix by {factor}; at {longest} tokens one head holds {elements}.",
    quantities=(
        Quantity(name="factor", label="factor per doubling"),
        Quantity(name="longest", label="longest input", unit="tokens"),
        Quantity(name="elements", label="numbers in one head's scores"),
    ),
    figure=Figure(
        x="n", y="elements", by="variant", x_title="tokens n", y_title="numbers in one head's scores",
        log_x=True, log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)  # fmt: skip
