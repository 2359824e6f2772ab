"""The one record every input becomes: queries, keys and values of one layer, with the names of their tokens."""

from dataclasses import dataclass, replace

from torch import Tensor

from attention_core.errors import ShapeError


@dataclass(frozen=True)
class Notice:
    """Something the user should know of how the input was read, e.g. that it was cut.

    The template and its values stay apart so that a screen may translate the sentence.
    """

    template: str
    fields: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return self.template.format(**dict(self.fields))


@dataclass(frozen=True, eq=False, kw_only=True)
class QKV:
    """Queries, keys and values as one layer attends with them.

    ``softmax(q kᵀ / √d)`` reproduces the source's own attention: where a model scales its logits by anything other
    than ``1/√d``, ``q`` has been multiplied accordingly and ``scale`` keeps the model's own factor.

    Attributes:
        q: queries, ``[H, n, d]`` float32, on the CPU, without gradient.
        k: keys, ``[H, n, d]``; grouped key-value heads are already repeated.
        v: values, ``[H, n, d_v]``.
        tokens: one label per position, as a person would write it (no ``##``, no ``Ġ``).
        special: one flag per position, true for tokens the tokenizer added (``[CLS]``, ``<bos>``).
        groups: one number per position; neighbours with the same number are pieces of one character or word
            (bytes of a Chinese character), so that a screen may label them together.
        causal: whether the source itself hides the future.
        scale: the source's own logit scale.
        origin: where it comes from, for captions: ``"minilm layer 3"``.
        total_tokens: tokens before cutting; equals n when nothing was cut.
        notices: what the user should know.
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

    def __post_init__(self) -> None:
        n = self.q.shape[-2]
        if self.q.ndim != 3 or self.k.shape != self.q.shape or self.v.shape[:-1] != self.q.shape[:-1]:
            raise ShapeError(
                "Queries {q}, keys {k} and values {v} must be [H, n, d], [H, n, d] and [H, n, d_v].",
                q=tuple(self.q.shape),
                k=tuple(self.k.shape),
                v=tuple(self.v.shape),
            )
        if not len(self.tokens) == len(self.special) == len(self.groups) == n:
            raise ShapeError(
                "There are {tokens} token labels for {n} positions; give one each.", tokens=len(self.tokens), n=n
            )

    def __repr__(self) -> str:
        sizes = f"{self.heads} heads × {self.n} tokens × {self.q.shape[-1]}"
        if self.v.shape[-1] != self.q.shape[-1]:
            sizes += f" (values {self.v.shape[-1]})"
        count = f"{len(self.notices)} notice{'' if len(self.notices) == 1 else 's'}"
        return f"QKV({self.origin[:80]!r}, {sizes}, causal={self.causal}, {count})"

    @property
    def n(self) -> int:
        """Number of tokens."""
        return self.q.shape[-2]

    @property
    def heads(self) -> int:
        """Number of heads H."""
        return self.q.shape[0]

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        return self.q, self.k, self.v

    def of_head(self, head: int | None) -> "QKV":
        """The record of one head alone, ``[1, n, d]``; the whole record for None."""
        if head is None:
            return self
        one = slice(head, head + 1)
        return replace(self, q=self.q[one], k=self.k[one], v=self.v[one])
