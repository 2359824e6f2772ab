"""Neighbours joined with anchors: the first tokens of the sequence, which every token sees."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from attention_core.algorithms.exact import exact_attention
from attention_core.algorithms.layouts import BLOCK
from attention_core.algorithms.partial import Part, merged, partial_attention


def anchored_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    anchors: int,
    causal: bool,
    first: Callable[[Tensor, Tensor, Tensor], Tensor],
    rest: Callable[[Tensor, Tensor, Tensor], Iterable[Part]],
) -> Tensor:
    """Every query sees the anchors and what ``rest`` adds; each pair counts once, ``[..., n, d_v]``.

    Args:
        q: ``[..., n, d]``.
        k: ``[..., n, d]``.
        v: ``[..., n, d_v]``.
        anchors: how many first tokens are anchors; those beyond n do not exist.
        causal: whether query i sees keys 0..i only; the anchors then see just one another.
        first: the output of the anchors' own queries, if not causal: ``(their q, all k, all v)``, ``[X, 1, ., .]``.
        rest: the parts that the other queries see of the other keys, from their ``q, k, v``, ``[X, 1, ., .]``.
    """
    lead, d_v = q.shape[:-1], v.shape[-1]
    anchors = min(anchors, q.shape[-2])
    q, k, v = (x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v))
    anchor_q, anchor_k, anchor_v = (x[..., :anchors, :] for x in (q, k, v))
    other_q, other_k, other_v = (x[..., anchors:, :] for x in (q, k, v))

    def parts() -> Iterator[Part]:
        yield from rest(other_q, other_k, other_v)
        if anchors:
            yield partial_attention(other_q, anchor_k, anchor_v)

    outs = []
    if anchors:
        outs.append(exact_attention(anchor_q, anchor_k, anchor_v, causal=True) if causal else first(anchor_q, k, v))
    if other_q.shape[-2]:
        outs.append(merged(list(parts())))
    return (outs[0] if len(outs) == 1 else torch.cat(outs, -2)).reshape(*lead, d_v)


def anchor_pairs(n: int, anchors: int, *, first_keys: int, causal: bool) -> int:
    """Pairs of query and key that ``anchored_attention`` computes besides ``rest``.

    Args:
        n: number of tokens.
        anchors: how many first tokens are anchors, at most n.
        first_keys: keys that ``first`` sees.
        causal: whether query i sees keys 0..i only.
    """
    return anchors * (anchors if causal else first_keys) + (n - anchors) * anchors


def anchored_elements(n: int, d: int, anchors: int, *, parts: int, reach: int) -> int:
    """Most numbers alive in ``anchored_attention``: all parts and their union, or the band with one block's mask.

    Args:
        n: number of tokens.
        d: head size.
        anchors: how many first tokens are anchors, at most n.
        parts: how many parts ``rest`` gives, a band the last of them.
        reach: keys that the band adds before and after a query.
    """
    others, union = n - anchors, parts + (anchors > 0)
    masks = min(BLOCK, others) * min(BLOCK + reach, others) * 7 // 4
    return anchors * d + max(others * ((union + 1) * d + union + 3), others * parts * (d + 1) + masks)
