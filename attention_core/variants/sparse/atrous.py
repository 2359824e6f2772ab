"""Atrous attention: each query attends to the keys whose distance is a multiple of the stride r."""

from functools import partial

import torch
from torch import Tensor

from attention_core import articles
from attention_core.ops.pattern.pieces import residue_elements, residue_pairs, residue_pieces
from attention_core.ops.pattern.pixel_classes import class_cost, pixel_classes, same_class
from attention_core.ops.pattern.primitives import mask_and_primitives
from attention_core.ops.softmax.masked import distances, masked_softmax, pixel_offsets, positions, scores
from attention_core.ops.softmax.union import union_attention, union_elements
from attention_core.variant import Cost, Params, SpecialCase, Variant, param


class AtrousParams(Params):
    """Settings of atrous attention."""

    stride: int = param(
        8,
        low=1,
        high=4096,
        scale="log",
        help="Distance r between neighbouring keys that a query attends to. Larger values cost less. 1 gives softmax "
        "attention.",
        budget=True,
    )
    columns: int = param(
        0,
        low=0,
        high=1024,
        help="Number of columns of an image whose pixels are the tokens, row by row. The stride then applies to rows "
        "and to columns. At 0, the tokens form one line, such as a text.",
    )


def rule_masks(n: int, p: AtrousParams, device: torch.device | None, *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of pairs whose distance is a multiple of the stride, by the rule's name, ``bool [n, n]``."""
    if p.columns:
        return {"stride": same_class(*positions(n, device), p.stride, p.columns)}
    return {"stride": distances(n, device) % p.stride == 0}


mask, primitives = mask_and_primitives(rule_masks)


def weights(q: Tensor, k: Tensor, p: AtrousParams, *, causal: bool) -> Tensor:
    """Compute softmax over tokens at distances that are multiples of the stride (in an image: on both axes).

    The shape is ``[..., n, n]``.
    """
    rows, columns = pixel_offsets(q.shape[-2], p.columns, q.device)
    allowed = (rows % p.stride == 0) & (columns % p.stride == 0)
    return masked_softmax(scores(q, k), allowed.tril() if causal else allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: AtrousParams, *, causal: bool) -> Tensor:
    """Compute full attention within each class of positions modulo the stride r: O(n² d / r) time, O(n d) memory."""
    if p.columns:
        pieces = partial(pixel_classes, stride=p.stride, columns=p.columns, causal=causal)
        return union_attention(pieces, q, k, v)
    return union_attention(partial(residue_pieces, stride=p.stride, causal=causal), q, k, v)


def cost(n: int, d: int, p: AtrousParams, *, causal: bool) -> Cost:
    """Return the cost: products with k and v within each class modulo r; memory for the output and one step."""
    if p.columns:
        return Cost(*class_cost(n, d, p.stride, p.columns, causal=causal))
    rows = residue_elements(n, p.stride)
    return Cost(
        multiply_adds=2 * d * residue_pairs(n, p.stride, causal=causal), peak_elements=union_elements(n, d, rows=rows)
    )


VARIANT = Variant(
    __name__,
    title="Atrous",
    summary="Dilated attention: each query attends only to keys at distances of 0, r, 2r, 3r and so on, where r is "
    "the stride.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \equiv i \,(r)} e^{q_i^\top k_l / \sqrt d}}"
    r"\quad\text{where } j \equiv i \pmod r",
    complexity="n² d / r",
    params=AtrousParams,
    pairs="n² / r",
    approximates="softmax",
    source=articles.STANDARD_TO_SPARSE,
    special_cases=(SpecialCase("softmax", {"stride": 1}),),
)
