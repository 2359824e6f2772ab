"""In plain linear attention late tokens drown early ones; decay changes which survive."""

from collections.abc import Mapping, Sequence

from attention_core import registry
from attention_core.experiments.claims.claim import Ask, Claim, Figure, Quantity, Verdict, column
from attention_core.experiments.fading import causal_weights, first_share
from attention_core.experiments.lengths import ladder
from attention_core.experiments.task import Row
from attention_core.metrics.fit import fit_power
from attention_core.variant import Paper

FEW = 4
"""How many of the first tokens are called early, and of the last ones late."""
PLAIN, DECAYED, SOFTMAX, EVEN = "Linear", "Linear with decay", "Softmax", "equal shares"
ATTENTIONS = {
    PLAIN: registry.get("linear"),
    # RetNet's fastest head keeps 1 - 2⁻⁵ per token.
    DECAYED: registry.get("retention", decay=0.97),
    SOFTMAX: registry.get("softmax"),
}


def measure(ask: Ask) -> list[Row]:
    """Per cent of the newest token's weight on the first few tokens and on the last few, after more and more tokens."""
    qkv = ask.record()
    rows: list[Row] = [
        {"attention": EVEN, "n": n, "early": 100 * FEW / n, "late": 100 * FEW / n} for n in ladder(qkv.n)
    ]
    for name, attention in ATTENTIONS.items():
        weights = causal_weights(qkv, attention, head=None)
        for n in ladder(qkv.n):
            row = weights[n - 1, :n]
            early, late = first_share(row, FEW), first_share(row[::-1], FEW)
            rows.append({"attention": name, "n": n, "early": 100 * early, "late": 100 * late})
    return rows


def numbers(rows: Sequence[Row]) -> dict[str, float]:
    """How the early share falls under plain sums, and who has what in the end."""
    early, decayed, softmax = (column(rows, "early", attention=name) for name in ATTENTIONS)
    return {
        "fall": -fit_power(column(rows, "n", attention=PLAIN), early).exponent,
        "early": early[-1],
        "late": column(rows, "late", attention=PLAIN)[-1],
        "decayed_early": decayed[-1],
        "decayed_late": column(rows, "late", attention=DECAYED)[-1],
        "softmax": softmax[-1],
    }


def verdict(numbers: Mapping[str, float], bounds: Mapping[str, float]) -> Verdict:
    """By both parts of the statement."""
    return Verdict.of_parts(
        numbers["fall"] >= bounds["fall"], numbers["decayed_late"] >= bounds["lift"] * numbers["late"]
    )


CLAIM = Claim(
    key="drowning",
    number=18,
    statement="Linear attention adds up all tokens alike, so that late ones drown early ones; a decay changes which "
    "survive.",
    source=Paper("A brief history of linear attention", 2025, "https://kexue.fm/archives/11033"),
    experiment="This input is read left to right. Of the newest token's weight, the share on the first 4 tokens and "
    "on the last 4 is followed, with plain sums and with sums that keep 97 % of themselves at every token.",
    rule="Holds where with plain sums the early share falls at least like 1 / n to the power {fall} and the last "
    "tokens have in the end at least {lift} times as much with decay as without; partly where one of the two is so.",
    bounds={"fall": 0.8, "lift": 2},
    finding="With plain sums the early share falls like 1 / n to the power {fall}, down to {early} % (softmax: "
    "{softmax} %), and the last tokens have {late} %; with decay the last have {decayed_late} % and the early "
    "{decayed_early} %.",
    quantities=(
        Quantity(name="fall", label="exponent of the early share's fall"),
        Quantity(name="early", label="first tokens' share, plain sums", unit="%"),
        Quantity(name="late", label="last tokens' share, plain sums", unit="%"),
        Quantity(name="decayed_early", label="first tokens' share, with decay", unit="%"),
        Quantity(name="decayed_late", label="last tokens' share, with decay", unit="%"),
        Quantity(name="softmax", label="first tokens' share, softmax", unit="%"),
    ),
    figure=Figure(
        x="n", y="early", by="attention", x_title="tokens so far", y_title="share of the first 4 tokens (%)",
        log_x=True, log_y=True,
    ),
    measure=measure,
    numbers=numbers,
    verdict=verdict,
    needs=8,
)  # fmt: skip
