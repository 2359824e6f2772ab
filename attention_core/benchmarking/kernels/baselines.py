"""What variants are timed beside: torch's fused kernels one by one, compiled masks, other people's kernels."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention_core.variant import Attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Baseline:
    """Something a variant is timed beside.

    Attributes:
        name: what it is called in a report.
        build: ``(n, device, causal) -> attend`` of ``[B, H, n, d]``; what can be prepared has been.
        wanted: what it computes, by our own code; None where nothing of ours computes the same.
        multiply_adds: ``(n, d, causal)`` of one head, as its formula says.
        counted: whether tensors it makes can be counted; compiled code makes them out of sight.
    """

    name: str
    build: Callable[[int, torch.device, bool], Attend]
    wanted: Attention | None
    multiply_adds: Callable[[int, int, bool], int]
    counted: bool = True


BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def fused(softmax: Attention) -> list[Baseline]:
    """Full attention by each of torch's backends; one that cannot run on a shape or device says so when called."""

    def build(backend: SDPBackend, n: int, device: torch.device, causal: bool) -> Attend:
        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        return attend

    return [
        Baseline(
            f"SDPA {name}",
            partial(build, backend),
            softmax,
            lambda n, d, causal: softmax.cost(n, d, causal=causal).multiply_adds,
        )
        for name, backend in BACKENDS.items()
    ]


def compiled(attention: Attention) -> Baseline | None:
    """A fixed pattern by ``flex_attention``, compiled; None where the pattern is not known in advance."""
    if attention.variant.mask is None:
        return None

    def build(n: int, device: torch.device, causal: bool) -> Attend:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # imports the compiler: seconds

        # a backward alone is run again and again on what its forward has kept; torch promises none of this setting
        if hasattr(config := getattr(torch._functorch, "config", None), "donated_buffer"):
            config.donated_buffer = False  # type: ignore[union-attr]
        mask = attention.mask(n, causal=causal)
        assert mask is not None
        mask = mask.to(device)
        blocks = create_block_mask(lambda b, h, i, j: mask[i, j], None, None, n, n, device=device.type)
        flex: Callable[..., Any] = torch.compile(flex_attention, dynamic=False)
        return lambda q, k, v: flex(q, k, v, block_mask=blocks)

    def multiply_adds(n: int, d: int, causal: bool) -> int:
        mask = attention.mask(n, causal=causal)
        assert mask is not None
        return 2 * d * int(mask.sum())

    return Baseline(f"flex_attention {attention.word}", build, attention, multiply_adds, counted=False)


FLA: Mapping[str, str] = {
    "linear": "linear_attn",
    "retention": "retention",
    "scalar_decay": "simple_gla",
    "gla": "gla",
    "kda": "kda",
    "deltanet": "delta_rule",
    "gated_deltanet": "gated_delta_rule",
}
"""flash-linear-attention's name of a kind, by our key: a module of ``fla.ops``, with a function by chunks."""
BY_HEAD, BY_CHANNEL = {"simple_gla", "gated_delta_rule"}, {"gla", "kda"}
"""Those that take the logarithms of decays, ``[B, n, H]`` and ``[B, n, H, d]``."""
DELTA = {"delta_rule", "gated_delta_rule", "kda"}
"""Those that take keys of length 1 and rates of learning, ``[B, n, H]``."""


def fla(attention: Attention) -> Baseline | None:
    """flash-linear-attention's kernel of the same kind, causal whatever is asked; None where it does not import.

    It has feature maps and gates of its own, so it is timed, not compared.
    """
    if attention.key not in FLA or importlib.util.find_spec("fla") is None:
        return None
    kind = FLA[attention.key]
    name = f"chunk_{kind}"

    def build(n: int, device: torch.device, causal: bool) -> Attend:
        kernel = getattr(importlib.import_module(f"fla.ops.{kind}"), name)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # tokens before heads
            more = {}
            if kind in DELTA:
                k, more["beta"] = F.normalize(k, dim=-1), torch.ones_like(q[..., 0])
            if kind in BY_HEAD | BY_CHANNEL:
                more["g"] = torch.zeros_like(q if kind in BY_CHANNEL else q[..., 0], dtype=torch.float32)
            out: Tensor = kernel(q, k, v, **more)[0]
            return out.transpose(1, 2)

        return attend

    return Baseline(
        f"fla {name}", build, None, lambda n, d, causal: attention.cost(n, d, causal=True).multiply_adds, counted=False
    )


def baselines(attentions: list[Attention], softmax: Attention) -> list[Baseline]:
    """All that these variants are timed beside."""
    found = [*fused(softmax), *map(compiled, attentions), *map(fla, attentions)]
    return [each for each in found if each is not None]
