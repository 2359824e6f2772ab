"""A source of queries, keys and values that are already in memory, for experiments and claims in Python."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from attention_core.inputs.positions import OWN, Positions
from attention_core.inputs.record import QKV, Array, as_record
from attention_core.inputs.source import Source, first_tokens


@dataclass(frozen=True, repr=False)
class TensorSource(Source):
    """Queries, keys and values in memory, identified by a digest; the tensors themselves are not compared.

    Attributes:
        digest: SHA-256 of all attributes of ``qkv``.
        qkv: the queries, keys and values. Do not change its tensors.
    """

    digest: str
    qkv: QKV = field(repr=False, compare=False)

    key = "tensors"
    is_offered = False

    @classmethod
    def of(
        cls,
        q: Array | QKV,
        k: Array | None = None,
        v: Array | None = None,
        *,
        tokens: Sequence[str] | None = None,
        key_tokens: Sequence[str] | None = None,
        causal: bool = False,
        positions: Positions = OWN,
    ) -> "TensorSource":
        """Return the source of three tensors or arrays, or of a ``QKV``; see ``QKV.from_tensors`` for the arguments.

        Raises:
            LabError: if the tensors do not fit together.

        Example:
            >>> import torch
            >>> from attention_core import claims, inputs
            >>> source = inputs.TensorSource.of(*torch.randn(3, 2, 32, 8))
            >>> [outcome] = claims.run(claims.tasks(source, keys=["memory_quadruples"])[0])
            >>> print(outcome.verdict)
            holds
        """
        qkv = as_record(q, k, v, tokens=tokens, key_tokens=key_tokens, causal=causal)
        others = tuple(getattr(qkv, each.name) for each in fields(qkv) if each.name not in ("q", "k", "v"))
        digest = hashlib.sha256(repr(others).encode("utf-8", "surrogatepass"))
        for x in qkv.tensors:
            digest.update(repr(tuple(x.shape)).encode() + x.contiguous().numpy().tobytes())
        return cls(digest.hexdigest(), qkv, positions=positions)

    def _load_original(self, tokens: int | None) -> QKV:
        return first_tokens(self.qkv, tokens)

    @property
    def code(self) -> str:
        """The Python expression that makes this source again; it names the tensors instead of containing them."""
        return f"ac.inputs.TensorSource.of(q, k, v{self._positions_code})"
