"""A comparison of attention variants on the same queries, keys and values: matrices, errors and costs per head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from attention_core import registry
from attention_core.attention import Attention
from attention_core.errors import InputError
from attention_core.experiments.error import MEASURES, errors
from attention_core.inputs.record import QKV, Array, as_record
from attention_core.registry import Variants


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Attention variants on the same queries, keys and values.

    Attributes:
        qkv: the queries, keys and values.
        causal: whether future keys are hidden.
        attentions: the variants, in the requested order, by their word, such as ``nystrom~landmarks~16`` (see
            ``Attention.word``).
        matrices: the attention matrix of each variant by its word, ``[H, n, m]`` for n queries and m keys.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> ac.compare(*torch.randn(3, 2, 9, 8), ["softmax", "linear"])
        Comparison(QKV('tensors', 2 heads × 9 tokens × 8, causal=False, 0 notices), ['softmax', 'linear'], causal=False)
    """

    qkv: QKV
    causal: bool
    attentions: Mapping[str, Attention]
    matrices: Mapping[str, Tensor]

    def __repr__(self) -> str:
        return f"Comparison({self.qkv!r}, {list(self.attentions)}, causal={self.causal})"

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """One row per variant and head, with the keys ``variant``, ``head``, the errors and ``multiply_adds``.

        ``multiply_adds`` is the head's share of the cost. The errors are those of ``experiments.error.ErrorRow``. Each
        error is relative to the variant's reference, which is softmax for nearly all variants, and is 0 at best.
        """
        q, k, v = self.qkv.tensors
        found = []
        for word, attention in self.attentions.items():
            reference, values = attention.reference(q, k, causal=self.causal), attention.values(v)
            cost = attention.cost(self.qkv.n, q.shape[-1], causal=self.causal, heads=self.qkv.heads, keys=self.qkv.m)
            found += [
                {
                    "variant": word,
                    "head": head,
                    **errors(self.matrices[word][head], reference[head], v[head], values[head]),
                    "multiply_adds": cost.multiply_adds // self.qkv.heads,
                }
                for head in range(self.qkv.heads)
            ]
        return tuple(found)

    @property
    def errors(self) -> dict[str, dict[str, list[float]]]:
        """The errors: ``errors[word][name]`` lists the error ``name`` of one variant, with one value per head."""
        return {
            word: {name: [row[name] for row in self.rows if row["variant"] == word] for name in MEASURES}
            for word in self.attentions
        }

    @property
    def table(self) -> Any:  # noqa: ANN401 - pandas is an optional package
        """The rows as a pandas DataFrame if pandas is installed, and otherwise as a list of dicts."""
        try:
            from pandas import DataFrame
        except ModuleNotFoundError:
            return list(self.rows)
        return DataFrame(self.rows)


def compare(
    q: Array | QKV,
    k: Array | None = None,
    v: Array | None = None,
    variants: Variants = "softmax",
    *,
    causal: bool = False,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
) -> Comparison:
    """Compute the attention matrices of several variants on the same queries, keys and values.

    Args:
        q: queries, ``[n, d]``, ``[H, n, d]`` or ``[1, H, n, d]``, as a tensor or a numpy array. Or a ``QKV``,
            with which ``k`` and ``v`` are left out.
        k: keys, ``[m, d]``, ``[H, m, d]`` or ``[1, H, m, d]``. If m is not n, the keys belong to another sequence.
        v: values, of the same shape as the keys up to the last axis.
        variants: one variant or several, each as a word such as ``nystrom~landmarks~16`` or as an ``Attention``.
        causal: whether future keys are hidden.
        tokens: one label per query of the tensors; a ``QKV`` has its own labels.
        key_tokens: one label per key, if the keys are those of another sequence; see ``QKV.from_tensors``.

    Raises:
        UnknownVariantError: for an unknown variant.
        SettingError: for an unknown setting or a value out of bounds.
        NotCausalError: if ``causal`` is set for a variant that cannot be causal.
        NotCrossError: if the keys are those of another sequence, and a variant or ``causal`` does not allow it.
        ShapeError: if the shapes do not fit together.
        InputError: if two variants have the same word.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> found = ac.compare(*torch.randn(3, 2, 32, 8), ["softmax", "local~window~4", ac.get("linear")])
        >>> list(found.matrices)
        ['softmax', 'local~window~4', 'linear']
        >>> found.matrices["linear"].shape
        torch.Size([2, 32, 32])
        >>> found.errors["softmax"]["matrix"]
        [0.0, 0.0]
    """
    qkv = as_record(q, k, v, tokens=tokens, key_tokens=key_tokens)
    attentions = registry.attentions(variants)
    words = [each.word for each in attentions]
    for each in attentions:
        if words.count(each.word) > 1:
            raise InputError(
                "There are several variants {word!r}. Compare variants that differ in their settings, each once.",
                word=each.word,
            )
        if qkv.crosses:
            each.check_cross(causal)
    return Comparison(
        qkv=qkv,
        causal=causal,
        attentions={each.word: each for each in attentions},
        matrices={each.word: each.weights(qkv.q, qkv.k, causal=causal) for each in attentions},
    )
