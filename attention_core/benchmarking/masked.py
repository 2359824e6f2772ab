"""A pattern's mask laid over full attention, every pair computed: what its own algorithm is timed beside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from attention_core import registry
from attention_core.errors import SettingError
from attention_core.ops.softmax.exact import exact_attention
from attention_core.variant import Attention, Cost

Form = Literal["fused", "explicit"]
FORMS: tuple[Form, ...] = get_args(Form)
"""``fused``: torch's fused kernel, which runs softmax too, is handed the mask. ``explicit``: the n x n scores are made,
the forbidden ones hidden, softmax taken of what is left."""
MAKING = 24
"""Bytes per pair that making a mask may hold: whole numbers for the distances, and what is compared with them."""


@dataclass(frozen=True)
class Masked(Attention):
    """A variant whose mask is known in advance, computed as full attention under that mask.

    Its word is the variant's behind the form and a dot, ``fused.local~window~16``.

    Attributes:
        form: one of ``FORMS``.
    """

    form: Form = "fused"

    @property
    def key(self) -> str:
        """The form and the variant's key."""
        return f"{self.form}.{self.variant.key}"

    @property
    def plain(self) -> Attention:
        """The variant by its own algorithm."""
        return Attention(self.variant, self.params)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
        """See ``Attention``; holds n² numbers."""
        self._check(q, k, v, causal)
        return self.over(q.shape[-2], q.device, causal=causal)(q, k, v)

    def over(self, n: int, device: torch.device, *, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        """``(q, k, v) -> A v`` for n tokens, the mask made beforehand as a model would keep it."""
        mask = self.mask(n, causal=causal)
        if mask is None:
            raise ValueError(f"{self.variant.key} has no mask")
        mask = mask.to(device)
        if self.form == "fused":
            return lambda q, k, v: exact_attention(q, k, v, mask=mask)
        hidden = ~mask

        def explicit(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            logits = (q * q.shape[-1] ** -0.5) @ k.mT
            return logits.masked_fill_(hidden, -torch.inf).softmax(-1) @ v

        return explicit

    def cost(self, n: int, d: int, *, causal: bool = False, heads: int = 1) -> Cost:
        """See ``Attention``: two n x n x d products, whatever the mask hides."""
        self.check_causal(causal)
        held = n * (d + 1) if self.form == "fused" else n * n
        return Cost(multiply_adds=heads * 2 * n * n * d, peak_elements=heads * (n * n + held))

    def bytes(self, n: int, heads: int, element: torch.dtype) -> int:
        """About how many bytes the mask's making and one call, forward and backward, hold at most."""
        each = 1 if self.form == "fused" else 3 * heads
        return n * n * (MAKING + each * element.itemsize)


def subject(word: str) -> Attention:
    """What a word of a timing stands for: a variant, or one's mask on the full matrix.

    Raises:
        LabError: for an unknown variant or setting, or one without a mask known in advance.
    """
    form, dot, rest = word.partition(".")
    if not dot or form not in FORMS:
        return registry.from_word(word)
    plain = registry.from_word(rest)
    if plain.variant.mask is None:
        raise SettingError("{title} has no mask that is known in advance.", title=plain.title)
    return Masked(plain.variant, plain.params, form)
