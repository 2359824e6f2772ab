"""Formulas of the mixed family."""

from typing import Any

import torch
from torch import Tensor

from formulas import logits, positions, softmax, transcribes, visible_count, visible_keys
from formulas.kernel import ALL, normalise_rows


@transcribes(
    "lolcats",
    r"A_{ij} \propto \begin{cases} e^{s_{ij} - \max_{|i-l| < w} s_{il}} & |i-j| < w \\ "
    r"\varphi(q_i)^\top \varphi(k_j) & \text{beyond} \end{cases},\quad s = \frac{Q K^\top}{\sqrt d}",
)
def lolcats(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    i, j = positions(q)
    s, near = logits(q, k), ((i - j).abs() < p.window) & visible_keys(q, causal)
    largest = torch.where(near, s, -torch.inf).amax(-1, keepdim=True)
    phi_q, phi_k = (torch.cat([softmax(x, ALL), softmax(-x, ALL)], -1) for x in (q, k))
    return normalise_rows(torch.where(near, torch.exp(s - largest), phi_q @ phi_k.mT), causal)


@transcribes(
    "flash_mixed",
    r"A_{ij} = \frac{x_{ij}}{n_i} + \frac{\operatorname{relu}^2(x_{ij})}{c}"
    r"\left[\lfloor i/c \rfloor = \lfloor j/c \rfloor\right],\quad x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
)
def flash_mixed(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    x = logits(q, k)
    i, j = ((place - 1) // p.chunk for place in positions(q))
    linear = x / visible_count(q, causal)
    if causal:  # Only the chunks before the token's own count linearly, as the note says.
        linear = torch.where(j < i, linear, 0.0)
    return torch.where(visible_keys(q, causal), linear + x.clamp(min=0) ** 2 / p.chunk * (i == j), 0.0)
