"""Full attention that computes every pair and then applies a variant's mask, as a timing baseline for the variant."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from attention_core import registry
from attention_core.attention import Attention, check_sizes
from attention_core.errors import SettingError
from attention_core.ops.softmax.exact import exact_attention
from attention_core.variant import Cost

Form = Literal["fused", "explicit"]
FORMS: tuple[Form, ...] = get_args(Form)
"""``fused``: torch's fused kernel, the same as for softmax, gets the mask. ``explicit``: the n x n scores are computed,
masked and passed to softmax."""
MASK_BYTES = 24
"""Estimated bytes per pair of query and key for making a mask: integer distances, and values compared with them."""


@dataclass(frozen=True, repr=False)
class MaskedFullAttention(Attention):
    """A variant with a data-independent mask, computed as full attention under that mask.

    Its ``word`` is the form, a dot and the variant's word: ``fused.local~window~16``.

    Attributes:
        form: the kind of computation, one of ``FORMS``.
    """

    form: Form = "fused"

    @property
    def key(self) -> str:
        """The form and the variant's key, with a dot between them."""
        return f"{self.form}.{self.variant.key}"

    @property
    def plain(self) -> Attention:
        """The variant with its own algorithm."""
        return Attention(self.variant, self.params)

    def _output(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
        """See ``Attention``; the memory is O(n²)."""
        return self.masked_call(q.shape[-2], q.device, causal=causal)(q, k, v)

    def masked_call(self, n: int, device: torch.device, *, causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        """Return a function ``(q, k, v) -> A v`` for n tokens; its mask is made once, as a model would cache it."""
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

    def cost(self, n: int, d: int, *, causal: bool = False, heads: int = 1, keys: int | None = None) -> Cost:
        """See ``Attention``; two n x n x d products, regardless of the mask."""
        self.check_causal(causal)
        check_sizes(n=n, d=d, heads=heads, keys=n if keys is None else keys)
        if keys not in (None, n):
            self.check_cross(causal)
        buffers = n * (d + 1) if self.form == "fused" else n * n
        return Cost(multiply_adds=heads * 2 * n * n * d, peak_elements=heads * (n * n + buffers))

    def bytes(self, n: int, heads: int, element: torch.dtype) -> int:
        """Estimate the peak bytes of making the mask and of one forward and backward call."""
        scores = 1 if self.form == "fused" else 3 * heads
        return n * n * (MASK_BYTES + scores * element.itemsize)


def attention_from_word(word: str) -> Attention:
    """Return the attention that a word of a timing run describes: a variant, or its mask on full attention.

    Raises:
        LabError: for an unknown variant or setting, or for a mask on the full matrix that depends on the data.
    """
    form, separator, variant_word = word.partition(".")
    if not separator or form not in FORMS:
        return registry.from_word(word)
    attention = registry.from_word(variant_word)
    if attention.variant.mask is None:
        raise SettingError(
            "{title} has no fixed mask to apply to the full matrix. Choose a variant that has one, such as local.",
            title=attention.title,
        )
    return MaskedFullAttention(attention.variant, attention.params, form)
