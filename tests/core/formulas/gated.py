"""Formulas of the gated family.

Without a causal mask, all tokens are written in order. Then each query reads the last state, as the notes say.
"""

from typing import Any

import torch
from torch import Tensor

from formulas import positions, transcribes, unit
from formulas.dense import gate_logs

HATS = r"\hat q_i = \frac{q_i}{\lVert q_i \rVert},\; \hat k_j = \frac{k_j}{\lVert k_j \rVert}"


def read_mask(x: Tensor, causal: bool) -> Tensor:
    """Return the mask ``M`` of reading: ``[j <= i]``, or ones if each query reads the last state."""
    i, j = positions(x)
    return ((j <= i) | (not causal)).double()


def write_mask(x: Tensor) -> Tensor:
    """Return the mask ``M⁻`` of writing, ``[j < i]``."""
    i, j = positions(x)
    return (j < i).double()


def decayed_products(x: Tensor, y: Tensor, gates: Tensor, read_at: Tensor) -> Tensor:
    """Return ``Σ_c x_ic y_jc Π_{l=j+1}^{t_i} α_lc`` for each pair, where t_i is the position at which row i reads."""
    n = x.shape[-2]
    out = torch.zeros(*x.shape[:-1], n, dtype=x.dtype)
    for i in range(n):
        for j in range(n):
            left = gates[..., j + 1 : int(read_at[i]), :].sum(-2).exp()
            out[..., i, j] = (x[..., i, :] * y[..., j, :] * left).sum(-1)
    return out


def read_products(q: Tensor, k: Tensor, gates: Tensor, causal: bool) -> Tensor:
    """Return the products that queries read, ``(X Yᵀ)_Γ``: at their own position, or at the end."""
    n = q.shape[-2]
    at = torch.arange(1, n + 1) if causal else torch.full((n,), n)
    return decayed_products(q, k, gates, at) * read_mask(q, causal)


def key_products(k: Tensor, gates: Tensor) -> Tensor:
    """Return the products of keys with decay, ``(K Kᵀ)_{Γ⁻}``."""
    return decayed_products(k, k, gates, torch.arange(1, k.shape[-2] + 1)) * write_mask(k)


def delta(q: Tensor, k: Tensor, p: Any, gates: Tensor, causal: bool) -> Tensor:
    """Return ``read (I + diag(β) key_products)⁻¹ diag(β)``, with unit keys or the exact step."""
    if p.keys == "unit":
        q, k = unit(q), unit(k)
        beta = torch.full_like(k[..., 0], p.strength)
    else:
        q, k = q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25
        square = k.square().sum(-1)
        beta = (1 - torch.exp(-p.strength * square)) / square
    identity = torch.eye(q.shape[-2], dtype=q.dtype)
    inverse = torch.linalg.inv(identity + torch.diag_embed(beta) @ key_products(k, gates))
    return read_products(q, k, gates, causal) @ inverse @ torch.diag_embed(beta)


@transcribes(
    "deltanet",
    r"A = (\hat Q \hat K^\top \odot M)\left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top \odot M^-)\right)^{-1}"
    r"\operatorname{diag}(\beta),\quad M_{ij} = [j \le i],\; M^-_{ij} = [j < i],\quad " + HATS,
)
def deltanet(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return delta(q, k, p, torch.zeros_like(k), causal)


@transcribes(
    "gated_deltanet",
    r"A = (\hat Q \hat K^\top \odot \Gamma)\left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top \odot "
    r"\Gamma^-)\right)^{-1} \operatorname{diag}(\beta),\quad \Gamma_{ij} = [j \le i] \prod_{l=j+1}^{i} \alpha_l,\; "
    r"\Gamma^-_{ij} = [j < i]\, \Gamma_{ij},\quad " + HATS,
)
def gated_deltanet(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return delta(q, k, p, gate_logs(k, p).mean(-1, keepdim=True).expand_as(k), causal)


@transcribes(
    "kda",
    r"A = (\hat Q \hat K^\top)_\Gamma \left(I + \operatorname{diag}(\beta)\,(\hat K \hat K^\top)_{\Gamma^-}\right)^{-1}"
    r"\operatorname{diag}(\beta),\quad (X Y^\top)_{\Gamma, ij} = [j \le i] \sum_c x_{ic}\, y_{jc} \prod_{l=j+1}^{i} "
    r"\alpha_{lc},\; (X Y^\top)_{\Gamma^-, ij} = [j < i]\, (X Y^\top)_{\Gamma, ij},\quad " + HATS,
)
def kda(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return delta(q, k, p, gate_logs(k, p), causal)


@transcribes("gla", r"A_{ij} = \frac{1}{\sqrt{d}} \sum_c q_{ic}\, k_{jc} \prod_{l=j+1}^{i} \alpha_{lc}")
def gla(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    return read_products(q, k, gate_logs(k, p), causal) / q.shape[-1] ** 0.5


@transcribes(
    "scalar_decay",
    r"A = \left(\frac{Q K^\top}{\sqrt{d}} \odot \Gamma\right)\operatorname{diag}(\beta),\quad "
    r"\Gamma_{ij} = \prod_{l=j+1}^{i} \alpha_l,\quad \beta_j = 1 \text{ or } 1 - \alpha_j",
)
def scalar_decay(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    gates = gate_logs(k, p).mean(-1, keepdim=True).expand_as(k)
    beta = 1 - gates[..., 0].exp() if p.write == "rest" else torch.ones_like(k[..., 0])
    if p.gate == "harmonic":
        beta[..., 0] = 1  # The first gate 1 - 1/t is zero, but its logarithm is written as 0 and multiplies no state.
    return read_products(q, k, gates, causal) / q.shape[-1] ** 0.5 * beta.unsqueeze(-2)


@transcribes(
    "mesa",
    r"A_{ij} = \hat q_i^\top (H_i + \lambda I)^{-1} \hat k_j\, \Gamma_{ij},\quad "
    r"H_i = \sum_{l \le i} \Gamma_{il}\, \hat k_l \hat k_l^\top,\quad "
    r"\Gamma_{ij} = [j \le i] \prod_{l=j+1}^{i} \alpha_l,\quad " + HATS,
)
def mesa(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    gates = gate_logs(k, p).mean(-1, keepdim=True)
    q, k = unit(q), unit(k)
    n, d = q.shape[-2:]
    ones = torch.ones_like(gates)
    gamma = read_products(ones, ones, gates, causal)
    out = torch.zeros(*q.shape[:-1], n, dtype=q.dtype)
    for i in range(n):
        squares = torch.einsum("...l,...lc,...le->...ce", gamma[..., i, :], k, k)
        inverse = torch.linalg.inv(squares + p.ridge * torch.eye(d, dtype=q.dtype))
        out[..., i, :] = torch.einsum("...c,...ce,...je->...j", q[..., i, :], inverse, k) * gamma[..., i, :]
    return out


@transcribes(
    "path",
    r"A = \hat Q \hat K^\top \odot M - (\hat Q W^\top \odot M)\left(I + \beta\, W W^\top \odot M^-\right)^{-1}"
    r"\beta\,(W \hat K^\top \odot M^-),\quad M_{ij} = [j \le i],\; M^-_{ij} = [j < i],\quad " + HATS,
)
def path(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    q, k = unit(q), unit(k)
    d = k.shape[-1]
    w = {
        "keys": k,
        "turned keys": torch.cat([-k[..., d // 2 :], k[..., : d // 2]], -1),
        "fixed": torch.ones_like(k) / d**0.5,
    }[p.along]
    read, earlier = read_mask(q, causal), write_mask(q)
    inverse = torch.linalg.inv(torch.eye(q.shape[-2], dtype=q.dtype) + p.strength * (w @ w.mT) * earlier)
    return (q @ k.mT) * read - ((q @ w.mT) * read) @ inverse @ (p.strength * (w @ k.mT) * earlier)


@transcribes(
    "softmax_gdn",
    r"o_t = A_t \frac{q_t}{\sqrt[4]{d}} + \bar v_t,\quad A_t = A_{t-1}\left(\left(1 - \tfrac{1}{t}\right) I - "
    r"\beta_t c_t c_t^\top\right) + \beta_t (v_t - \bar v_{t-1})\, c_t^\top,\quad c_t = \frac{k_t - \bar "
    r"k_t}{\sqrt[4]{d}},\; \beta_t = \min\left(\frac{1}{t},\, \frac{\text{cap}}{\lVert c_t \rVert^2}\right)",
)
def softmax_gdn(q: Tensor, k: Tensor, p: Any, causal: bool) -> Tensor:
    n, d = q.shape[-2:]
    values = torch.eye(n, dtype=q.dtype).expand(*q.shape[:-2], n, n)  # V = I, as the note says.
    state = torch.zeros(*q.shape[:-2], n, d, dtype=q.dtype)
    mean, states, means = torch.zeros_like(values[..., 0, :]), [], []
    for t in range(1, n + 1):
        c = (k[..., t - 1, :] - k[..., :t, :].mean(-2)) / d**0.25
        square = c.square().sum(-1, keepdim=True)
        beta = torch.minimum(torch.full_like(square, 1 / t), p.cap / square).unsqueeze(-1)
        kept = (1 - 1 / t) * torch.eye(d, dtype=q.dtype) - beta * c.unsqueeze(-1) * c.unsqueeze(-2)
        new = values[..., t - 1, :] - mean
        state = state @ kept + beta * new.unsqueeze(-1) * c.unsqueeze(-2)
        mean = values[..., :t, :].mean(-2)
        states.append(state)
        means.append(mean)
    rows = []
    for t in range(n):
        at = t if causal else n - 1
        rows.append((states[at] @ q[..., t, :].unsqueeze(-1)).squeeze(-1) / d**0.25 + means[at])
    return torch.stack(rows, -2)
