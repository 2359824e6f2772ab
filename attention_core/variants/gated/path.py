"""PaTH: between a key and a later query, what lies along the direction of every token between them is taken out.

A logit is ``q_iᵀ H_i H_{i-1} ... H_{j+1} k_j`` with ``H_t = I - β w_t w_tᵀ``, at β = 1 a projection, at β = 2 a
reflection: a position that is made of the text, where RoPE turns by what the distance alone says. The matrix of all
these logits is one of fast weights that are read by q, written by k and taken back along w.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attention_core.ops.delta import fast_weights
from attention_core.ops.delta.delta_rule import unit
from attention_core.ops.delta.fast_weights import Tokens
from attention_core.settings import Params, param
from attention_core.variant import Paper, SpecialCase

KEYS, TURNED, FIXED = RULES = ("keys", "turned keys", "fixed")


@dataclass(frozen=True, kw_only=True)
class PathParams(Params):
    """Settings of PaTH."""

    along: str = param(
        TURNED,
        choices=RULES,
        help="Where w comes from, untrained: the token's own unit key, which at strength 1 is DeltaNet; that key with "
        "its halves swapped and one of them negated; or one direction for all tokens, the mean of all channels.",
    )
    strength: float = param(
        1.0,
        low=0.0,
        high=2.0,
        step=0.05,
        help="β, how much of what lies along w each token takes out: at 1 all of it, at 2 it is turned over, at 0 "
        "nothing.",
    )


def directions(k: Tensor, rule: str) -> Tensor:
    """``W``, ``[..., n, d]``, each of length one, from unit keys."""
    if rule == TURNED:
        half = k.shape[-1] // 2
        return torch.cat([-k[..., half:], k[..., :half]], -1)
    return k if rule == KEYS else torch.full_like(k, k.shape[-1] ** -0.5)


def tokens(q: Tensor, k: Tensor, p: PathParams, first: int) -> Tokens:
    """Queries and keys of length one; all of a value is written, nothing fades."""
    k = unit(k)
    one = torch.ones_like(k[..., :1])
    return Tokens(unit(q), k, one, None, p.strength * one, directions(k, p.along))


VARIANT = fast_weights.variant(
    tokens,
    erases=True,
    gates=lambda p: "none",
    along=True,
    key="path",
    title="PaTH",
    summary="Queries and keys have length one. Every token between a key and a query removes part of the key along a "
    "direction of its own.",
    formula=r"A = \hat Q \hat K^\top \odot M - (\hat Q W^\top \odot M)\left(I + \beta\, W W^\top \odot M^-\right)^{-1}"
    r"\beta\,(W \hat K^\top \odot M^-),\quad M_{ij} = [j \le i],\; M^-_{ij} = [j < i],"
    r"\quad \hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}",
    params=PathParams,
    source=Paper(
        "PaTH Attention: Position Encoding via Accumulating Householder Transformations",
        2025,
        "https://arxiv.org/abs/2505.16381",
    ),
    note="W is not trained: PaTH learns w and β of each token, convolves w with its neighbours and takes softmax of "
    "this matrix; here w follows the rule that is set, and the matrix is used without softmax. Without a causal mask "
    "all is written in order, then each query reads the end's state.",
    special_cases=(SpecialCase("deltanet", {"along": KEYS, "strength": 1.0}),),
)
