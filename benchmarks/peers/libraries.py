"""Peers, implementations of attention by other projects, from packages on PyPI.

Some peers do not compute exactly what this library's variant computes. The docstring of such a peer's function states
the difference. Modules with projections get q, k and v through ``FixedProjection``. Modules with a packed layout
``[B, n, H d]`` read heads as strided views and return a packed copy of n H d numbers, whose time is included.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.adaptor import Built, FixedProjection, Settings, explicit, file_module, folded, packed


def _elu(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def performer_linear(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build linear attention with features elu + 1, in the same three contractions as fast-transformers."""
    from performer_pytorch.performer_pytorch import linear_attention

    return Built(lambda: linear_attention(_elu(q), _elu(k), v))


def performer_linear_causal(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build causal linear attention in its form without CUDA: 128 chunks, each with all its states."""
    from performer_pytorch.performer_pytorch import causal_linear_attention_noncuda

    return Built(lambda: causal_linear_attention_noncuda(_elu(q), _elu(k), v))


def performer(q: Tensor, k: Tensor, v: Tensor, p: Settings, *, causal: bool = False) -> Built:
    """Build FAVOR+. It draws features and adds 1e-4 to them, so its own formula is expected instead of our output."""
    from performer_pytorch import FastAttention
    from performer_pytorch.performer_pytorch import softmax_kernel

    module = FastAttention(q.shape[-1], nb_features=p["features"], causal=causal)

    def expected() -> Tensor:
        f_q, f_k = (
            softmax_kernel(x, projection_matrix=module.projection_matrix, is_query=x is q).double() for x in (q, k)
        )
        similarity = f_q @ f_k.mT
        if not causal:
            return (similarity / similarity.sum(-1, keepdim=True)).to(v.dtype) @ v
        # performer_pytorch's causal form adds 1e-6 to every sum of key features, which changes the totals by 1e-6 Σ
        # f_q.
        total = similarity.tril().sum(-1, keepdim=True) + 1e-6 * f_q.sum(-1, keepdim=True)
        return (similarity.tril() / total).to(v.dtype) @ v

    return Built(lambda: module(q, k, v), expected)


def performer_efficient(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build efficient attention. It also divides by row sums, which are one here."""
    from performer_pytorch import FastAttention

    module = FastAttention(q.shape[-1], no_projection=True)
    return Built(lambda: module(q, k, v))


def linear_attention_transformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build efficient attention. It divides queries by √d once more, which is undone by scaling v in advance."""
    from linear_attention_transformer.linear_attention_transformer import linear_attn

    v = v * v.shape[-1] ** 0.5
    return Built(lambda: linear_attn(q, k, v))


def nystrom(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Nystrom attention. Its inverse starts from one maximum over all heads, so it equals ours with one head."""
    from nystrom_attention import NystromAttention

    heads, d = q.shape[1], q.shape[-1]
    module = NystromAttention(heads * d, d, heads, num_landmarks=p["landmarks"], residual=False).eval()
    x = torch.cat([packed(t) for t in (q, k, v)], -1)
    module.to_qkv, module.to_out = nn.Identity(), nn.Identity()
    return Built(lambda: module(x))


def linformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Linformer. Its dense projections are learned; here they are random, and its formula is expected."""
    from linformer.linformer import LinformerSelfAttention

    heads, n, d = q.shape[1:]
    module = LinformerSelfAttention(heads * d, n, k=p["rank"], heads=heads).eval()
    module.to_q, module.to_k, module.to_v = (FixedProjection(packed(x)) for x in (q, k, v))
    module.to_out = nn.Identity()
    x = packed(q)

    def expected() -> Tensor:
        keys, values = module.proj_k.mT @ k, module.proj_v.mT @ v
        return explicit(q @ keys.mT * d**-0.5, values)

    return Built(lambda: module(x), expected)


def reformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Reformer. It divides by √d once more and counts pairs in each round; the check has one round, all pairs."""
    from reformer_pytorch import LSHAttention

    module = LSHAttention(bucket_size=p["bucket_size"], n_hashes=p["rounds"]).eval()
    qk, values = folded(q), folded(v)

    def expected() -> Tensor:
        logits = q @ F.normalize(q, dim=-1).mT * q.shape[-1] ** -0.5
        return explicit(logits, v, ~torch.eye(q.shape[-2], dtype=torch.bool))

    return Built(lambda: module(qk, values), expected)


def local(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build local attention: three blocks as wide as the window, with a mask for pairs outside the window."""
    from local_attention import LocalAttention

    module = LocalAttention(p["window"], look_backward=1, look_forward=1, exact_windowsize=True).eval()
    return Built(lambda: module(q, k, v))


def taylor(q: Tensor, k: Tensor, v: Tensor, p: Settings, *, symmetric: bool = False) -> Built:
    """Build the second-order Taylor series, with or without the redundant half of its symmetric features."""
    from taylor_series_linear_attention import TaylorSeriesLinearAttn

    heads, d = q.shape[1], q.shape[-1]
    module = TaylorSeriesLinearAttn(
        heads * d, dim_head=d, heads=heads, combine_heads=False, remove_even_power_dups=symmetric
    ).eval()
    module.to_q, module.to_kv = FixedProjection(q), FixedProjection(k, v)
    return Built(lambda: module(q))


def top_k(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build sparse softmax over all scores in one step."""
    from x_transformers.attend import Attend

    module = Attend(heads=q.shape[1], sparse_topk=p["k"]).eval()
    return Built(lambda: module(q, k, v))


def gau(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build a gated attention unit, relu²(qk/n), with a gate of ones. q is scaled in advance so that it equals ours."""
    from flash_pytorch import GAU

    n, d = q.shape[-2:]
    module = GAU(dim=d, query_key_dim=d, add_residual=False).eval()
    module.norm, module.to_qk, module.to_out = nn.Identity(), nn.Identity(), nn.Identity()
    module.to_hidden = FixedProjection(torch.cat([folded(v), torch.ones_like(folded(v))], -1))
    module.offsetscale = FixedProjection(folded(q) * (n / d) ** 0.5, folded(k))
    module.rel_pos_bias = None
    x = folded(q)
    return Built(lambda: module(x))


def flash(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build mixed chunk attention, with a gate of ones and a residual of zeros; q is scaled so that it equals ours."""
    from flash_pytorch.flash_pytorch import FLASH

    d, chunk = q.shape[-1], p["chunk"]
    module = FLASH(dim=d, group_size=chunk, query_key_dim=d).eval()
    module.norm, module.to_qk, module.to_out = nn.Identity(), nn.Identity(), nn.Identity()
    module.to_hidden = FixedProjection(torch.cat([folded(v), torch.ones_like(folded(v))], -1))
    module.qk_offset_scale = FixedProjection(folded(q) * (chunk / d) ** 0.5, folded(q) * d**-0.5, folded(k), folded(k))
    # The module cannot omit its position bias, so it gets the cheapest one, a scalar zero.
    module.rel_pos_bias = FixedProjection(torch.zeros(()))
    x = torch.zeros_like(folded(v))
    return Built(lambda: module(x))


def fla_linear(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build the chunked form that fla's kernels are tested against, with features elu + 1; it needs no Triton."""
    chunked = file_module("fla", "ops/linear_attn/naive.py").naive_chunk_linear_attn
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return Built(lambda: chunked(_elu(q), _elu(k), v, normalize=True))


def fla_retention(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build retention in chunks, with features elu + 1. It does not normalise rows, so it does less than ours."""
    import attention_core as ac

    chunked = file_module("fla", "ops/simple_gla/naive.py").naive_chunk_simple_gla
    decay = ac.get("retention", **p).params.decay  # type: ignore[attr-defined] # retention has this setting
    n = q.shape[-2]
    gates = torch.full((q.shape[0], n, q.shape[1]), decay).log()
    tensors = [x.transpose(1, 2) for x in (q, k, v)]

    def expected() -> Tensor:
        distance = torch.arange(n)[:, None] - torch.arange(n)
        similarity = (_elu(q) @ _elu(k).mT * q.shape[-1] ** -0.5).tril()
        return similarity * decay ** distance.clamp(min=0) @ v

    return Built(lambda: chunked(_elu(tensors[0]), _elu(tensors[1]), tensors[2], gates), expected)


performer_causal = partial(performer, causal=True)
taylor_symmetric = partial(taylor, symmetric=True)
