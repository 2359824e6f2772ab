"""Tiny transformers whose attention is any registered variant, small enough to train on a CPU in seconds.

A layer is ``x + W_o attend(W_q y, W_k y, W_v y)`` with ``y = LayerNorm(x)``. There is no feed-forward part. An optional
short convolution over neighbouring tokens follows the projections, as in models with linear attention.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_core import registry
from attention_core.attention import Attention
from attention_core.errors import InputError, check_range
from attention_core.formatting import N_
from attention_core.inputs.positions import rotary
from attention_core.learning.tasks import task
from attention_core.ops.once_differentiable import once_differentiable
from attention_core.variant import Trainable

Positions = Literal["none", "learned", "rotary"]
POSITIONS: tuple[Positions, ...] = ("none", "learned", "rotary")
"""Choices of position encoding: none, a learned vector added to each token, and rotation of queries and keys."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The architecture of a tiny model.

    Raises:
        InputError: if a number is out of bounds.

    Attributes:
        task: key of the task, which determines the inputs, the classes and whether attention is causal.
        word: the attention variant and its settings, such as ``local~window~16``.
        layers: number of layers.
        heads: number of heads; it divides ``width``.
        width: size of a token's vector.
        convolution: tokens that the short convolution covers; 0 for no convolution.
        positions: one of ``POSITIONS``.
        tokens: largest number of tokens, if positions or matrices over positions are learned; otherwise set to 0.
        fixed: whether the variant's ``trainable`` tensors stay untrained; always False if it has none.
    """

    task: str
    word: str
    layers: int = 2
    heads: int = 1
    width: int = 64
    convolution: int = 3
    positions: Positions = "none"
    tokens: int = 0
    fixed: bool = False

    def __post_init__(self) -> None:
        if self.positions != "learned" and not any(each.over_positions for each in self.trainable):
            object.__setattr__(self, "tokens", 0)
        if not registry.from_word(self.word).trainable:
            object.__setattr__(self, "fixed", False)
        check_range(N_("layers"), self.layers, 1, 8)
        check_range(N_("heads"), self.heads, 1, 8)
        check_range(N_("width"), self.width, 8, 256)
        check_range(N_("convolution"), self.convolution, 0, 15)
        if self.width % self.heads:
            raise InputError(
                "The width {width} cannot be divided evenly among {heads} heads. Choose a number of heads that "
                "divides the width.",
                heads=self.heads,
                width=self.width,
            )

    @property
    def trainable(self) -> tuple[Trainable, ...]:
        """The tensors that are trained in addition to the projections of queries, keys and values."""
        return () if self.fixed else registry.from_word(self.word).trainable


class _ShiftedSum(torch.autograd.Function):
    """A convolution over tokens, for each channel, as a sum of shifted tokens; on a CPU it is faster than conv1d."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, earlier: int) -> Tensor:  # noqa: ANN401 - torch's context object
        taps = weight[:, 0].T.contiguous()  # contiguous, because a strided tensor would be several times slower
        ctx.save_for_backward(x, taps)
        ctx.before = earlier
        out = x * taps[earlier]
        for i, tap in enumerate(taps):
            if i != earlier:
                target, source = _overlapping(out, x, i - earlier)
                target.addcmul_(source, tap)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        x, taps = ctx.saved_tensors
        grad_x, grad_taps = grad * taps[ctx.before], []
        for i, tap in enumerate(taps):
            outputs, inputs = _overlapping(grad, x, i - ctx.before)
            grad_taps.append((outputs * inputs).sum((0, 1)))
            if i != ctx.before:
                _overlapping(grad, grad_x, i - ctx.before)[1].addcmul_(outputs, tap)
        return grad_x, torch.stack(grad_taps, -1).unsqueeze(1), None


def _overlapping(tokens: Tensor, neighbours: Tensor, offset: int) -> tuple[Tensor, Tensor]:
    """Return the tokens of ``[B, n, *]`` that have a neighbour at this offset, and the neighbours."""
    n = tokens.shape[1]
    count, start = max(0, n - abs(offset)), min(n, abs(offset))
    if offset < 0:
        return tokens.narrow(1, start, count), neighbours.narrow(1, 0, count)
    return tokens.narrow(1, 0, count), neighbours.narrow(1, start, count)


class ShortConvolution(nn.Module):
    """A convolution over neighbouring tokens, separately for each channel; before training, it is the identity.

    Args:
        channels: number of channels.
        width: number of tokens covered: the token itself and earlier tokens, or if not causal, tokens on both
            sides.
        causal: whether later tokens are excluded.
    """

    def __init__(self, channels: int, width: int, *, causal: bool) -> None:
        super().__init__()
        self.before = width - 1 if causal else width // 2
        self.weight = nn.Parameter(torch.zeros(channels, 1, width))
        with torch.no_grad():
            self.weight[:, :, self.before] = 1.0

    def forward(self, x: Tensor) -> Tensor:
        """Mix neighbouring tokens of ``[B, n, channels]``."""
        mixed: Tensor = _ShiftedSum.apply(x, self.weight, self.before)
        return mixed


class LearnedTensors(nn.Module):
    """The tensors that a variant's ``trainable`` declares, computed from parameters that start at zero.

    Args:
        attention: the variant and its settings.
        spec: the architecture.
    """

    def __init__(self, attention: Attention, spec: ModelSpec) -> None:
        super().__init__()
        self.heads = spec.heads
        d = spec.width // spec.heads
        self.weights, self.biases = nn.ParameterDict(), nn.ParameterDict()
        for each in spec.trainable:
            if each.per in ("token", "channel"):
                numbers = spec.heads * (d if each.per == "channel" else 1)
                self.weights[each.name] = nn.Parameter(torch.zeros(numbers, spec.width))
                self.biases[each.name] = nn.Parameter(torch.zeros(numbers))
            else:
                shape = (spec.heads, 1, 1) if each.shape is None else each.shape(attention.params, spec.tokens, d)
                self.weights[each.name] = nn.Parameter(torch.zeros(shape))

    def forward(self, y: Tensor) -> dict[str, Tensor]:
        """Return the learned tensors by name, given normalised tokens ``[B, n, D]`` of width D."""
        return {
            name: F.linear(y, weight, self.biases[name]).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            if name in self.biases
            else weight
            for name, weight in self.weights.items()
        }


class Layer(nn.Module):
    """One attention layer with a residual connection."""

    def __init__(self, spec: ModelSpec, attention: Attention, *, causal: bool) -> None:
        super().__init__()
        self.attention, self.heads, self.causal = attention, spec.heads, causal
        self.is_rotary = spec.positions == "rotary"
        self.norm = nn.LayerNorm(spec.width)
        self.project = nn.Linear(spec.width, 3 * spec.width, bias=False)
        self.mix: nn.Module = nn.Identity()
        if spec.convolution:
            self.mix = ShortConvolution(3 * spec.width, spec.convolution, causal=causal)
        self.out = nn.Linear(spec.width, spec.width, bias=False)
        self.learned = LearnedTensors(attention, spec) if spec.trainable else None

    def attention_on(self, y: Tensor) -> Attention:
        """Return the attention with its learned tensors, which may depend on the normalised tokens ``[B, n, D]``."""
        return self.attention if self.learned is None else self.attention.with_learned(self.learned(y))

    def qkv(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries, keys and values of normalised tokens ``[B, n, D]``, each ``[B, H, n, D / H]``."""
        mixed = self.mix(self.project(y))
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in mixed.chunk(3, -1))
        return (rotary(q), rotary(k), v) if self.is_rotary else (q, k, v)

    def forward(self, x: Tensor) -> Tensor:
        """Return the tokens after this layer, ``[B, n, D]``."""
        y = self.norm(x)
        outputs = self.attention_on(y).attend(*self.qkv(y), causal=self.causal)
        return x + self.out(outputs.transpose(1, 2).flatten(2))


class TinyModel(nn.Module):
    """A transformer of attention layers alone, for one task.

    Args:
        spec: the architecture.

    Raises:
        LabError: if the task or the variant does not exist, or the variant cannot be trained on the task.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        task_, attention = task(spec.task), registry.from_word(spec.word)
        if reason := refusal(spec):
            raise InputError("{title} cannot be trained on this task: {reason}", title=attention.title, reason=reason)
        self.spec = spec
        self.embed: nn.Module = (
            nn.Linear(task_.inputs, spec.width) if task_.vectors else nn.Embedding(task_.inputs, spec.width)
        )
        self.places = nn.Parameter(0.02 * torch.randn(spec.tokens, spec.width)) if spec.positions == "learned" else None
        self.layers = nn.ModuleList(Layer(spec, attention, causal=task_.causal) for _ in range(spec.layers))
        self.norm = nn.LayerNorm(spec.width)
        self.head = nn.Linear(spec.width, task_.classes)

    def embedded(self, inputs: Tensor) -> Tensor:
        """Return the vectors of the tokens before the first layer, ``[B, n, D]``.

        Raises:
            InputError: if there are more tokens than learned positions.
        """
        x = cast("Tensor", self.embed(inputs))
        if 0 < self.spec.tokens < x.shape[1]:
            raise InputError(
                "This model has learned weights for {most} positions only. Choose at most {most} tokens, or train "
                "the model on longer sequences.",
                most=self.spec.tokens,
            )
        return x if self.places is None else x + self.places[: x.shape[1]]

    def forward(self, inputs: Tensor, predicted: Tensor | None = None) -> Tensor:
        """Return the logits of the classes at each position, ``[B, n, classes]``.

        Args:
            inputs: the task's symbols, ``[B, n]``, or vectors, ``[B, n, features]``.
            predicted: ``bool [B, n]``, true at positions whose logits are returned, as ``[positions, classes]``. None
                returns the logits at all positions.
        """
        x = self.embedded(inputs)
        for layer in self.layers:
            x = layer(x)
        if predicted is not None:
            x = x[predicted]
        return cast("Tensor", self.head(self.norm(x)))

    @torch.no_grad()
    def qkv_by_layer(self, inputs: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return the queries, keys and values of each layer, each ``[B, H, n, D / H]``."""
        x, result = self.embedded(inputs), []
        for each in self.layers:
            layer = cast("Layer", each)
            result.append(layer.qkv(layer.norm(x)))
            x = layer(x)
        return result

    @torch.no_grad()
    def matrices(self, inputs: Tensor) -> list[Tensor]:
        """Return the attention matrices of each layer, each ``[B, H, n, n]``."""
        x, result = self.embedded(inputs), []
        for each in self.layers:
            layer = cast("Layer", each)
            y = layer.norm(x)
            q, k, _ = layer.qkv(y)
            result.append(layer.attention_on(y).weights(q, k, causal=layer.causal))
            x = layer(x)
        return result


def refusal(spec: ModelSpec) -> str:
    """Return why a variant cannot be trained on a task; empty if it can."""
    variant = registry.from_word(spec.word).variant
    if task(spec.task).causal and variant.causal_reason is not None:
        return variant.causal_reason
    return ""
