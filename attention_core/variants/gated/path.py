"""PaTH: every token after a key, up to the query, removes the key's component along the token's own direction w.

The entry of query i and key j is ``q_iᵀ H_i H_{i-1} ... H_{j+1} k_j`` with ``H_t = I - β w_t w_tᵀ``. At β = 1, ``H_t``
is a projection; at β = 2, it is a reflection. The change of a key thus depends on the tokens in between, whereas the
angle of RoPE depends only on the distance. Fast weights compute the same: each token erases the state along w and then
writes its key and value, and queries read the state.
"""

import torch
from torch import Tensor

from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import TRAINED_STRENGTH, unit_vectors, update_strengths
from attention_core.ops.delta.fast_weights import RuleInputs, each_token
from attention_core.settings import Params, param
from attention_core.variant import Intermediate, Paper, SpecialCase, Trainable

KEYS, ROTATED, FIXED = RULES = ("keys", "turned keys", "fixed")


class PathParams(Params):
    """Settings of PaTH."""

    along: str = param(
        ROTATED,
        choices=RULES,
        help="Rule that sets the direction w of each token if w is not trained. From every earlier key, the token "
        "subtracts β times the key's component along w. β is the setting “strength”. \"keys\" uses the token's own "
        'key, scaled to length 1, which gives DeltaNet if β = 1. "turned keys" uses this key with its two halves '
        'swapped and one of them negated. "fixed" uses the same vector for all tokens, with equal components.',
    )
    strength: float = param(
        1.0,
        low=0.0,
        high=2.0,
        step=0.05,
        help="Strength β with which each token removes the component of earlier keys along its direction w. At 0, "
        "nothing is removed. At 1, the component is removed completely. At 2, its sign is reversed.",
    )


def rule_directions(k: Tensor, rule: str) -> Tensor:
    """Return the unit directions ``W``, ``[..., n, d]``, for unit keys; ``rule`` is the setting ``along``."""
    if rule == ROTATED:
        half = k.shape[-1] // 2
        return torch.cat([-k[..., half:], k[..., :half]], -1)
    return k if rule == KEYS else torch.full_like(k, k.shape[-1] ** -0.5)


def trained_directions(k: Tensor, p: PathParams, *, first: int = 0) -> Tensor:
    """Return the unit directions of unit keys: those of the setting ``along``, plus learned vectors if trained.

    ``first`` is the number of earlier tokens.
    """
    w, learned = rule_directions(k, p.along), p.learned_rows("along", first, k.shape[-2])
    return w if learned is None else unit_vectors(w + learned.to(k.dtype))


def rule_inputs(q: Tensor, k: Tensor, p: PathParams, first: int) -> RuleInputs:
    """Return the inputs of the recurrence: unit queries and keys, write strength 1, erase strength β along W, no gate.

    ``first`` is the number of earlier tokens.
    """
    k = unit_vectors(k)
    ones = torch.ones_like(k[..., :1])
    beta = update_strengths(p.strength, k, p, first=first)
    return RuleInputs(unit_vectors(q), k, ones, None, beta * ones, trained_directions(k, p, first=first))


def definition(q: Tensor, k: Tensor, v: Tensor, p: PathParams, *, causal: bool) -> Tensor:
    """Update and read a state S token by token, with directions w: ``S ← (I - β w wᵀ) S + k vᵀ``, ``o = qᵀ S``."""
    q, k = unit_vectors(q), unit_vectors(k)
    w = trained_directions(k, p)
    beta = update_strengths(p.strength, k, p, first=0).expand_as(k[..., :1])
    S, outputs = torch.zeros_like(k.mT @ v), []  # the state, [..., d, d_v]
    for q_t, k_t, v_t, w_t, beta_t in each_token(q, k, v, w, beta):
        S = S - beta_t * w_t.mT @ (w_t @ S)  # erase β times the value read with w
        S = S + k_t.mT @ v_t  # write the value
        outputs.append(q_t @ S)  # read
    return torch.cat(outputs, -2) if causal else q @ S


VARIANT = fast_weights.variant(
    __name__,
    rule_inputs,
    erases=True,
    gate_kind=lambda p: "none",
    has_directions=True,
    title="PaTH",
    summary="Every token after a key removes β times the key's component along the token's direction w. With a "
    "causal mask, only tokens up to the query do this.",
    formula=r"A = \hat Q \hat K^\top \odot M - (\hat Q W^\top \odot M)\left(I + \beta\, W W^\top \odot M^-\right)^{-1}"
    r"\beta\,(W \hat K^\top \odot M^-),\quad M_{ij} = [j \le i],\; M^-_{ij} = [j < i],"
    r"\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    params=PathParams,
    trainable=(
        TRAINED_STRENGTH,
        Trainable(name="along", title="directions w that are removed from keys", per="channel"),
    ),
    intermediates=(
        Intermediate(
            name="directions",
            title="Directions",
            symbol="w",
            formula=r"H_t = I - \beta\, w_t w_t^\top,\qquad \lVert w_t \rVert = 1",
            mechanism="Each token has a unit direction w. From every earlier key, the token subtracts β times the "
            "key's component along w.",
            rows="token",
            columns="entry",
        ),
        Intermediate(
            name="met",
            title="Original components",
            symbol="C",
            formula=r"C_{ij} = \beta\, w_i^\top k_j,\quad j < i",
            mechanism="Each entry is β times the component of an earlier key along the token's direction w. This is "
            "what the token would subtract if no token in between had changed the key.",
            rows="token",
            columns="earlier token",
        ),
        Intermediate(
            name="inverse",
            title="Corrections",
            symbol="T",
            formula=r"T = \left(I + \beta\, W W^\top \odot M^-\right)^{-1}",
            mechanism=(
                "From each earlier key, a token subtracts β times the key's component along the token's direction w. "
                "The matrix C holds these amounts for the original keys. However, the tokens in between have already "
                "changed the keys. The matrix T corrects for this: the product T C holds the amounts that are "
                "actually subtracted."
            ),
            rows="token",
            columns="token",
        ),
        Intermediate(
            name="read",
            title="Without projections",
            symbol="R",
            formula=r"R_{ij} = q_i^\top k_j",
            mechanism="If tokens removed no components from the keys, the weight of a query and a key would be their "
            "dot product.",
        ),
    ),
    source=Paper(
        "PaTH Attention: Position Encoding via Accumulating Householder Transformations",
        2025,
        "https://arxiv.org/abs/2505.16381",
        authors="Yang et al.",
    ),
    note="Each token has a direction w. A token removes part of the component along w from all earlier keys. The "
    "strength β sets how much: nothing at 0, all of it at 1. Queries and keys are scaled to length 1. In PaTH, w and β "
    "are learned, and w passes through a short convolution. The weights are the softmax of the dot products of queries "
    "and changed keys. Here, the dot products themselves are the weights. The Learn page can train w and β; on other "
    "pages, they follow the settings, and there is no convolution. Without a causal mask, all later tokens of the text "
    "change a key, so all queries read the same changed keys.",
    special_cases=(SpecialCase("deltanet", {"along": KEYS, "strength": 1.0}),),
)
