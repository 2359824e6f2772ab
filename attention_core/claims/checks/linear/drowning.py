"""Claim: as a text grows, early tokens lose weight faster in linear attention than in softmax.

A decay of earlier weights changes which tokens have the most weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

import torch

from attention_core import articles, registry
from attention_core.analysis.state.token_weight import causal_weights, first_tokens_share
from attention_core.attention import Attention
from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity, values
from attention_core.claims.rule import Condition, Numbers, all_of, parts
from attention_core.experiments.lengths import measured_lengths
from attention_core.formatting import N_
from attention_core.metrics import top_k_overlap
from attention_core.metrics.fit import fit_power

N_ENDS = 4
"""The number of first tokens called early, and of last tokens called late."""
QUARTER = 4
"""The decay's half-life, the newest tokens and the compared heaviest tokens are each 1/4 of the input."""
MIN_SHARE = 1e-9
"""Smallest share in per cent used in a fit, so that a power law can be fitted to shares of zero."""
PLAIN, DECAYED, SOFTMAX = "linear attention", "linear attention with decay", N_("softmax")
EARLY = {
    PLAIN: "linear attention: weight on the first 4 tokens",
    DECAYED: "linear with decay: weight on the first 4 tokens",
    SOFTMAX: "softmax: weight on the first 4 tokens",
}
LATE = {
    PLAIN: "linear attention: weight on the last 4 tokens",
    DECAYED: "linear with decay: weight on the last 4 tokens",
    SOFTMAX: "softmax: weight on the last 4 tokens",
}


def attentions(n: int) -> dict[str, Attention]:
    """Return the compared attentions. The decay depends on n, because a fixed one would be too weak for few tokens."""
    return {
        PLAIN: registry.get("linear"),
        DECAYED: registry.get("retention", decay=0.5 ** (QUARTER / n)),
        SOFTMAX: registry.get("softmax"),
    }


def last_quarter(n: int) -> range:
    """Return the positions of the last quarter of n tokens."""
    return range(n - n // QUARTER, n)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRow:
    """Per cent of the weight of one head's newest queries that is on the first or the last ``N_ENDS`` of n tokens.

    ``of`` names the attention and these tokens. For ``kept``, take the quarter of keys with the largest weights for
    the last query. ``kept`` per cent of them are also in that quarter without decay. It is None below the full length.
    """

    attention: str
    n: int
    head: int
    kept: float | None
    of: str
    share: float


def measure(inputs: ExperimentInput) -> Iterator[ShareRow]:
    """Yield per cent of the newest queries' weight on the first few and the last few keys, at growing lengths.

    The newest queries are the last quarter of the tokens, because the weights of a single query depend more on its
    token than on length.
    """
    qkv = inputs.record()
    for index in range(qkv.heads):
        plain = torch.empty(0)
        for name, attention in attentions(qkv.n).items():
            weights = causal_weights(qkv, attention, head=index)
            last = torch.from_numpy(weights[-1:])
            plain = last if name == PLAIN else plain
            kept = 100 * float(top_k_overlap(last, plain, qkv.n // QUARTER))
            for n in measured_lengths(qkv.n):
                rows = [weights[i, : i + 1] for i in last_quarter(n)]
                row = partial(
                    ShareRow, attention=name, n=n, head=(inputs.head or 0) + index, kept=kept if n == qkv.n else None
                )
                yield row(of=EARLY[name], share=100 * fmean(first_tokens_share(w, N_ENDS) for w in rows))
                yield row(of=LATE[name], share=100 * fmean(first_tokens_share(w[::-1], N_ENDS) for w in rows))


def numbers(rows: Sequence[ShareRow]) -> Numbers:
    """Return the exponent p of the early tokens' share of the weight ~ n^(-p), and this share at the full length.

    Both are medians over heads, for softmax and for linear attention without decay. ``kept`` is the median percentage
    of the heaviest quarter of keys that decay leaves in this quarter.
    """
    lengths = sorted({row.n for row in rows})

    def share(of: str, n: int = lengths[-1]) -> float:
        return median(values(rows, "share", of=of, n=n))

    def fall(of: str) -> float:
        return -fit_power(lengths, [max(share(of, n), MIN_SHARE) for n in lengths]).exponent

    return {
        "fall": fall(EARLY[PLAIN]),
        "softmax_fall": fall(EARLY[SOFTMAX]),
        "kept": median(values(rows, "kept", attention=DECAYED)),
        "early": share(EARLY[PLAIN]),
        "softmax": share(EARLY[SOFTMAX]),
    }


CLAIM = Claim(
    statement="As a text grows, early tokens lose weight faster in linear attention than in softmax. A decay (a "
    "factor that shrinks earlier weights at each token) changes which tokens have the most weight.",
    short="early tokens fade faster in linear attention",
    source=articles.BRIEF_HISTORY,
    place=Place("causal", {"c_view": "fading"}),
    experiment="This input is read from left to right. At growing lengths, two shares are measured: the weight that "
    "queries in the last quarter of the text give to the first 4 tokens, and the weight they give to the 4 most "
    "recent tokens. Three methods are compared: linear attention without decay, linear attention with a decay "
    "that halves weights over a quarter of the input, and softmax. Finally, the tokens are ranked by the weight "
    "that the last query gives them, and the top quarters without and with the decay are compared.",
    rule="Linear attention, with and without a decay that shrinks earlier weights, is compared with softmax. The "
    "share of weight on the first 4 of n tokens (median over heads) falls as 1/nᵖ. The tokens are ranked by the "
    "weight that the last query gives them. The claim holds if two conditions are met. (1) Without a decay, the "
    "exponent p of linear attention is at least {fall}, and it exceeds softmax's exponent by at least {faster}. (2) "
    "Of the tokens in the top quarter without a decay, at most {kept}% are also in the top quarter with a decay "
    "(median over heads). The claim partly holds if only one condition is met.",
    bounds={"fall": 0.8, "faster": 0.25, "kept": 50},
    verdict=parts(
        all_of(
            Condition("fall", ">=", "fall"),
            Condition("fall", ">=", lambda numbers, bounds: numbers["softmax_fall"] + bounds["faster"]),
        ),
        Condition("kept", "<=", "kept"),
    ),
    finding="Linear attention usually gives the tokens more similar weights than softmax does, so every new token "
    "takes more weight from the early ones. With n tokens, the weight on the first 4 falls as 1/nᵖ, with p = {fall} in "
    "linear attention and p = {softmax_fall} in softmax.",
    details="At full length, queries in the last quarter of the text give the first 4 tokens {early}% of their "
    "weight in linear attention and {softmax}% in softmax. The tokens are ranked by the weight that the last query "
    "gives them.",
    quantities=(
        Quantity("fall", "exponent p of linear attention's weight on the first 4 of n tokens (1/nᵖ)"),
        Quantity("softmax_fall", "exponent p of softmax's weight on the first 4 of n tokens (1/nᵖ)"),
        Quantity(
            "kept",
            "linear attention: share of the tokens in the top quarter (ranked by weight) that stay there with a decay",
            "%",
        ),
        Quantity(
            "early",
            "linear attention without a decay: share of weight on the first 4 tokens, for queries in the last "
            "quarter of the text",
            "%",
        ),
        Quantity(
            "softmax",
            "softmax: share of weight on the first 4 tokens, for queries in the last quarter of the text",
            "%",
        ),
    ),
    figure=Figure(
        x=Axis("n", "number of tokens read", log=True),
        y=Axis("share", "weight on four tokens (%)", log=True),
        by="of",
        main=(EARLY[PLAIN], EARLY[SOFTMAX]),
    ),
    needs=8,
)
