"""Claim: replacing softmax in one middle layer hardly tests a variant, because attention hardly matters there.

Even a replacement that ignores the keys hardly changes the perplexity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attention_core.claims.claim import Claim, ExperimentInput
from attention_core.claims.claim_parts import Axis, Figure, Place, Quantity
from attention_core.claims.model_experiments import TOKENS, copy_loss_percent, reading_row
from attention_core.claims.rule import Condition, Numbers, parts
from attention_core.experiments import swap
from attention_core.inputs import models
from attention_core.model_patching import UNIFORM, from_word
from attention_core.variant import SOFTMAX, Paper

REPLACEMENTS = ("local~window~32", "linear", "synthesizer~kind~random", UNIFORM)
"""The replacements for softmax; the last two ignore queries and keys."""
ONE_LAYER, ALL_LAYERS = "softmax replaced in the middle layer only", "softmax replaced in all layers"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """The perplexity, and the part of the gain from copying that is lost, with a variant in one layer or in all layers.

    Attributes:
        variant: the variant's title.
        where: ``ONE_LAYER`` or ``ALL_LAYERS``, the layers with the variant.
        tokens: tokens of the text.
        times: the perplexity divided by the unchanged model's perplexity.
        lost: per cent of the unchanged model's gain from copying, the lower loss on repeated tokens, that is lost.
    """

    variant: str
    where: str
    tokens: int
    times: float
    lost: float


def measure(inputs: ExperimentInput) -> Iterator[LayerRow]:
    """Yield perplexity and the lost gain from copying with each variant in the middle layer and in all layers."""
    count = models.layer_count(swap.MODEL)
    whole = reading_row(inputs, SOFTMAX, ())
    for word in REPLACEMENTS:
        for where, layers in ((ONE_LAYER, (count // 2,)), (ALL_LAYERS, tuple(range(count)))):
            yield LayerRow(
                variant=from_word(word).title,
                where=where,
                tokens=whole.tokens,
                times=reading_row(inputs, word, layers).perplexity / whole.perplexity,
                lost=copy_loss_percent(inputs, word, layers),
            )


def numbers(rows: Sequence[LayerRow]) -> Numbers:
    """Return the worst results with one layer replaced, and the range of perplexity ratios with all replaced."""
    one_layer, all_layers = ([row for row in rows if row.where == where] for where in (ONE_LAYER, ALL_LAYERS))
    return {
        "worst": max(row.times for row in one_layer),
        "lost": max(row.lost for row in one_layer),
        "floor": max(row.times for row in all_layers),
        "best": min(row.times for row in all_layers),
        TOKENS.name: rows[0].tokens,
    }


CLAIM = Claim(
    statement="Replacing softmax in a single middle layer is a weak test of a variant. Even a variant that ignores "
    "the keys does not harm the model's predictions there.",
    short="one middle layer works without softmax",
    source=Paper(
        "What Matters in Transformers? Not All Attention is Needed",
        2024,
        "https://arxiv.org/abs/2406.15786",
        authors="He et al.",
    ),
    place=Place("model", {"m_view": "layers", "m_edge": "single"}),
    experiment="In SmolLM2-135M, without retraining, softmax is replaced by local attention (a window of 32 tokens), "
    "linear attention, random weights or equal weights. This is done once in layer 15 alone (layers are numbered 0 to "
    "29) and once in all layers. The model reads the first 128 tokens of the text. Perplexity measures how badly it "
    "predicts the next tokens. To test copying, 48 of these tokens are shuffled once, and the model reads this "
    "sequence twice in a row. The second half can be predicted only by copying from the first. The gain from copying "
    "is how much lower the unchanged model's loss is in the second half than in the first. If a replacement raises the "
    "loss in the second half, this rise is the part of the gain that is lost.",
    rule="Perplexity measures how badly the model predicts text. The gain from copying is how much better the "
    "unchanged model predicts tokens at their second appearance than at their first. Here, softmax is replaced only "
    "in the middle layer. The claim holds if two conditions are met. (1) No replacement multiplies the perplexity "
    "by more than {times}. (2) No replacement loses more than {lost}% of the gain from copying. The claim partly "
    "holds if only one condition is met.",
    bounds={"times": 1.1, "lost": 10},
    verdict=parts(Condition("worst", "<=", "times"), Condition("lost", "<=", "lost")),
    finding="If softmax is replaced in one middle layer, the other layers can compensate for it. The worst "
    "replacement multiplies perplexity (how badly the model predicts text) by {worst}. No replacement loses more "
    "than {lost}% of the gain from copying (better prediction of repeated tokens).",
    details="If softmax is replaced in all layers, the best replacement multiplies the perplexity by {best}, and the "
    "worst by {floor}. All results are for the {tokens} tokens that SmolLM2 reads.",
    quantities=(
        Quantity(
            "worst",
            "perplexity with the worst replacement for softmax in one middle layer ÷ perplexity of the unchanged model",
        ),
        Quantity(
            "lost", "share of the gain from copying that is lost with the worst replacement in one middle layer", "%"
        ),
        Quantity(
            "best", "perplexity with the best replacement for softmax in all layers ÷ perplexity of the unchanged model"
        ),
        Quantity(
            "floor",
            "perplexity with the worst replacement for softmax in all layers ÷ perplexity of the unchanged model",
        ),
        TOKENS,
    ),
    figure=Figure(
        x=Axis("variant", "replacement for softmax"),
        y=Axis("times", "perplexity ÷ perplexity of the unchanged model", log=True),
        by="where",
        kind="bars",
    ),
    needs=64,
    uses_decoder=True,
)
