"""The dataclasses that describe an attention variant: ``Variant`` and its parts, such as its cost and its paper.

Shape legend of the whole project: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size, ``m``
landmarks, random features or rank, ``C`` size of the vector that a feature map gives for one token. Tensors have shape
``[..., n, d]``. In a matrix ``[..., n, n]``, rows are queries and columns are keys.
"""

import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from torch import Tensor

from attention_core.formatting import N_
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
        columns: what its columns represent; "earlier token" for a matrix that is zero on and above its diagonal.
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
