"""``Attention``: a variant with its settings, which is called like torch's ``scaled_dot_product_attention``."""

import dataclasses
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Self

import numpy as np
import torch
from torch import Tensor

from attention_core import description
from attention_core.errors import InputError, Name, Names, NotCausalError, NotCrossError, SettingError, ShapeError
from attention_core.ops import padding
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, scores
from attention_core.settings import Params, Trainable, Value
from attention_core.variant import Cost, Variant

Array = Tensor | np.ndarray


@dataclass(frozen=True)
class Attention:
    """A variant with its settings: the callable object that ``attention_core.get`` returns.

    Call it as ``torch.nn.functional.scaled_dot_product_attention``. It has no parameters and no state, so a module
    can keep it as an attribute. It supports gradients and autocast. Variants with their own backward pass refuse
    ``create_graph=True`` with a ``LabError``. The README says which variants ``torch.compile`` compiles.

    Queries q are ``[..., n, d]``, keys k ``[..., m, d]`` and values v ``[..., m, d_v]``. If ``causal`` is set,
    query i attends to keys 0..i only. NumPy arrays are read as tensors. Under autocast, all float tensors except
    float64 are converted to autocast's type, as torch does. The variant then runs in this type. All methods check
    their arguments:

    - ``ShapeError`` is raised if shapes or types do not fit together, or a number of tokens, heads or channels is less
      than 1.
    - ``NotCausalError`` is raised if ``causal`` is set and the variant cannot be causal.
    - ``NotCrossError`` is raised if m differs from n or keys are hidden, and the variant does not allow it. Causal
      forms never allow it.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> q, k, v = torch.randn(3, 4, 128, 32)  # [heads, tokens, size]
        >>> nystrom = ac.get("nystrom", landmarks=16)
        >>> nystrom
        nystrom(landmarks=16, method='segment_means', inverse='iterative', iterations=6)
        >>> nystrom(q, k, v).shape
        torch.Size([4, 128, 32])
        >>> nystrom.weights(q, k).shape
        torch.Size([4, 128, 128])

    Attributes:
        variant: the variant.
        params: its settings.
    """

    variant: Variant
    params: Params

    def __repr__(self) -> str:
        settings = repr(self.params).partition("(")[2]
        return f"{self.key}({settings}"

    @property
    def key(self) -> str:
        """The variant's key."""
        return self.variant.key

    @property
    def title(self) -> str:
        """The variant's name on screen."""
        return self.variant.title

    @property
    def word(self) -> str:
        """The variant and its changed settings as text, ``nystrom~landmarks~16``; ``registry.from_word`` reads it."""
        return "~".join([self.key, *(part for pair in self.params.changed().items() for part in pair)])

    @property
    def random(self) -> bool:
        """True if the variant uses random numbers with these settings."""
        random = self.variant.random
        return random(self.params) if callable(random) else random

    def __call__(
        self,
        query: Array,
        key: Array,
        value: Array,
        attn_mask: Array | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
        causal: bool = False,
        key_mask: Array | None = None,
    ) -> Tensor:
        """Return the output of ``attend``, with the arguments of torch's ``scaled_dot_product_attention``.

        ``is_causal`` means the same as ``causal``. A boolean ``attn_mask`` may hide padding: its axis of queries has
        length 1, as in ``[B, 1, 1, m]``. For a ``scale`` other than ``1/√d``, the queries are multiplied by
        ``scale √d``. ``enable_gqa`` repeats the heads of keys and values.

        Raises:
            InputError: for dropout, or for another ``attn_mask``.
            LabError: the errors of ``attend``.
        """
        if dropout_p:
            raise InputError("Attention variants have no dropout. Set dropout_p to 0.")
        q, k, v = _tensors(query, key, value)
        if attn_mask is not None:
            if key_mask is not None:
                raise InputError("attn_mask and key_mask are both set. Leave out one of them.")
            key_mask = _to_key_mask(torch.as_tensor(attn_mask, device=k.device), k)
        if enable_gqa:
            k, v = (_repeated_heads(x, q) for x in (k, v))
        if scale is not None:
            q = q * (scale * math.prod(q.shape[-1:]) ** 0.5)
        return self.attend(q, k, v, causal=causal or is_causal, key_mask=key_mask)

    def _repr_html_(self) -> str:
        return description.as_html(self)

    def help(self) -> str:
        """Return the formula, the settings with their bounds, the cost and the source, as text to print.

        Python's ``help(attention)``, and ``attention?`` in a notebook, show the same text.

        Example:
            >>> import attention_core as ac
            >>> print(ac.get("local", window=8).help().splitlines()[0])
            local(window=8, columns=0): Local, family sparse
        """
        return description.as_text(self)

    def weights(self, q: Array, k: Array, *, causal: bool = False, key_mask: Array | None = None) -> Tensor:
        """Return the explicit attention matrix ``A``, ``[..., n, m]``; rows are queries, columns are keys.

        ``key_mask`` marks the keys that are not padding, bool ``[m]`` or with leading axes of the keys: ``[B, m]`` or
        ``[B, H, m]`` for keys ``[B, H, m, d]``. The weights of padding are zero; all other weights are as if the
        padding were absent.
        """
        self.check_causal(causal)
        q, k, _ = self._checked(q, k, k, causal=causal)
        with _without_autocast(q):
            if key_mask is not None:
                return padding.weights(self.weights, q, k, self._checked_key_mask(k, key_mask, causal))
            A = self.variant.weights(at_least_float32(q), at_least_float32(k), self.params, causal=causal)
            return A.to(q.dtype)

    def attend(self, q: Array, k: Array, v: Array, *, causal: bool = False, key_mask: Array | None = None) -> Tensor:
        """Return the output ``A values(v)``, ``[..., n, d_v]``, by the variant's own algorithm.

        ``A`` and ``key_mask`` are as in ``weights``.
        """
        self.check_causal(causal)
        q, k, v = self._checked(q, k, v, causal=causal)
        with _without_autocast(q):
            if key_mask is not None:
                return padding.attend(self.attend, q, k, v, self._checked_key_mask(k, key_mask, causal))
            if 0 in q.shape[:-2]:  # some algorithms cannot split an empty batch into steps
                return q @ k.mT @ v
            return self._output(q, k, v, causal=causal)

    def _output(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
        """Return the output for arguments that ``attend`` has checked."""
        return self.variant.attend(q, k, v, self.params, causal=causal)

    def reference(self, q: Array, k: Array, *, causal: bool = False) -> Tensor:
        """Return the matrix that ``weights`` is compared with, ``[..., n, m]``: the variant's reference, or softmax."""
        q, k, _ = self._checked(q, k, k, causal=causal)
        with _without_autocast(q):
            if self.variant.reference is not None:
                return self.variant.reference(q, k, self.params, causal=causal)
            logits = scores(at_least_float32(q), at_least_float32(k))
            if causal:  # in place, because a page computes all heads of a model, and a copy would double the memory
                logits.masked_fill_(~causal_mask(q.shape[-2], q.device), -math.inf)
            return logits.softmax(-1).to(q.dtype)

    def values(self, v: Array) -> Tensor:
        """Return the vectors to which the weights apply, ``[..., m, d_v]``: v itself for nearly all variants."""
        _, _, v = self._checked(v, v, v, causal=False)
        with _without_autocast(v):
            return v if self.variant.values is None else self.variant.values(v, self.params)

    def mask(self, n: int, *, causal: bool = False) -> Tensor | None:
        """Return the allowed pairs, ``bool [n, n]``; None if all pairs are allowed or the pairs depend on the data."""
        self.check_causal(causal)
        check_sizes(n=n)
        return None if self.variant.mask is None else self.variant.mask(n, self.params, causal=causal)

    def cost(self, n: int, d: int, *, causal: bool = False, heads: int = 1, keys: int | None = None) -> Cost:
        """Return the cost of ``attend`` summed over all heads, each with n tokens and head size d.

        If the keys are those of another sequence, ``keys`` is their number and n is the number of queries.
        """
        self.check_causal(causal)
        check_sizes(n=n, d=d, heads=heads, keys=n if keys is None else keys)
        key_argument = {}
        if keys not in (None, n):
            self.check_cross(causal)
            key_argument = {"keys": keys}
        if self.variant.couples_heads:
            return self.variant.cost(n, d, self.params, causal=causal, heads=heads, **key_argument)
        per_head = self.variant.cost(n, d, self.params, causal=causal, **key_argument)
        return Cost(multiply_adds=heads * per_head.multiply_adds, peak_elements=heads * per_head.peak_elements)

    def anatomy(self, q: Array, k: Array, v: Array, *, causal: bool = False) -> dict[str, Tensor]:
        """Return the named intermediate results of the variant.

        Raises:
            ValueError: if the variant has no anatomy.
        """
        if self.variant.anatomy is None:
            raise ValueError(f"{self.key} has no anatomy")
        self.check_causal(causal)
        q, k, v = self._checked(q, k, v, causal=causal)
        with _without_autocast(q):
            return self.variant.anatomy(q, k, v, self.params, causal=causal)

    def with_settings(self, **settings: Value) -> Self:
        """Return the same variant with some settings changed."""
        return dataclasses.replace(self, params=self.params.with_values(**settings))

    @property
    def trainable(self) -> tuple[Trainable, ...]:
        """The tensors that models train at these settings."""
        return tuple(each for each in self.variant.trainable if each.when(self.params))

    def with_learned(self, learned: Mapping[str, Tensor]) -> Self:
        """Return the same attention with the tensors of a trained model, by the names of ``trainable``.

        Raises:
            SettingError: if no trainable tensor has one of the names.
        """
        known = [each.name for each in self.trainable]
        if learned and not known:
            raise SettingError("{title} has no trainable tensors at these settings.", title=self.title)
        for name in learned:
            if name not in known:
                raise SettingError(
                    "{title} has no trainable tensor {name!r} at these settings. Its trainable tensors are: {known}.",
                    title=self.title,
                    name=name,
                    known=Names(known),
                )
        return dataclasses.replace(self, params=dataclasses.replace(self.params, learned=learned))

    def snippet(self) -> str:
        """Return a runnable Python example that makes this attention with its settings and calls it."""
        values = "".join(f", {s.name}={getattr(self.params, s.name)!r}" for s in self.params.settings())
        return (
            "import torch\nimport attention_core as ac\n\n"
            "q, k, v = torch.randn(3, 4, 128, 32)  # [heads, tokens, size]\n"
            f'attention = ac.get("{self.key}"{values})\n'
            "print(attention.attend(q, k, v).shape, attention.weights(q, k).shape)\n"
        )

    def check_causal(self, causal: bool) -> None:
        """Raise ``NotCausalError`` if the causal form is requested of a variant that cannot be causal."""
        if causal and self.variant.causal_reason is not None:
            raise NotCausalError(
                "{title} cannot be causal: {reason}", title=self.title, reason=self.variant.causal_reason
            )

    def check_cross(self, causal: bool = False) -> None:
        """Raise ``NotCrossError`` if ``causal`` is set, or the variant needs queries and keys of the same tokens.

        Call this only for an input with hidden keys or with keys of another sequence.
        """
        if causal:
            raise NotCrossError(
                "With a causal mask, there must be as many keys as queries, and a key mask is not allowed."
            )
        if self.variant.cross_reason is not None:
            raise NotCrossError(
                "{title} needs queries and keys of the same tokens: {reason}",
                title=self.title,
                reason=self.variant.cross_reason,
            )

    def _checked_key_mask(self, k: Tensor, key_mask: Array, causal: bool) -> Tensor:
        self.check_cross(causal)
        key_mask = torch.as_tensor(key_mask, device=k.device)
        axes = max(1, k.ndim - (2 if self.variant.couples_heads else 1))
        if key_mask.dtype != torch.bool or key_mask.shape not in [(*k.shape[:i], k.shape[-2]) for i in range(axes)]:
            raise ShapeError(
                "The key mask has the shape {mask} and the type {kind}. Use a bool tensor of shape [m]. For keys of "
                "shape [B, H, m, d], the shapes [B, m] and [B, H, m] are also allowed, unless the heads of the "
                "variant depend on each other.",
                mask=tuple(key_mask.shape),
                kind=key_mask.dtype,
            )
        return key_mask

    def _checked(self, *arrays: Array, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, k and v as tensors, if the variant can attend with their shapes and types."""
        q, k, v = _tensors(*arrays)
        mismatch = q.shape[:-2] != k.shape[:-2] or q.shape[-1:] != k.shape[-1:] or v.shape[:-1] != k.shape[:-1]
        if q.ndim < 2 or k.ndim < 2 or mismatch or 0 in (*q.shape[-2:], *v.shape[-2:]):
            raise ShapeError(
                "The shapes of q {q}, k {k} and v {v} do not match. Use [..., n, d], [..., m, d] and [..., m, d_v], "
                "where n, m, d and d_v are at least 1.",
                q=tuple(q.shape),
                k=tuple(k.shape),
                v=tuple(v.shape),
            )
        if q.shape[-2] != k.shape[-2]:
            self.check_cross(causal)
        if not q.is_floating_point() or not q.dtype == k.dtype == v.dtype:
            raise ShapeError(
                "The types of q ({q}), k ({k}) and v ({v}) are different or not floating point. Convert all three to "
                "the same floating-point type.",
                q=q.dtype,
                k=k.dtype,
                v=v.dtype,
            )
        return q, k, v


def _tensors(*arrays: Array) -> list[Tensor]:
    """Return the arrays as tensors, in autocast's type if autocast is enabled; float64 is kept, as by torch."""
    # ``as_tensor`` would move tensors to torch's default device.
    tensors = [x if isinstance(x, Tensor) else torch.as_tensor(x) for x in arrays]
    return [
        x.to(torch.get_autocast_dtype(x.device.type))
        if _has_autocast(x) and x.is_floating_point() and x.dtype != torch.float64
        else x
        for x in tensors
    ]


def _has_autocast(x: Tensor) -> bool:
    device = x.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Return a context in which operations on the device of ``x`` keep the types of their inputs."""
    return torch.autocast(x.device.type, enabled=False) if _has_autocast(x) else nullcontext()


def _repeated_heads(x: Tensor, q: Tensor) -> Tensor:
    """Return keys or values ``[..., G, m, d]`` with each head repeated for its H / G heads of queries."""
    if min(q.ndim, x.ndim) < 3 or not x.shape[-3] or q.shape[-3] % x.shape[-3]:
        raise ShapeError(
            "enable_gqa cannot repeat the heads of the keys or values {x} for the queries {q}. Use the shapes "
            "[..., G, m, d] and [..., H, n, d], where H is a multiple of G.",
            x=tuple(x.shape),
            q=tuple(q.shape),
        )
    return x.repeat_interleave(q.shape[-3] // x.shape[-3], -3)


def check_sizes(**numbers: int) -> None:
    """Raise ``ShapeError`` if a number of tokens, heads or channels is not whole, or less than 1."""
    for name, number in numbers.items():
        if not isinstance(number, Integral) or number < 1:
            raise ShapeError("{name} is {value}. Choose a whole number of at least 1.", name=Name(name), value=number)


def _to_key_mask(attn_mask: Tensor, k: Tensor) -> Tensor:
    """Convert torch's ``attn_mask``, which must be equal for all queries, to a key mask: remove its axis of queries.

    Raises:
        InputError: if the mask is not boolean, differs between queries, or leaves out leading axes of the keys.
    """
    leading = list(attn_mask.shape[:-2])
    if attn_mask.dtype != torch.bool or attn_mask.shape[-2:-1] != (1,) or attn_mask.ndim not in (2, k.ndim):
        raise InputError(
            "attn_mask has the shape {mask} and the type {kind}. Variants accept only a mask that hides padding. Use "
            "a bool tensor of shape [1, m] or [B, 1, 1, m], or the argument key_mask.",
            mask=tuple(attn_mask.shape),
            kind=attn_mask.dtype,
        )
    while leading and leading[-1] == 1:
        leading.pop()
    return attn_mask.reshape(*leading, attn_mask.shape[-1])


Attention.__doc__ = description.InstanceHelp(Attention.__doc__)  # type: ignore[assignment]
