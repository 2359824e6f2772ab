"""``QKV``, the record to which every input is converted: queries, keys and values of one layer, with token labels."""

from dataclasses import dataclass, replace

from torch import Tensor

from attention_core.errors import ShapeError


@dataclass(frozen=True)
class Notice:
    """A message for the user about how the input was read, for example that it was cut.

    The template and its values are kept apart so that a page can translate the template.
    """

    template: str
    fields: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return self.template.format(**dict(self.fields))


@dataclass(frozen=True, eq=False, kw_only=True)
class QKV:
    """The queries, keys and values of one attention layer.

    ``softmax(q kᵀ / √d)`` is the attention of the source. If a model scales its logits by a factor other than ``1/√d``,
    ``q`` has been multiplied accordingly and ``scale`` is the model's own factor.

    Attributes:
        q: queries, ``[H, n, d]`` float32, on the CPU, without gradient.
        k: keys, ``[H, n, d]``; grouped key-value heads are already repeated.
        v: values, ``[H, n, d_v]``.
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

    def __post_init__(self) -> None:
        n = self.q.shape[-2]
        if self.q.ndim != 3 or self.k.shape != self.q.shape or self.v.shape[:-1] != self.q.shape[:-1]:
            raise ShapeError(
                "The shapes of q {q}, k {k} and v {v} do not match. Use [H, n, d], [H, n, d] and [H, n, d_v].",
                q=tuple(self.q.shape),
                k=tuple(self.k.shape),
                v=tuple(self.v.shape),
            )
        if not len(self.tokens) == len(self.special) == len(self.groups) == n:
            raise ShapeError(
                "There are {tokens} token labels for {n} positions. Save one label per position.",
                tokens=len(self.tokens),
                n=n,
            )

    def __repr__(self) -> str:
        sizes = f"{self.heads} heads × {self.n} tokens × {self.q.shape[-1]}"
        if self.v.shape[-1] != self.q.shape[-1]:
            sizes += f" (values {self.v.shape[-1]})"
        count = f"{len(self.notices)} notice{'' if len(self.notices) == 1 else 's'}"
        return f"QKV({self.origin[:80]!r}, {sizes}, causal={self.causal}, {count})"

    @property
    def n(self) -> int:
        """The number of tokens."""
        return self.q.shape[-2]

    @property
    def heads(self) -> int:
        """The number of heads H."""
        return self.q.shape[0]

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The queries, keys and values."""
        return self.q, self.k, self.v

    def of_head(self, head: int | None) -> "QKV":
        """Return the record of one head, ``[1, n, d]``, or the whole record for None."""
        if head is None:
            return self
        one = slice(head, head + 1)
        return replace(self, q=self.q[one], k=self.k[one], v=self.v[one])
