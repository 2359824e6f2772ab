"""Baselines for the times of variants: torch's fused attention, compiled ``flex_attention`` and third-party kernels."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention_core.attention import Attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Baseline:
    """A kernel with which a variant's time is compared.

    Attributes:
        name: name in a report.
        build: ``(n, device, causal) -> attend`` for ``[B, H, n, d]``, with all preparation done.
        equivalent: the variant of this library with the same computation; None if there is no such variant.
        multiply_adds: ``(n, d, causal)`` for one head, by formula.
        counted: whether the kernel's tensors can be counted, which is impossible for compiled code.
    """

    name: str
    build: Callable[[int, torch.device, bool], Attend]
    equivalent: Attention | None
    multiply_adds: Callable[[int, int, bool], int]
    counted: bool = True


BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def fused(softmax: Attention) -> list[Baseline]:
    """Return full attention as one baseline per backend of torch; calls raise for an unsupported shape or device."""

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
    """Return compiled ``flex_attention`` with the variant's fixed mask as a baseline; None without a fixed mask."""
    if attention.variant.mask is None:
        return None

    def build(n: int, device: torch.device, causal: bool) -> Attend:
        # This import takes seconds, because it imports torch's compiler.
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        # The benchmark runs the backward pass of one forward pass several times. With donated buffers, compiled code
        # would overwrite the tensors that the forward pass saved. Not every version of torch has this option.
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
"""Modules of ``fla.ops`` (flash-linear-attention) with a chunked kernel of the same kind, by our variant's key."""
BY_HEAD, BY_CHANNEL = {"simple_gla", "gated_delta_rule"}, {"gla", "kda"}
"""Kernels that take the logarithms of decays: ``BY_HEAD`` as ``[B, n, H]``, ``BY_CHANNEL`` as ``[B, n, H, d]``."""
DELTA = {"delta_rule", "gated_delta_rule", "kda"}
"""Kernels that take keys of length 1 and learning rates, ``[B, n, H]``."""


def fla(attention: Attention) -> Baseline | None:
    """Return flash-linear-attention's kernel for the same kind of variant as a baseline; it is always causal.

    None if ``FLA`` has no kernel for the variant, or the package is not installed. The kernel's feature maps and
    gates differ from those of this library, so it is timed but its output is not compared.
    """
    if attention.key not in FLA or importlib.util.find_spec("fla") is None:
        return None
    kind = FLA[attention.key]
    name = f"chunk_{kind}"

    def build(n: int, device: torch.device, causal: bool) -> Attend:
        kernel = getattr(importlib.import_module(f"fla.ops.{kind}"), name)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # tokens before heads
            options = {}
            if kind in DELTA:
                k, options["beta"] = F.normalize(k, dim=-1), torch.ones_like(q[..., 0])
            if kind in BY_HEAD | BY_CHANNEL:
                options["g"] = torch.zeros_like(q if kind in BY_CHANNEL else q[..., 0], dtype=torch.float32)
            out: Tensor = kernel(q, k, v, **options)[0]
            return out.transpose(1, 2)

        return attend

    return Baseline(
        f"fla {name}", build, None, lambda n, d, causal: attention.cost(n, d, causal=True).multiply_adds, counted=False
    )


def baselines(attentions: list[Attention], softmax: Attention) -> list[Baseline]:
    """Return all baselines of these variants."""
    candidates = [*fused(softmax), *map(compiled, attentions), *map(fla, attentions)]
    return [each for each in candidates if each is not None]
