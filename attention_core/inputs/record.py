"""``QKV``, the record to which every input is converted: queries, keys and values of one layer, with token labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_core import description
from attention_core.errors import InputError, Name, NotCrossError, Notice, ShapeError
from attention_core.inputs.labels import continues_character, name_pieces
from attention_core.limits import current

Array = Tensor | np.ndarray
"""Queries, keys or values in memory: a tensor of torch or an array of numpy."""


@dataclass(frozen=True, eq=False, kw_only=True)
class QKV:
    """The queries, keys and values of one attention layer.

    ``softmax(q kᵀ / √d)`` is the attention of the source. If a model scales its logits by a factor other than ``1/√d``,
    ``q`` has been multiplied accordingly and ``scale`` is the model's own factor.

    Attributes:
        q: queries, ``[H, n, d]`` float32, on the CPU, without gradient.
        k: keys, ``[H, m, d]``; grouped key-value heads are already repeated. m is n unless ``key_tokens`` is set.
        v: values, ``[H, m, d_v]``.
        tokens: one readable label per position (no ``##``, no ``Ġ``).
        special: one flag per position, true for tokens that the tokenizer added (``[CLS]``, ``<bos>``).
        groups: one number per position; neighbours with the same number are pieces of one character (bytes of a Chinese
            character) or word, so that a page can label them together.
        causal: whether the source itself hides future keys.
        scale: the source's own logit scale.
        origin: name of the source, for captions: ``"minilm layer 3"``.
        total_tokens: number of tokens before cutting; equals n if nothing was cut.
        notices: messages for the user.
        grid: height and width of an image whose pixels are the tokens, row by row; None for other inputs.
        key_tokens: one label per key if the keys are those of another sequence, as in cross-attention; None if queries
            and keys belong to the same tokens.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> qkv = ac.QKV.from_tensors(torch.randn(2, 5, 8), *torch.randn(2, 2, 9, 8))
        >>> print(qkv.heads, qkv.n, qkv.m, qkv.crosses)
        2 5 9 True
    """

    q: Tensor
    k: Tensor
    v: Tensor
    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    groups: tuple[int, ...]
    causal: bool
    scale: float
    origin: str
    total_tokens: int
    notices: tuple[Notice, ...] = ()
    grid: tuple[int, int] | None = None
    key_tokens: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n, keys = self.q.shape[-2], self.k.shape[-2]
        apart = (self.q.shape[0], self.q.shape[-1]) != (self.k.shape[0], self.k.shape[-1])
        if self.q.ndim != 3 or apart or self.v.shape[:-1] != self.k.shape[:-1] or (not self.crosses and keys != n):
            raise ShapeError(
                "The shapes of q {q}, k {k} and v {v} do not match. Use [H, n, d], [H, n, d] and [H, n, d_v], for H "
                "heads and n tokens.",
                q=tuple(self.q.shape),
                k=tuple(self.k.shape),
                v=tuple(self.v.shape),
            )
        if self.crosses and self.causal:
            raise NotCrossError(
                "If the keys come from another sequence, there can be no causal mask. Leave out the argument causal."
            )
        if not len(self.tokens) == len(self.special) == len(self.groups) == n:
            raise ShapeError(
                "There are {tokens} token labels for {n} positions. Save one label per position.",
                tokens=len(self.tokens),
                n=n,
            )
        if len(self.key_labels) != keys:
            raise ShapeError(
                "There are {tokens} key labels for {m} keys. Save one label per key.",
                tokens=len(self.key_labels),
                m=keys,
            )

    def __repr__(self) -> str:
        length = f"{self.n} queries, {self.m} keys" if self.crosses else f"{self.n} tokens"
        sizes = f"{self.heads} heads × {length} × {self.q.shape[-1]}"
        if self.v.shape[-1] != self.q.shape[-1]:
            sizes += f" (values {self.v.shape[-1]})"
        count = f"{len(self.notices)} notice{'' if len(self.notices) == 1 else 's'}"
        return f"QKV({self.origin[:80]!r}, {sizes}, causal={self.causal}, {count})"

    def _repr_html_(self) -> str:
        return description.record_as_html(self)

    @classmethod
    def of_tokens(cls, q: Tensor, k: Tensor, v: Tensor, tokens: tuple[str, ...], **other: Any) -> "QKV":  # noqa: ANN401
        """Return the record of a sequence without special tokens, whose tokens are all whole characters.

        The scale of its logits is ``1/√d``. ``other`` holds further attributes of the record by name.
        """
        n = len(tokens)
        groups, scale = tuple(range(n)), q.shape[-1] ** -0.5
        return cls(
            q=q, k=k, v=v, tokens=tokens, special=(False,) * n, groups=groups, scale=scale, total_tokens=n, **other
        )

    @classmethod
    def from_tensors(
        cls,
        q: Array,
        k: Array,
        v: Array,
        *,
        tokens: Sequence[str] | None = None,
        key_tokens: Sequence[str] | None = None,
        causal: bool = False,
        name: str = "tensors",
    ) -> "QKV":
        """Return the record of queries, keys and values in memory.

        They are copied to the CPU as float32, without their gradients. The scale of the logits is ``1/√d``.

        Args:
            q: queries, ``[n, d]``, ``[H, n, d]`` or ``[1, H, n, d]``.
            k: keys, ``[m, d]``, ``[H, m, d]`` or ``[1, H, m, d]``. If m differs from n, they are those of another
                sequence, as in cross-attention.
            v: values, of the same shape as the keys up to the last axis.
            tokens: one label per position; None for ``t0``, ``t1``, ...
            key_tokens: one label per key of another sequence. None for ``k0``, ``k1``, ... if m differs from n; if
                m = n, None means that queries and keys belong to the same tokens.
            causal: whether the source hides future keys.
            name: name of the source, for captions.

        Raises:
            ShapeError: if the shapes do not fit together.
            InputError: if a value is NaN, infinite or too large, or an array is not of a floating-point type.
            NotCrossError: if ``causal`` is set for keys of another sequence.

        Example:
            >>> import numpy as np
            >>> from attention_core import QKV
            >>> QKV.from_tensors(*np.random.default_rng(0).normal(size=(3, 2, 5, 8)))
            QKV('tensors', 2 heads × 5 tokens × 8, causal=False, 0 notices)
        """
        q, k, v = (_heads_first(x, name) for x, name in ((q, "q"), (k, "k"), (v, "v")))
        n, m = q.shape[-2], k.shape[-2]
        if key_tokens is None and m != n:
            key_tokens = numbered_keys(m)
        return cls.of_tokens(
            q,
            k,
            v,
            tuple(f"t{i}" for i in range(n)) if tokens is None else tuple(map(str, tokens)),
            causal=causal,
            origin=name,
            key_tokens=None if key_tokens is None else tuple(map(str, key_tokens)),
        )

    @property
    def continues(self) -> tuple[bool, ...]:
        """One flag per token: whether it only continues the character of the token before it."""
        return continues_character(self.tokens, self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The tokens' labels; the later pieces of a character are named after the character: ``书``, ``书₂``."""
        return name_pieces(self.tokens, self.groups)

    @property
    def n(self) -> int:
        """The number of tokens; in cross-attention, the number of queries."""
        return self.q.shape[-2]

    @property
    def m(self) -> int:
        """The number of keys, which is the number of tokens except in cross-attention."""
        return self.k.shape[-2]

    @property
    def crosses(self) -> bool:
        """True if the keys are those of another sequence (cross-attention)."""
        return self.key_tokens is not None

    @property
    def key_labels(self) -> tuple[str, ...]:
        """One label per key: ``key_tokens`` in cross-attention, otherwise the tokens' labels."""
        return self.tokens if self.key_tokens is None else self.key_tokens

    @property
    def heads(self) -> int:
        """The number of heads H."""
        return self.q.shape[0]

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The queries, keys and values."""
        return self.q, self.k, self.v

    def check_head(self, head: int | None) -> None:
        """Raise ``InputError`` if there is no head with this index; None means all heads and is always allowed."""
        if head is not None and not 0 <= head < self.heads:
            last = self.heads - 1
            raise InputError("Head {head} does not exist. Choose a head from 0 to {last}.", head=head, last=last)

    def of_head(self, head: int | None) -> "QKV":
        """Return the record of one head, ``[1, n, d]``, or the whole record for None.

        Raises:
            InputError: if the head does not exist.
        """
        self.check_head(head)
        if head is None:
            return self
        one = slice(head, head + 1)
        return replace(self, q=self.q[one], k=self.k[one], v=self.v[one])


def as_record(
    q: Array | QKV,
    k: Array | None,
    v: Array | None,
    *,
    tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    causal: bool = False,
) -> QKV:
    """Return a record unchanged, or the record of three tensors or arrays; see ``QKV.from_tensors``."""
    if isinstance(q, QKV):
        if causal or any(each is not None for each in (k, v, tokens, key_tokens)):
            raise TypeError("A QKV contains k, v, tokens, key_tokens and causal. Leave out these arguments.")
        return q
    if k is None or v is None:
        raise TypeError("Pass q, k and v, or one QKV record.")
    return QKV.from_tensors(q, k, v, tokens=tokens, key_tokens=key_tokens, causal=causal)


def numbered_keys(m: int) -> tuple[str, ...]:
    """Return labels for the m keys of another sequence that have none: ``k0``, ``k1``, ..."""
    return tuple(f"k{j}" for j in range(m))


def check_numbers(array: Array, name: str) -> None:
    """Check the values of q, k or v in their own type, before they are converted to float32.

    Raises:
        InputError: if a value is NaN, infinite, or larger than the profile allows.
    """
    sizes: Any = abs(array)
    n_invalid = math.prod(sizes.shape) - int((sizes < math.inf).sum())
    if n_invalid:
        raise InputError(
            "Array {name} has {count} values that are NaN or infinite. Replace them, for example with np.nan_to_num.",
            name=Name(name),
            count=n_invalid,
        )
    largest, limit = float(sizes.max()), current().upload_magnitude
    if largest > limit:
        raise InputError(
            "Array {name} has values up to {largest:,.7g}. Logits computed from such values are so large that their "
            "squares overflow. Scale the values down to at most {most:,.0f}.",
            name=Name(name),
            largest=largest,
            most=limit,
        )


def _heads_first(array: Array, name: str) -> Tensor:
    """Return a copy of q, k or v as float32 ``[H, n, d]`` on the CPU."""
    found = torch.as_tensor(array).detach()
    if not found.is_floating_point():
        raise InputError("{name} has the type {found}. Convert it to float32.", name=name, found=found.dtype)
    if not 2 <= found.ndim <= 4 or (found.ndim == 4 and found.shape[0] != 1) or 0 in found.shape:
        raise ShapeError(
            "{name} has the shape {shape}. Use [n, d], [H, n, d] or [1, H, n, d], for H heads, n tokens and head "
            "size d, each at least 1.",
            name=name,
            shape=tuple(found.shape),
        )
    check_numbers(found, name)
    return found.to("cpu", torch.float32, copy=True).reshape(-1, *found.shape[-2:])
