"""Vertical and slash: all queries attend to the columns and diagonals to which the last queries give the most weight.

A column is one key for all queries; a diagonal holds all pairs at one distance. The softmax weights of the last
queries (called judges) select both for all queries. This works when a complete prompt is read, but not in generation,
where earlier queries must not depend on the end of the text.
"""

import torch
from torch import Tensor

from attention_core.ops.pattern.primitives import pattern_from_primitives
from attention_core.ops.softmax.chosen_keys import queries_per_step, selected_keys_attention
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import at_least_float32, distances, masked_softmax, scores, top_k_mask
from attention_core.ops.softmax.partial import Part, merge_partial_softmax, partial_attention
from attention_core.variant import TOKENS, Cost, Paper, Params, SpecialCase, Variant, param


class VerticalSlashParams(Params):
    """Settings of vertical and slash."""

    columns: int = param(
        8,
        low=0,
        high=4096,
        budget=True,
        help="Number c of columns, the keys to which all queries attend. The keys with the most weight from the last "
        "queries are selected. If all keys are columns, the result is softmax attention.",
    )
    diagonals: int = param(
        8,
        low=1,
        high=512,
        scale="log",
        help="Number s of diagonals. A diagonal is one distance between query and key: every query attends to the key "
        "at this distance. Distance 0 is always included. The other distances are those with the most weight from the "
        "last queries.",
    )
    judges: int = param(
        64,
        low=1,
        high=1024,
        scale="log",
        help="Number m of queries at the end of the text. Their softmax weights determine which keys (columns) and "
        "which distances (diagonals) all queries attend to.",
    )


@torch.no_grad()
def select_lines(q: Tensor, k: Tensor, p: VerticalSlashParams) -> tuple[Tensor, Tensor]:
    """Return the selected columns, ``int64 [..., c]``, and the diagonals as distances i - j, ``int64 [..., s]``.

    On a tie the lower number is selected. Weights are float64, because small weights affect the selection and
    many would be 0 in float32.
    """
    n = q.shape[-2]
    m = min(p.judges, n)
    weight = scores(q[..., n - m :, :].double(), k.double()).softmax(-1)  # [..., judges, n]
    i, j = torch.arange(n - m, n, device=q.device)[:, None], torch.arange(n, device=q.device)
    diagonal_index = (i - j + n - 1).flatten().expand(*weight.shape[:-2], -1)
    diagonal = weight.new_zeros(*weight.shape[:-2], 2 * n - 1).scatter_add_(-1, diagonal_index, weight.flatten(-2))
    diagonal[..., n - 1] = torch.inf  # a token always attends to itself
    columns, diagonals = (x.sort(dim=-1, descending=True, stable=True).indices for x in (weight.sum(-2), diagonal))
    return columns[..., : p.columns], diagonals[..., : p.diagonals] - (n - 1)


def primitives(q: Tensor, k: Tensor, p: VerticalSlashParams, *, causal: bool) -> dict[str, Tensor]:
    """Return two masks by name: pairs in the selected columns, and pairs on the diagonals, ``bool [..., n, n]``."""
    n = q.shape[-2]
    columns, diagonals = select_lines(q, k, p)
    position = torch.arange(n, device=q.device)
    vertical = torch.zeros(q.shape[:-1], dtype=torch.bool, device=q.device).scatter_(-1, columns, True)
    slash = torch.zeros(*q.shape[:-2], 2 * n - 1, dtype=torch.bool, device=q.device)
    slash.scatter_(-1, diagonals + n - 1, True)
    return {
        "column": vertical.unsqueeze(-2).expand(*q.shape[:-1], n),
        "diagonal": slash[..., position[:, None] - position + n - 1],
    }


pattern = pattern_from_primitives(primitives)


def weights(q: Tensor, k: Tensor, p: VerticalSlashParams, *, causal: bool) -> Tensor:
    """Compute softmax over the columns and diagonals, ``[..., n, n]``."""
    return masked_softmax(scores(q, k), pattern(q, k, p, causal=causal))


def definition(q: Tensor, k: Tensor, v: Tensor, p: VerticalSlashParams, *, causal: bool) -> Tensor:
    """Compute softmax over the columns and diagonals with most weight in the last rows, times v, ``[..., n, d_v]``."""
    n, distance = q.shape[-2], distances(q.shape[-2], q.device)  # i - j, [n, n]
    last_weights = scores(q, k).softmax(-1)[..., -p.judges :, :]  # [..., judges, n]
    column_sums = last_weights.sum(-2)  # [..., n]
    diagonal_sums = torch.stack(
        [last_weights.masked_fill(distance[-p.judges :] != offset, 0).sum((-2, -1)) for offset in range(1 - n, n)], -1
    )  # [..., 2n - 1]
    diagonal_sums[..., n - 1] = torch.inf  # a token always attends to itself
    column = top_k_mask(column_sums, p.columns).unsqueeze(-2)  # [..., 1, n]
    diagonal = top_k_mask(diagonal_sums, p.diagonals)[..., distance + n - 1]  # [..., n, n]
    return masked_softmax(scores(q, k), column | diagonal) @ v


def attend(q: Tensor, k: Tensor, v: Tensor, p: VerticalSlashParams, *, causal: bool) -> Tensor:
    """Compute the output: merge attention to c columns with attention to s diagonals outside these columns.

    It takes O(n (c + s) d) time and O(n (s + d)) memory.
    """
    n = q.shape[-2]
    if p.columns >= n:
        return exact_attention(q, k, v)
    qkv = at_least_float32(q), at_least_float32(k), at_least_float32(v)
    columns, diagonals = select_lines(q, k, p)
    is_column = torch.zeros(q.shape[:-1], dtype=torch.bool, device=q.device).scatter_(-1, columns, True)
    key_position = torch.arange(n, device=q.device)[:, None] - diagonals.unsqueeze(-2)  # [..., n, s] for s diagonals
    key_index = key_position.clamp(0, n - 1)
    allowed = ~is_column.gather(-1, key_index.flatten(-2)).unflatten(-1, key_index.shape[-2:])
    allowed &= key_position == key_index
    parts = [selected_keys_attention(*qkv, key_index, allowed)]
    if p.columns:
        parts.append(_attend_columns(*qkv, columns))
    return merge_partial_softmax(parts).to(v.dtype)


def _attend_columns(q: Tensor, k: Tensor, v: Tensor, columns: Tensor) -> Part:
    selected = (x.take_along_dim(columns.unsqueeze(-1), -2) for x in (k, v))
    out, lse = partial_attention(*(x.reshape(-1, 1, *x.shape[-2:]) for x in (q, *selected)))
    return out.reshape(*q.shape[:-1], -1), lse.reshape(*q.shape[:-1], 1)


def cost(n: int, d: int, p: VerticalSlashParams, *, causal: bool) -> Cost:
    """Return the cost: the last queries' scores, products with k and v; memory for both parts and their union."""
    if p.columns >= n:
        return Cost(multiply_adds=2 * n * n * d, peak_elements=n * (d + 1))
    judges, diagonals = min(p.judges, n), min(p.diagonals, 2 * n - 1)
    rows = queries_per_step(n, diagonals)
    return Cost(
        multiply_adds=judges * n * d + 2 * n * (p.columns + diagonals) * d,
        peak_elements=max((6 * judges + 2) * n, 5 * n * diagonals + 2 * n * d + rows * diagonals * (d + 3)),
    )


VARIANT = Variant(
    __name__,
    title="Vertical and slash",
    summary="The weights of the last queries of the text select a few keys (columns) and a few distances "
    "(diagonals), and every query attends only to these.",
    formula=r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "
    r"S_i = C \cup \{l : i - l \in D\},\; C, D = \text{the } c, s \text{ heaviest columns, diagonals of } "
    r"P_{n-m < i \le n}",
    complexity="n (c + s + m) d",
    params=VerticalSlashParams,
    cross_reason="all pairs on a diagonal have the same distance between query and key, which is defined only within "
    "one sequence.",
    approximates="softmax",
    causal_reason="the weights of the last queries determine which columns and diagonals of the matrix are kept, so "
    "every row depends on the end of the text.",
    source=Paper(
        "MInference 1.0: Accelerating Pre-filling for Long-Context LLMs via Dynamic Sparse Attention",
        2024,
        "https://arxiv.org/abs/2407.02490",
    ),
    note="In the paper, the model itself is causal, but columns and diagonals are selected after the whole text has "
    "been read. For most queries, the selection therefore depends on later tokens, so this variant does not count "
    "as causal here.",
    special_cases=(SpecialCase("softmax", {"columns": TOKENS}),),
)
