"""The dataclasses that describe an attention variant: ``Variant``, its cost and source, and the callable ``Attention``.

Shape legend of the whole project: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size, ``m``
landmarks, random features or rank, ``C`` size of the vector that a feature map gives for one token. Tensors have shape
``[..., n, d]``. In a matrix ``[..., n, n]``, rows are queries and columns are keys.
"""

import dataclasses
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, cast

import numpy as np
import torch
from torch import Tensor

from attention_core import description
from attention_core.errors import InputError, NotCausalError, NotCrossError, ShapeError
from attention_core.formatting import N_
from attention_core.ops import padding
from attention_core.ops.softmax.masked import at_least_float32, causal_mask, scores
from attention_core.settings import Params, Setting, Trainable, Value
from attention_core.settings import param as param  # re-exported, so that variants import all declarations from here

SOFTMAX = "softmax"
"""Key of the variant that is the reference of nearly all approximation errors."""

TOKENS: Final = "n"
"""Placeholder in ``SpecialCase`` for a setting whose value is the number of tokens."""

FIXED_MASK_REASON: Final = N_(
    "whether a query can attend to a key depends on their positions, so queries and keys must come from one sequence."
)
"""Why a variant with a fixed mask cannot attend to another sequence."""

_FROM_MODULE: Any = object()
"""Default of a hook (see ``Variant``): the function of the same name in the variant's module is used."""

Axis = Literal[
    "query", "key", "token", "earlier token", "entry", "channel", "feature", "block", "pool", "landmark", "basis"
]
Family = Literal["dense", "sparse", "kernel", "gated", "low_rank", "cache", "mixed"]


@dataclass(frozen=True)
class Cost:
    """The cost of one call of ``attend``.

    Attributes:
        multiply_adds: multiply-adds of matrix products, attention kernels and distances, as counted by
            ``benchmarking.counting``; causal forms skip blocks of keys that are entirely after a block of queries.
        peak_elements: most numbers in memory at the same time, not counting q, k and v but counting the output.

    Example:
        >>> import attention_core as ac
        >>> ac.get("softmax").cost(128, 32).multiply_adds
        1048576
    """

    multiply_adds: int
    peak_elements: int


@dataclass(frozen=True)
class Cache:
    """The size of the cache that generation keeps for the next token, in numbers, summed over heads.

    Attributes:
        per_token: numbers per past token.
        fixed: numbers that do not depend on how many tokens there are.
    """

    per_token: int
    fixed: int = 0


@dataclass(frozen=True)
class Paper:
    """A publication that a variant or a claim cites.

    Attributes:
        title: the full title with its subtitle, translated into English if the publication is in another language.
        year: year of the first version.
        url: web address.
        original: the title in the original language, if ``title`` is a translation; otherwise empty.
        authors: family name of the author, with "et al." for several authors; empty if it is shown nowhere.

    Example:
        >>> import attention_core as ac
        >>> source = ac.variant("linear").source
        >>> print(source.year, source.url)
        2020 https://arxiv.org/abs/2006.16236
    """

    title: str
    year: int
    url: str
    original: str = ""
    authors: str = ""

    @property
    def heading(self) -> str:
        """The title, followed by the original title if it is a translation."""
        return f"{self.title} / {self.original}" if self.original else self.title


@dataclass(frozen=True)
class Decoder:
    """The functions that run a recurrent variant token by token.

    Attributes:
        init_state: ``(q, v, p)`` with one token's q and v; returns the empty state.
        step: ``(state, q, k, v, p)`` with one token's q and k, ``[..., d]``, and v, ``[..., d_v]``; returns the
            token's output and the next state, in constant time and memory.
        normalised: whether the last column of the state is the normaliser.
        rule_inputs: ``(state, q, k, p)`` for a state of fast weights; returns the ``ops.delta.fast_weights.RuleInputs``
            of the state's next update. None for other states.
    """

    init_state: Callable[..., Any]
    step: Callable[..., tuple[Tensor, Any]]
    normalised: bool = True
    rule_inputs: Callable[..., Any] | None = None


@dataclass(frozen=True)
class SpecialCase:
    """Settings at which a variant equals another variant on every input; a test checks each case.

    Attributes:
        key: key of the other variant.
        settings: this variant's settings by name; ``TOKENS`` represents the number of tokens of the input.
        other: settings of the other variant that differ from its defaults.
        shared: settings that both variants have and that may take any value if it is the same in both.
        causal: True or False if the case holds only for the causal or the non-causal form; None for both.
    """

    key: str
    settings: Mapping[str, Value] = dataclasses.field(hash=False)
    other: Mapping[str, Value] = dataclasses.field(default_factory=dict, hash=False)
    shared: tuple[str, ...] = ()
    causal: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Intermediate:
    """The description of one intermediate result in a variant's ``anatomy``, for a first-time reader.

    Attributes:
        name: its key in ``anatomy``, whose value is a matrix or a vector, ``[..., n]`` or ``[..., n, 1]``.
        title: one to three words.
        symbol: its symbol in the formula, in LaTeX.
        formula: its definition in LaTeX.
        mechanism: one sentence that says how it is made, true for every setting.
        rows: what its rows represent, such as queries.
        columns: what its columns represent; "earlier token" if it is zero on and above its diagonal.
    """

    name: str
    title: str
    symbol: str
    formula: str
    mechanism: str
    rows: Axis = "query"
    columns: Axis = "key"


LOGITS = Intermediate(
    name="logits",
    title="Logits",
    symbol="x",
    formula=r"x_{ij} = \frac{q_i \cdot k_j}{\sqrt d}",
    mechanism="As in softmax, the logit of a query and a key is their scaled dot product.",
)
"""The description of ``logits`` in the ``anatomy`` of variants that use softmax's logits."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One attention variant: its mathematics, algorithm, settings and source. Tests verify its flags.

    Its functions are hooks; p is the settings. A hook that is not passed is the function of the same name in the
    variant's module. Every module needs ``weights``, ``attend`` and ``cost``; any other hook may be missing (None).

    Attributes:
        module: the module's ``__name__``; its last two parts are ``family`` and ``key``.
        title: name on screen.
        summary: one sentence that a student understands.
        formula: the effective matrix or the output, in LaTeX.
        complexity: time of ``attend`` as a formula in plain symbols.
        params: class of its settings.
        weights: ``(q, k, p, *, causal) -> [..., n, n]``, the explicit attention matrix, for display. Inputs are at
            least float32: rounding a logit to half precision may change its weight by half.
        attend: ``(q, k, v, p, *, causal) -> [..., n, d_v]``, the efficient algorithm; it never makes an n x n matrix.
        definition: ``(q, k, v, p, *, causal) -> [..., n, d_v]``, the output by the paper's formula or its loop over
            tokens, in a few lines of plain torch. It shares no algorithm with ``attend``. None if
            ``weights`` is in the variant's own file and has at most 18 plain lines.
        cost: ``(n, d, p, *, causal) -> Cost`` for one head with ``d_v = d``; with ``couples_heads``
            ``(n, d, p, *, causal, heads) -> Cost`` for all heads together. A variant without a ``cross_reason`` also
            accepts ``keys``, the number of keys if it is not n.
        source: paper or article.
        further: other papers or articles that derive the variant or one of its settings.
        mask: ``(n, p, *, causal) -> bool [n, n]``, if the allowed pairs do not depend on the data; true = allowed.
        pattern: ``(q, k, p, *, causal) -> bool [..., n, n]``, if the allowed pairs depend on the data.
        primitives: ``(q, k, p, *, causal) -> {name: bool [n, n] or [..., n, n]}``, the parts whose union is the mask or
            pattern; a pair is drawn in the colour of the first part that allows it.
        pairs: number of allowed pairs when not causal, in plain symbols, without terms that are small for long texts;
            empty if there is no simple formula.
        approximates: ``"softmax"`` if the variant approximates it; None if the variant replaces it.
        reference: ``(q, k, p, *, causal) -> [..., n, n]``, the matrix with which it is compared, if that is not softmax
            of the scaled ``q kᵀ``.
        reference_name: name of that matrix on screen; variants are ranked only with variants of the same reference.
        causal_reason: why the variant cannot be causal; None if it can.
        cross_reason: why its queries and keys must be those of the same tokens; None if keys and values may come from
            another sequence of m tokens, as in cross-attention. A variant with a ``mask`` needs no reason of its own.
        rows_sum_to_one: whether each row sums to one; zero rows of queries without allowed keys are exempt.
        zero_rows: whether a row may be zero although its query may attend to keys, because all products of its features
            vanish or underflow in the type of the inputs.
        signed: whether entries may be negative.
        random: whether it uses random numbers, which depend only on its ``seed``; ``(p) -> bool`` if this depends on
            the settings.
        values: ``(v, p) -> [..., n, d_v]``, the vectors to which the weights apply, if these are not v itself.
        decoder: functions for running token by token, if it is a recurrent network.
        cache: ``(heads, d, d_v, p) -> Cache``, the size of the cache in generation, if it is less than all keys and
            values and not the state of a decoder.
        anatomy: ``(q, k, v, p, *, causal) -> dict of named intermediates``, if there are intermediates worth showing.
        intermediates: names of the results of ``anatomy`` that the Inside page explains, in order; empty if the page
            has special code for the variant.
        note: one sentence that a reader needs in order to interpret its numbers.
        couples_heads: whether the result of a head (axis -3) depends on the other heads; all other leading axes are
            always independent.
        special_cases: variants that it equals at certain settings; the first one is its parent in the family tree.
        trainable: tensors that models train in addition to the projections of queries, keys and values.

    Example:
        >>> import attention_core as ac
        >>> nystrom = ac.variant("nystrom")
        >>> print(nystrom.family, nystrom.budget.name, nystrom.approximates)
        low_rank landmarks softmax
    """

    module: str = dataclasses.field(kw_only=False)
    title: str
    summary: str
    formula: str
    complexity: str
    params: type[Params]
    weights: Callable[..., Tensor] = _FROM_MODULE
    attend: Callable[..., Tensor] = _FROM_MODULE
    cost: Callable[..., Cost] = _FROM_MODULE
    source: Paper
    further: tuple[Paper, ...] = ()
    mask: Callable[..., Tensor] | None = _FROM_MODULE
    pattern: Callable[..., Tensor] | None = _FROM_MODULE
    primitives: Callable[..., dict[str, Tensor]] | None = _FROM_MODULE
    pairs: str = ""
    approximates: Literal["softmax"] | None = None
    reference: Callable[..., Tensor] | None = _FROM_MODULE
    reference_name: str = SOFTMAX
    causal_reason: str | None = None
    cross_reason: str | None = None
    rows_sum_to_one: bool = True
    zero_rows: bool = False
    signed: bool = False
    random: bool | Callable[[Any], bool] = False
    values: Callable[..., Tensor] | None = _FROM_MODULE
    definition: Callable[..., Tensor] | None = _FROM_MODULE
    decoder: Decoder | None = None
    cache: Callable[..., Cache] | None = _FROM_MODULE
    anatomy: Callable[..., dict[str, Tensor]] | None = _FROM_MODULE
    intermediates: tuple[Intermediate, ...] = ()
    note: str = ""
    couples_heads: bool = False
    special_cases: tuple[SpecialCase, ...] = ()
    trainable: tuple[Trainable, ...] = ()

    def __post_init__(self) -> None:
        for hook in hooks():
            if getattr(self, hook) is _FROM_MODULE:
                function = getattr(sys.modules[self.module], hook, None)
                if function is None and hook in ("weights", "attend", "cost"):
                    raise TypeError(f"{self.module} must define {hook}")
                object.__setattr__(self, hook, function)
        if self.mask is not None:
            object.__setattr__(self, "cross_reason", FIXED_MASK_REASON)

    def __repr__(self) -> str:
        return f"Variant({self.key!r})"

    @property
    def key(self) -> str:
        """The name in code and links: the name of the variant's file."""
        return self.module.split(".")[-1]

    @property
    def family(self) -> Family:
        """The name of the folder that contains the variant's file."""
        return cast(Family, self.module.split(".")[-2])

    @property
    def budget(self) -> Setting | None:
        """The setting that trades cost for accuracy; None if there is no such setting."""
        return next((s for s in self.params.settings() if s.budget), None)

    def definition_code(self) -> str:
        """Return the source text of ``definition``, or of ``weights`` where that is the definition."""
        return textwrap.dedent(inspect.getsource(self.definition or self.weights))

    def source_code(self) -> str:
        """Return the source text of the variant's module."""
        return inspect.getsource(sys.modules[self.module])


def hooks() -> tuple[str, ...]:
    """Return the names of a variant's hooks: the functions that ``Variant`` finds in the variant's module."""
    return tuple(field.name for field in dataclasses.fields(Variant) if field.default is _FROM_MODULE)


@dataclass(frozen=True)
class Attention:
    """A variant with its settings: the callable object that ``attention_core.get`` returns.

    Call it as ``torch.nn.functional.scaled_dot_product_attention``. It has no parameters and no state, so a module
    can keep it as an attribute. It supports gradients and autocast. The README says which variants
    ``torch.compile`` compiles.

    Queries q are ``[..., n, d]``, keys k ``[..., m, d]`` and values v ``[..., m, d_v]``. If ``causal`` is set,
    query i attends to keys 0..i only. All methods check their arguments:

    - ``ShapeError`` is raised if shapes or types do not fit together.
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
        query: Tensor | np.ndarray,
        key: Tensor | np.ndarray,
        value: Tensor | np.ndarray,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
        causal: bool = False,
        key_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the output of ``attend``, with the arguments of torch's ``scaled_dot_product_attention``.

        ``is_causal`` means the same as ``causal``. A boolean ``attn_mask`` may hide padding: its axis of queries has
        length 1, as in ``[B, 1, 1, m]``. For a ``scale`` other than ``1/√d``, the queries are multiplied by
        ``scale √d``. ``enable_gqa`` repeats the heads of keys and values. Under autocast, the inputs are converted to
        autocast's type, as torch does. The variant then runs in this type. NumPy arrays are read as tensors.

        Raises:
            InputError: for dropout, or for another ``attn_mask``.
            LabError: the errors of ``attend``.
        """
        if dropout_p:
            raise InputError("Attention variants have no dropout. Set dropout_p to 0.")
        q, k, v = (torch.as_tensor(x) for x in (query, key, value))
        if attn_mask is not None:
            if key_mask is not None:
                raise InputError("attn_mask and key_mask are both set. Leave out one of them.")
            key_mask = _to_key_mask(attn_mask, k)
        if scale is not None:
            q = q * (scale * q.shape[-1] ** 0.5)
        if enable_gqa:
            k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
        causal, device = causal or is_causal, q.device.type
        if not torch.is_autocast_enabled(device):
            return self.attend(q, k, v, causal=causal, key_mask=key_mask)
        dtype = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):
            q, k, v = (x.to(dtype) for x in (q, k, v))
            return self.attend(q, k, v, causal=causal, key_mask=key_mask)

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

    def weights(self, q: Tensor, k: Tensor, *, causal: bool = False, key_mask: Tensor | None = None) -> Tensor:
        """Return the explicit attention matrix ``A``, ``[..., n, m]``; rows are queries, columns are keys.

        ``key_mask`` marks the keys that are not padding, bool ``[m]`` or with leading axes of the keys: ``[B, m]`` or
        ``[B, H, m]`` for keys ``[B, H, m, d]``. The weights of padding are zero; all other weights are as if the
        padding were absent.
        """
        self._check(q, k, k, causal)
        if key_mask is not None:
            self._check_key_mask(k, key_mask, causal)
            return padding.weights(self.weights, q, k, key_mask)
        return self.variant.weights(at_least_float32(q), at_least_float32(k), self.params, causal=causal).to(q.dtype)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, key_mask: Tensor | None = None
    ) -> Tensor:
        """Return the output ``A values(v)``, ``[..., n, d_v]``, by the variant's own algorithm.

        ``A`` and ``key_mask`` are as in ``weights``.
        """
        self._check(q, k, v, causal)
        if key_mask is not None:
            self._check_key_mask(k, key_mask, causal)
            return padding.attend(self.attend, q, k, v, key_mask)
        if 0 in q.shape[:-2]:  # some algorithms cannot split an empty batch into steps
            return q @ k.mT @ v
        return self.variant.attend(q, k, v, self.params, causal=causal)

    def reference(self, q: Tensor, k: Tensor, *, causal: bool = False) -> Tensor:
        """Return the matrix from which errors are computed, ``[..., n, n]``: the variant's reference, or softmax."""
        self._check(q, k, k, causal=False)
        if self.variant.reference is not None:
            return self.variant.reference(q, k, self.params, causal=causal)
        logits = scores(at_least_float32(q), at_least_float32(k))
        if causal:  # in place, because a page computes all heads of a model, and a copy would double the memory
            logits.masked_fill_(~causal_mask(q.shape[-2], q.device), -math.inf)
        return logits.softmax(-1).to(q.dtype)

    def values(self, v: Tensor) -> Tensor:
        """Return the vectors to which the weights apply, ``[..., n, d_v]``: v itself for nearly all variants."""
        return v if self.variant.values is None else self.variant.values(v, self.params)

    def mask(self, n: int, *, causal: bool = False) -> Tensor | None:
        """Return the allowed pairs, ``bool [n, n]``; None if all pairs are allowed or the pairs depend on the data."""
        self.check_causal(causal)
        return None if self.variant.mask is None else self.variant.mask(n, self.params, causal=causal)

    def cost(self, n: int, d: int, *, causal: bool = False, heads: int = 1, keys: int | None = None) -> Cost:
        """Return the cost of ``attend`` summed over all heads, each with n tokens and head size d.

        If the keys are those of another sequence, ``keys`` is their number and n is the number of queries.
        """
        self.check_causal(causal)
        key_argument = {}
        if keys not in (None, n):
            self.check_cross(causal)
            key_argument = {"keys": keys}
        if self.variant.couples_heads:
            return self.variant.cost(n, d, self.params, causal=causal, heads=heads, **key_argument)
        per_head = self.variant.cost(n, d, self.params, causal=causal, **key_argument)
        return Cost(multiply_adds=heads * per_head.multiply_adds, peak_elements=heads * per_head.peak_elements)

    def anatomy(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> dict[str, Tensor]:
        """Return the named intermediate results of the variant.

        Raises:
            ValueError: if the variant has no anatomy.
        """
        if self.variant.anatomy is None:
            raise ValueError(f"{self.key} has no anatomy")
        return self.variant.anatomy(q, k, v, self.params, causal=causal)

    def with_settings(self, **settings: Value) -> Self:
        """Return the same variant with some settings changed."""
        return dataclasses.replace(self, params=dataclasses.replace(self.params, **cast(dict[str, Any], settings)))

    @property
    def trainable(self) -> tuple[Trainable, ...]:
        """The tensors that models train at these settings."""
        return tuple(each for each in self.variant.trainable if each.when(self.params))

    def with_learned(self, learned: Mapping[str, Tensor]) -> Self:
        """Return the same attention with the tensors of a trained model, by the names of ``trainable``."""
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
        """Raise ``NotCrossError`` if ``causal`` or the variant forbids hidden keys and keys of another sequence."""
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

    def _check_key_mask(self, k: Tensor, key_mask: Tensor, causal: bool) -> None:
        self.check_cross(causal)
        axes = max(1, k.ndim - (2 if self.variant.couples_heads else 1))
        if key_mask.dtype != torch.bool or key_mask.shape not in [(*k.shape[:i], k.shape[-2]) for i in range(axes)]:
            raise ShapeError(
                "The key mask has the shape {mask} and the type {kind}. Use a bool tensor of shape [m]. For keys of "
                "shape [B, H, m, d], the shapes [B, m] and [B, H, m] are also allowed, unless the heads of the "
                "variant depend on each other.",
                mask=tuple(key_mask.shape),
                kind=key_mask.dtype,
            )

    def _check(self, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> None:
        self.check_causal(causal)
        mismatch = q.shape[:-2] != k.shape[:-2] or q.shape[-1:] != k.shape[-1:] or v.shape[:-1] != k.shape[:-1]
        if q.ndim < 2 or k.ndim < 2 or mismatch or 0 in (q.shape[-2], k.shape[-2]):
            raise ShapeError(
                "The shapes of q {q}, k {k} and v {v} do not match. Use [..., n, d], [..., m, d] and [..., m, d_v], "
                "where n and m are at least 1.",
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
