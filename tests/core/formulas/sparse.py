"""Formulas of the sparse family."""

import math
from typing import Any

import torch
from torch import Tensor

from attention_core.ops import lsh
from attention_core.ops.random import normal
from attention_core.variants.sparse import bigbird as draws
from attention_core.variants.sparse import reformer as hashes
from formulas import logits, positions, softmax, transcribes, visible_keys
from formulas.kernel import ALL
from formulas.low_rank import means

RESTRICTED = r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \in S_i} e^{q_i^\top k_l / \sqrt d}},\quad "


def softmax_over(q: Tensor, k: Tensor, allowed: Tensor, causal: bool) -> Tensor:
    """Return the softmax of the scaled products over the pairs that are allowed and visible."""
    return softmax(logits(q, k), allowed & visible_keys(q, causal))


def places(q: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of queries and keys, counted from 0."""
    i, j = positions(q)
    return i - 1, j - 1


@transcribes(
    "atrous",
    r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{l \equiv i \,(r)} e^{q_i^\top k_l / \sqrt d}}"
    r"\quad\text{where } j \equiv i \pmod r",
)
def atrous(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    return softmax_over(q, k, i % p.stride == j % p.stride, causal)


@transcribes(
    "local",
    r"A_{ij} = \frac{e^{q_i^\top k_j / \sqrt d}}{\sum_{|i-l| \le w} e^{q_i^\top k_l / \sqrt d}}"
    r"\quad\text{where } |i-j| \le w",
)
def local(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    return softmax_over(q, k, (i - j).abs() <= p.window, causal)


@transcribes("sink", RESTRICTED + r"S_i = \{l : |i-l| < w\} \cup \{l : l < s\}")
def sink(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    return softmax_over(q, k, ((i - j).abs() < p.window) | (j < p.sinks), causal)


@transcribes(
    "bigbird",
    RESTRICTED + r"j \in S_i \iff |i-j| \le w \text{ or } i < g \text{ or } j < g \text{ or } j \in R_i,\ "
    r"|R_i| \le \rho",
)
def bigbird(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    drawn = draws.random_keys(q.shape[-2], p, None, causal=causal).long()  # R_i
    among = (drawn.unsqueeze(-1) == j).any(-2)
    return softmax_over(
        q, k, ((i - j).abs() <= p.window) | (i < p.global_tokens) | (j < p.global_tokens) | among, causal
    )


@transcribes(
    "longformer",
    RESTRICTED + r"j \in S_i \iff \left(|i-j| \le w\delta,\ j \equiv i \,(\delta)\right) \text{ or } i < g "
    r"\text{ or } j < g",
)
def longformer(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    near = ((i - j).abs() <= p.window * p.dilation) & ((i - j) % p.dilation == 0)
    return softmax_over(q, k, near | (i < p.global_tokens) | (j < p.global_tokens), causal)


@transcribes(
    "sparse",
    RESTRICTED + r"S_i = \{l : |i-l| \le w\} \cup \{l : l \equiv i \pmod r\} \quad\text{or}\quad "
    r"\{l : \lfloor l/r \rfloor = \lfloor i/r \rfloor\} \cup \{l : l \bmod r \ge r - c\}",
)
def sparse(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    if p.pattern == "strided":
        return softmax_over(q, k, ((i - j).abs() <= p.window) | ((i - j) % p.stride == 0), causal)
    return softmax_over(q, k, (i // p.stride == j // p.stride) | (j % p.stride >= p.stride - p.summary), causal)


@transcribes(
    "topk",
    RESTRICTED.replace("S_i", "T_i") + r"T_i = \text{the } k \text{ largest of } q_i^\top k_1, \dots, q_i^\top k_n",
)
def topk(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    x = torch.where(visible_keys(q, causal), logits(q, k), -torch.inf)
    rank = (x.unsqueeze(-2) > x.unsqueeze(-1)).sum(-1)  # The number of keys of the row with a larger score.
    return softmax_over(q, k, rank < p.k, causal)


def block_scores(q: Tensor, k: Tensor, p: Any, score: str) -> Tensor:
    """Return the score ``s(q_i, b)`` of every block, ``[..., n, blocks]``, as the setting "score" describes it."""
    n, d = k.shape[-2:]
    found = []
    for first in range(0, n, p.block):
        keys = k[..., first : first + p.block, :] / d**0.5
        x, mean = q @ keys.mT, keys.mean(-2, keepdim=True)
        if score == "mean key":
            found.append((q @ mean.mT)[..., 0])
        elif score == "second order":
            spread = (keys - mean).mT @ (keys - mean) / keys.shape[-2]
            found.append((q @ mean.mT)[..., 0] + ((q @ spread) * q).sum(-1) / 2)
        elif score == "bound":
            low, high = keys.amin(-2, keepdim=True), keys.amax(-2, keepdim=True)
            found.append(torch.maximum(q * low, q * high).sum(-1))
        elif score == "random indexer":
            into = normal((d, p.rank), p.seed, k) / p.rank**0.5
            found.append(((q @ into) @ (keys @ into).mT).amax(-1))
        else:
            found.append(x.exp().sum(-1))
    return torch.stack(found, -1)


def chosen_pairs(q: Tensor, k: Tensor, p: Any, causal: bool, score: str) -> Tensor:
    """Return the pairs of a query with its own block and with its chosen blocks, ``bool [..., n, n]``."""
    i, j = places(q)
    own = i // p.block
    scores = block_scores(q, k, p, score)
    block = torch.arange(scores.shape[-1])
    scores = torch.where((block < own) if causal else (block != own), scores, -torch.inf)
    best = scores.sort(dim=-1, descending=True, stable=True).indices[..., : p.blocks]
    picked = torch.zeros(scores.shape, dtype=torch.bool).scatter(-1, best, True) & (scores > -torch.inf)
    return picked[..., (j // p.block).flatten()] | (own == j // p.block)


@transcribes(
    "blocks", RESTRICTED + r"S_i = b(i) \cup \text{the } m \text{ best of } \{b \ne b(i)\} \text{ by } s(q_i, b)"
)
def blocks(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return softmax_over(q, k, chosen_pairs(q, k, p, causal, p.score), causal)


@transcribes(
    "nsa",
    r"A = g_1\, \operatorname{softmax}\left(\frac{Q \bar K^\top}{\sqrt d}\right) P "
    r"+ g_2\, \operatorname{softmax}_{S_i}\left(\frac{Q K^\top}{\sqrt d}\right) "
    r"+ g_3\, \operatorname{softmax}_{|i-j| < w}\left(\frac{Q K^\top}{\sqrt d}\right),\quad \bar K = P K",
)
def nsa(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    n = q.shape[-2]
    pools = [range(first, min(first + p.block, n)) for first in range(0, n, p.block)]
    matrix = means(pools, n)
    whole = (torch.arange(1, len(pools) + 1) * p.block <= i + 1) if causal else ALL  # Blocks whose last key is visible.
    outline = softmax(logits(q, matrix @ k), whole.expand(n, len(pools)))
    near = softmax_over(q, k, (i - j).abs() < p.window, causal)
    selected = softmax_over(q, k, chosen_pairs(q, k, p, causal, "mean key"), causal)
    return p.gate_compressed * outline @ matrix + p.gate_selected * selected + p.gate_window * near


@transcribes(
    "power_bert",
    r"A_{ij} = \begin{cases} P_{ij} & s_i \text{ among the } \lceil \kappa n \rfloor \text{ largest} \\ "
    r"0 & \text{otherwise} \end{cases},\quad P = \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt d}\right),\quad "
    r"s_j = \sum_{\text{heads}} \sum_i P_{ij}",
)
def power_bert(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    full = softmax(logits(q, k), ALL)
    s = full.sum((-3, -2))  # [..., n]
    rank = (s.unsqueeze(-2) > s.unsqueeze(-1)).sum(-1)
    count = max(1, math.floor(p.keep * q.shape[-2] + 0.5))
    return full * (rank < count)[..., None, :, None]


@transcribes(
    "vertical_slash",
    RESTRICTED + r"S_i = C \cup \{l : i - l \in D\},\; C, D = \text{the } c, s \text{ heaviest columns, diagonals of } "
    r"P_{n-m < i \le n}",
)
def vertical_slash(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = places(q)
    n = q.shape[-2]
    judged = softmax(logits(q, k), ALL)[..., max(0, n - p.judges) :, :]
    away = (i - j)[max(0, n - p.judges) :]
    columns = judged.sum(-2)
    distances = torch.arange(1 - n, n)
    heavy = torch.stack([torch.where(away == at, judged, 0.0).sum((-2, -1)) for at in distances], -1)
    heavy[..., distances == 0] = torch.inf  # A token always attends to itself, as the setting says.
    in_c = columns.sort(dim=-1, descending=True, stable=True).indices[..., : p.columns]
    in_d = distances[heavy.sort(dim=-1, descending=True, stable=True).indices[..., : p.diagonals]]
    column = (in_c.unsqueeze(-1) == torch.arange(n)).any(-2).unsqueeze(-2)
    diagonal = (in_d[..., None, None, :] == (i - j).unsqueeze(-1)).any(-1)
    return softmax_over(q, k, column | diagonal, False)


REFORMER = (
    r"A_{ij} = \operatorname{softmax}_{j \in P_i} \frac{q_i^\top q_j}{\lVert q_j \rVert},\quad "
    r"P_i = \bigcup_r \{j \ne i : c_r(i) - c_r(j) \in \{0, 1\}\},\quad "
    r"c_r = \text{chunk in the order of } \operatorname{argmax}\,[x R_r; -x R_r]"
)


@transcribes("reformer", REFORMER)
def reformer(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n = q.shape[-2]
    i, j = places(q)
    pairs = torch.zeros(*q.shape[:-1], n, dtype=torch.bool)
    for start, stop, sizes in hashes.query_segments(n, p, causal=causal):
        for number in range(p.rounds):
            bucket = lsh.hash_buckets(q[..., :stop, :], sizes, p.seed, number)
            same = bucket.unsqueeze(-1) == bucket.unsqueeze(-2)
            here = torch.arange(stop)
            before = here < here[:, None]
            if causal:  # Each bucket is cut into chunks separately, so that no later token moves a border.
                place = (same & before).sum(-1)
            else:
                lower = bucket.unsqueeze(-1) > bucket.unsqueeze(-2)
                place = (lower | (same & before)).sum(-1)
            chunk = place // p.bucket_size
            apart = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)
            found = (apart == 0) | (apart == 1)
            found = found & same if causal else found
            pairs[..., start:stop, :stop] |= found[..., start:, :]
    pairs = pairs & (i != j) & visible_keys(q, causal)
    lonely = ~pairs.any(-1, keepdim=True)  # A token without any other pair attends to itself.
    return softmax(q @ (q / q.norm(dim=-1, keepdim=True)).mT, pairs | (lonely & (i == j)))
