"""The one abstraction: an attention variant is a frozen record of plain functions with typed settings.

Shape legend, fixed for the whole project: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size,
``m`` landmarks, features or rank, ``C`` feature-map size. One layout: ``[..., n, d]``, rows are queries, columns keys.
"""

import dataclasses
import importlib
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from torch import Tensor

from attention_core.errors import NotCausalError, ShapeError
from attention_core.ops.softmax.masked import causal_mask, scores, widened
from attention_core.settings import Params, Setting, Value, param

__all__ = [
    "TOKENS",
    "Attention",
    "Cache",
    "Cost",
    "Decoder",
    "Family",
    "Paper",
    "Params",
    "Setting",
    "SpecialCase",
    "Value",
    "Variant",
    "param",
]

SOFTMAX = "softmax"
"""What nearly every error is taken against."""

TOKENS: Final = "n"
"""In a special case, the setting that is as large as there are tokens."""

Family = Literal["dense", "sparse", "kernel", "gated", "low_rank", "cache", "mixed"]


@dataclass(frozen=True)
class Cost:
    """What ``attend`` costs.

    Attributes:
        multiply_adds: multiply-adds that ``measure.counting`` counts: matrix products, attention kernels and distances;
            causal forms without the blocks of keys that lie entirely ahead of a block of queries.
        peak_elements: most numbers alive at once beyond q, k and v, the output included.
    """

    multiply_adds: int
    peak_elements: int


@dataclass(frozen=True)
class Cache:
    """What generating keeps for the next token, in numbers, all heads together.

    Attributes:
        token: of each token so far.
        once: however many tokens there are.
    """

    token: int
    once: int = 0


@dataclass(frozen=True)
class Paper:
    """A publication that a variant or a claim cites.

    Attributes:
        title: in full, with its subtitle; translated into English where the publication is in another language.
        year: of its first version.
        url: its address.
        original: the title in the publication's own language, if ``title`` is a translation.
    """

    title: str
    year: int
    url: str
    original: str = ""

    @property
    def heading(self) -> str:
        """The title, followed by the original title if it is a translation."""
        return f"{self.title} / {self.original}" if self.original else self.title


@dataclass(frozen=True)
class Decoder:
    """The step interface of a variant that is a recurrent network.

    ``init_state(q, v, p)`` makes the empty state from one token's shapes; ``step(state, q, k, v, p)`` takes one token,
    ``[..., d]`` and ``[..., d_v]``, and returns its output and the next state, in constant time and memory.
    ``normalised`` says whether the state's last column is the normaliser's. ``tokens(state, q, k, p)``, of those whose
    state is a matrix of fast weights, says how it takes the next token in, as ``algorithms.fast_weights.Tokens``.
    """

    init_state: Callable[..., Any]
    step: Callable[..., tuple[Tensor, Any]]
    normalised: bool = True
    tokens: Callable[..., Any] | None = None


@dataclass(frozen=True)
class SpecialCase:
    """Settings at which a variant is another one, on every input; a test holds each to it.

    Attributes:
        key: of the other.
        settings: its own by name, ``TOKENS`` standing for the input's number of tokens.
        other: likewise, of the other, where they are not its defaults.
        shared: settings that both have, which may be anything as long as they are the same.
        causal: the one form of which this holds; None for both.
    """

    key: str
    settings: Mapping[str, Value] = dataclasses.field(hash=False)
    other: Mapping[str, Value] = dataclasses.field(default_factory=dict, hash=False)
    shared: tuple[str, ...] = ()
    causal: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One attention variant: its mathematics, its algorithm, its settings and its source. Flags are proved by tests.

    Attributes:
        key: name in code and links; the module's name.
        title: name on screen.
        family: the folder it lives in.
        summary: one sentence a student understands.
        formula: the effective matrix or the output, in LaTeX.
        complexity: time of ``attend`` as a formula in plain symbols.
        params: class of its settings.
        weights: ``(q, k, p, *, causal) -> [..., n, n]``, the explicit matrix, for looking at; it is given at least
            float32, for a logit rounded to half precision may change its weight by half.
        attend: ``(q, k, v, p, *, causal) -> [..., n, d_v]``, the algorithm one would run; never n x n.
        definition: ``(q, k, v, p, *, causal) -> [..., n, d_v]``, the output by the paper's formula or its loop over
            tokens, in a few lines of plain torch. It shares no algorithm with ``attend``. None where ``weights``, in
            the variant's own file, is already that short and plain.
        cost: ``(n, d, p, *, causal) -> Cost`` for one head with ``d_v = d``; with ``couples_heads``
            ``(n, d, p, *, causal, heads) -> Cost`` for all heads together.
        source: paper or article.
        further: papers or articles that derive it, or one of its settings, too.
        mask: ``(n, p, *, causal) -> bool [n, n]``, where the pattern is fixed in advance; true = may look.
        pattern: ``(q, k, p, *, causal) -> bool [..., n, n]``, where the pattern is found from the data.
        primitives: ``(q, k, p, *, causal) -> {name: bool [n, n] or [..., n, n]}``, what the mask or pattern is made of;
            its union is that mask or pattern, and the first that allows a pair gives it its colour.
        pairs: how many pairs may look when not causal, to leading order, in plain symbols; empty where not simple.
        approximates: what it stands in for (``"softmax"``), or None where it replaces it.
        reference: ``(q, k, p, *, causal) -> [..., n, n]``, the matrix its errors are taken against, where that is not
            softmax of the scaled ``q kᵀ``.
        reference_name: what that matrix is called on screen; variants are ranked only beside those that share it.
        causal_reason: why it cannot be causal; None where it can.
        rows_sum_to_one: every row sums to one, but for zero rows of queries that may attend to no key.
        zero_rows: a row may be zero although its query may attend to keys: all products of its features vanish or
            are below the smallest number of the inputs' type.
        signed: entries may be negative.
        random: it draws random numbers, from its ``seed`` alone; ``(p) -> bool`` where its settings decide.
        values: ``(v, p) -> [..., n, d_v]``, what the weights are of, where that is not v itself.
        decoder: the step interface, where it has one.
        cache: ``(heads, d, d_v, p) -> Cache``, what generating keeps, where that is less than all keys and values and
            no decoder's state.
        anatomy: ``(q, k, v, p, *, causal) -> dict of named intermediates``, where it has an inside worth seeing.
        note: what a reader of its numbers must know, in one sentence.
        couples_heads: heads (axis -3) decide together; every other leading axis is independent all the same.
        special_cases: what it is at the ends of its settings; where the family tree puts it comes first.
    """

    key: str
    title: str
    family: Family
    summary: str
    formula: str
    complexity: str
    params: type[Params]
    weights: Callable[..., Tensor]
    attend: Callable[..., Tensor]
    cost: Callable[..., Cost]
    source: Paper
    further: tuple[Paper, ...] = ()
    mask: Callable[..., Tensor] | None = None
    pattern: Callable[..., Tensor] | None = None
    primitives: Callable[..., dict[str, Tensor]] | None = None
    pairs: str = ""
    approximates: Literal["softmax"] | None = None
    reference: Callable[..., Tensor] | None = None
    reference_name: str = SOFTMAX
    causal_reason: str | None = None
    rows_sum_to_one: bool = True
    zero_rows: bool = False
    signed: bool = False
    random: bool | Callable[[Any], bool] = False
    values: Callable[..., Tensor] | None = None
    definition: Callable[..., Tensor] | None = None
    decoder: Decoder | None = None
    cache: Callable[..., Cache] | None = None
    anatomy: Callable[..., dict[str, Tensor]] | None = None
    note: str = ""
    couples_heads: bool = False
    special_cases: tuple[SpecialCase, ...] = ()

    @property
    def budget(self) -> Setting | None:
        """The setting that buys fidelity with cost, if there is one."""
        return next((s for s in self.params.settings() if s.budget), None)

    def definition_code(self) -> str:
        """Return the source text of ``definition``, or of ``weights`` where that is the definition."""
        return textwrap.dedent(inspect.getsource(self.definition or self.weights))

    def source_code(self) -> str:
        """Return the source text of the variant's own file."""
        return inspect.getsource(importlib.import_module(f"attention_core.variants.{self.family}.{self.key}"))


@dataclass(frozen=True)
class Attention:
    """A variant with its settings: what ``attention_core.get`` returns and what one calls."""

    variant: Variant
    params: Params

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
        """The variant and its changed settings, ``nystrom~landmarks~16``; ``registry.from_word`` reads it."""
        return "~".join([self.key, *(part for pair in self.params.changed().items() for part in pair)])

    @property
    def random(self) -> bool:
        """Whether it draws random numbers with these settings."""
        random = self.variant.random
        return random(self.params) if callable(random) else random

    def weights(self, q: Tensor, k: Tensor, *, causal: bool = False) -> Tensor:
        """The explicit matrix ``A``, ``[..., n, n]``, rows queries, columns keys.

        Raises:
            NotCausalError: if causal is asked of a variant that cannot be.
            ShapeError: if q and k do not fit together.
        """
        self._check(q, k, k, causal)
        return self.variant.weights(widened(q), widened(k), self.params, causal=causal).to(q.dtype)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
        """The output ``A values(v)``, ``[..., n, d_v]``, by the variant's own algorithm.

        Raises:
            NotCausalError: if causal is asked of a variant that cannot be.
            ShapeError: if q, k and v do not fit together.
        """
        self._check(q, k, v, causal)
        return self.variant.attend(q, k, v, self.params, causal=causal)

    def reference(self, q: Tensor, k: Tensor, *, causal: bool = False) -> Tensor:
        """Compute the matrix that errors are taken against, ``[..., n, n]``: the variant's own reference, or softmax.

        Raises:
            ShapeError: if q and k do not fit together.
        """
        self._check(q, k, k, causal=False)
        if self.variant.reference is not None:
            return self.variant.reference(q, k, self.params, causal=causal)
        logits = scores(widened(q), widened(k))
        if causal:  # in place, to save memory: a page shows all heads of a model
            logits.masked_fill_(~causal_mask(q.shape[-2], q.device), -math.inf)
        return logits.softmax(-1).to(q.dtype)

    def values(self, v: Tensor) -> Tensor:
        """What the weights are of, ``[..., n, d_v]``: v itself for nearly all variants."""
        return v if self.variant.values is None else self.variant.values(v, self.params)

    def mask(self, n: int, *, causal: bool = False) -> Tensor | None:
        """The pairs that may look at each other, ``bool [n, n]``, or None where every pair may or the data decides."""
        self.check_causal(causal)
        return None if self.variant.mask is None else self.variant.mask(n, self.params, causal=causal)

    def cost(self, n: int, d: int, *, causal: bool = False, heads: int = 1) -> Cost:
        """Return what ``attend`` costs for all heads together, each of n tokens and size d."""
        self.check_causal(causal)
        if self.variant.couples_heads:
            return self.variant.cost(n, d, self.params, causal=causal, heads=heads)
        one = self.variant.cost(n, d, self.params, causal=causal)
        return Cost(multiply_adds=heads * one.multiply_adds, peak_elements=heads * one.peak_elements)

    def anatomy(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> dict[str, Tensor]:
        """What the variant makes on the way, by name.

        Raises:
            ValueError: if the variant has no anatomy.
        """
        if self.variant.anatomy is None:
            raise ValueError(f"{self.key} has no anatomy")
        return self.variant.anatomy(q, k, v, self.params, causal=causal)

    def with_settings(self, **settings: Value) -> Self:
        """The same variant with some settings changed."""
        return dataclasses.replace(self, params=dataclasses.replace(self.params, **settings))

    def snippet(self) -> str:
        """Five runnable lines that make this very attention."""
        values = "".join(f", {f.name}={getattr(self.params, f.name)!r}" for f in dataclasses.fields(self.params))
        return (
            "import torch\nimport attention_core as ac\n\n"
            "q, k, v = torch.randn(3, 4, 128, 32)  # [heads, tokens, size]\n"
            f'attention = ac.get("{self.key}"{values})\n'
            "print(attention.attend(q, k, v).shape, attention.weights(q, k).shape)\n"
        )

    def check_causal(self, causal: bool) -> None:
        """Say at once what every method here would say.

        Raises:
            NotCausalError: if causal is asked of a variant that cannot be.
        """
        if causal and self.variant.causal_reason is not None:
            raise NotCausalError(
                "{title} cannot be causal: {reason}", title=self.title, reason=self.variant.causal_reason
            )

    def _check(self, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> None:
        self.check_causal(causal)
        if q.ndim < 2 or q.shape != k.shape or v.shape[:-1] != k.shape[:-1] or q.shape[-2] == 0:
            raise ShapeError(
                "Queries {q}, keys {k} and values {v} do not fit: "
                "give [..., n, d], [..., n, d] and [..., n, d_v] with n >= 1.",
                q=tuple(q.shape),
                k=tuple(k.shape),
                v=tuple(v.shape),
            )
        if not q.is_floating_point() or not q.dtype == k.dtype == v.dtype:
            raise ShapeError(
                "Queries are {q}, keys {k} and values {v}: give all three in one floating-point type.",
                q=q.dtype,
                k=k.dtype,
                v=v.dtype,
            )
