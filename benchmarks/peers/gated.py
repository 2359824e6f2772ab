"""Peers with gates or the delta rule: plain torch code of flash-linear-attention (fla) and transformers.

A peer is an implementation by another project. Its time does not include making the gates, nor normalising the keys
unless the peer does so itself; for this library's variants the time includes both. All peers take ``[B, n, H, *]``,
tokens before heads, except fla's delta rule.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

import attention_core as ac
from attention_core.ops.delta.gates import log_gates
from benchmarks.peers.adaptor import Built, Settings, file_module


def by_token(*tensors: Tensor) -> list[Tensor]:
    """Return ``[B, H, n, *]`` as ``[B, n, H, *]``, views."""
    return [x.transpose(1, 2) for x in tensors]


def unit(x: Tensor) -> Tensor:
    """Return the vectors scaled to length one."""
    return F.normalize(x, dim=-1)


def unit_strengths(q: Tensor) -> Tensor:
    """Return ones as update strengths, ``[B, n, H]``."""
    return torch.ones(q.shape[0], q.shape[2], q.shape[1])


def variant_log_gates(key: str, q: Tensor, k: Tensor, p: Settings) -> Tensor:
    """Return a variant's gates as logarithms, ``[B, n, H]``, or ``[B, n, H, d]`` with one gate per channel."""
    params = ac.get(key, **p).params
    channels = key in ("gla", "kda")
    gates = log_gates(k, params, per_channel=channels).expand(k.shape if channels else (*k.shape[:-1], 1))  # type: ignore[arg-type] # all have gates
    return gates.transpose(1, 2) if channels else gates.squeeze(-1).transpose(1, 2)


def fla_scalar_decay(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build fla's scalar decay, in chunks of 64."""
    chunked = file_module("fla", "ops/simple_gla/naive.py").naive_chunk_simple_gla
    gates = variant_log_gates("scalar_decay", q, k, p)
    tensors = by_token(q, k, v)
    return Built(lambda: chunked(*tensors, gates))


def fla_gla(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build fla's gated linear attention, token by token, which is its only plain form."""
    recurrent = file_module("fla", "ops/gla/naive.py").naive_recurrent_gla
    gates = variant_log_gates("gla", q, k, p)
    tensors = by_token(q, k, v)
    return Built(lambda: recurrent(*tensors, gates))


def fla_delta_rule(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build fla's delta rule, in chunks of 32, with heads before tokens. It divides queries by √d."""
    chunked = file_module("fla", "ops/delta_rule/naive.py").delta_rule_chunkwise
    queries, keys, beta = unit(q) * math.sqrt(q.shape[-1]), unit(k), torch.ones(q.shape[:-1])
    return Built(lambda: chunked(queries, keys, v, beta)[0])


def fla_gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build fla's gated delta rule, in chunks of 64."""
    chunked = file_module("fla", "ops/gated_delta_rule/naive.py").naive_chunk_gated_delta_rule
    gates, beta = variant_log_gates("gated_deltanet", q, k, p), unit_strengths(q)
    tensors = by_token(unit(q), unit(k), v)
    return Built(lambda: chunked(*tensors, gates, beta, scale=1.0))


def fla_kda(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build fla's Kimi delta attention, in chunks of 64."""
    chunked = file_module("fla", "ops/kda/naive.py").naive_chunk_kda
    gates, beta = variant_log_gates("kda", q, k, p), unit_strengths(q)
    tensors = by_token(unit(q), unit(k), v)
    return Built(lambda: chunked(*tensors, gates, beta, scale=1.0))


def mamba_2(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Mamba-2 with the chunk size of its models. It makes gate and strength from a step size, here always 1."""
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import mamba2_chunk_scan

    queries, keys, values = by_token(q * q.shape[-1] ** -0.5, k, v)
    rate = variant_log_gates("scalar_decay", q, k, p)[0, 0]
    size = Mamba2Config().chunk_size
    return Built(lambda: mamba2_chunk_scan(values, unit_strengths(q), rate, keys, queries, chunk_size=size))


def qwen3_next(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Qwen3-Next's delta rule. It normalises q and k and divides q by √d, so our output is divided too."""
    from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

    gates, beta = variant_log_gates("gated_deltanet", q, k, p), unit_strengths(q)
    tensors = by_token(q, k, v)

    def expected() -> Tensor:
        return ac.get("gated_deltanet", **p).attend(q, k, v, causal=True) / math.sqrt(q.shape[-1])

    return Built(lambda: torch_chunk_gated_delta_rule(*tensors, gates, beta, use_qk_l2norm_in_kernel=True), expected)


def kimi_linear(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Kimi Linear's delta rule, as ``qwen3_next`` but with one gate per channel."""
    from transformers.models.kimi_linear.modeling_kimi_linear import chunk_kimi_delta_attention

    gates, beta = variant_log_gates("kda", q, k, p), unit_strengths(q)
    tensors = by_token(q, k, v)

    def expected() -> Tensor:
        return ac.get("kda", **p).attend(q, k, v, causal=True) / math.sqrt(q.shape[-1])

    return Built(lambda: chunk_kimi_delta_attention(*tensors, gates, beta, use_qk_l2norm_in_kernel=True), expected)
