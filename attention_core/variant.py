"""The one abstraction: an attention variant is a frozen record of plain functions with typed settings.

Shape legend, fixed for the whole project: ``B`` batch, ``H`` heads, ``n`` tokens, ``d`` head size, ``d_v`` value size,
``m`` landmarks, features or rank, ``C`` feature-map size. One layout: ``[..., n, d]``, rows are queries, columns keys.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, Self

from torch import Tensor

from attention_core.errors import NotCausalError, SettingError, ShapeError
from attention_core.suggest import nearest

Value = bool | int | float | str
Family = Literal["dense", "sparse", "kernel", "low_rank", "mixed"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One knob of a variant, as menus, forms, links and documents show it."""

    name: str
    default: Value
    low: float | None
    high: float | None
    step: float | None
    scale: Literal["linear", "log"]
    choices: tuple[str, ...]
    help: str
    budget: bool

    @property
    def kind(self) -> Literal["bool", "int", "float", "choice"]:
        """What sort of value the setting takes."""
        if self.choices:
            return "choice"
        if isinstance(self.default, bool):
            return "bool"
        return "int" if isinstance(self.default, int) else "float"

    def check(self, value: Any) -> Value:  # noqa: ANN401 - it is what a caller gave, to be judged here
        """Return the value in the setting's own type.

        Raises:
            SettingError: if the type is wrong or the value lies out of bounds.
        """
        if self.kind == "choice":
            if value not in self.choices:
                raise SettingError(
                    "{name} is {value!r}; choose one of {choices}.",
                    name=self.name,
                    value=value,
                    choices=", ".join(self.choices),
                )
            return str(value)
        if self.kind == "bool":
            if not isinstance(value, bool):
                raise SettingError("{name} is {value!r}; give True or False.", name=self.name, value=value)
            return value
        wanted = int if self.kind == "int" else float
        real = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not real or value != wanted(value):
            raise SettingError(
                "{name} is {value!r}; give {kind} from {low} to {high}.",
                name=self.name,
                value=value,
                kind="a whole number" if wanted is int else "a number",
                low=self.low,
                high=self.high,
            )
        if not (self.low <= value <= self.high):
            raise SettingError(
                "{name} is {value}; it must lie between {low} and {high}.",
                name=self.name,
                value=value,
                low=self.low,
                high=self.high,
            )
        return wanted(value)

    def parse(self, text: str) -> Value:
        """Read a value from a link, the inverse of ``str``.

        Raises:
            SettingError: if the text is no value of this setting.
        """
        if self.kind == "bool":
            return self.check({"True": True, "False": False}.get(text, text))
        try:
            return self.check(text if self.kind == "choice" else int(text) if self.kind == "int" else float(text))
        except (ValueError, OverflowError):
            raise SettingError(
                "{name} is {value!r}; give a number from {low} to {high}.",
                name=self.name,
                value=text[:40],
                low=self.low,
                high=self.high,
            ) from None


def param(
    default: Value,
    *,
    help: str,
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    scale: Literal["linear", "log"] = "linear",
    choices: tuple[str, ...] = (),
    budget: bool = False,
) -> Any:  # noqa: ANN401 - a dataclass field stands where its value's type is declared
    """Declare one setting of a variant.

    Args:
        default: its default; its type is the setting's type.
        help: one line in plain language.
        low: smallest value; numbers need both bounds.
        high: largest value.
        step: distance between neighbouring values on a slider; 1 for whole numbers.
        scale: ``"log"`` where doubling matters more than adding.
        choices: the allowed words, for a setting that is one of a few.
        budget: whether this setting buys fidelity with cost.
    """
    number = not isinstance(default, (bool, str))
    if number and (low is None or high is None):
        raise TypeError("a number needs low and high")
    if isinstance(default, str) and default not in choices:
        raise TypeError("a word needs choices that contain its default")
    meta = {
        "low": low,
        "high": high,
        "step": 1 if step is None and isinstance(default, int) else step,
        "scale": scale,
        "choices": choices,
        "help": help,
        "budget": budget,
    }
    return field(default=default, metadata={"setting": meta})


@dataclass(frozen=True, kw_only=True)
class Params:
    """Base of every variant's settings: a frozen dataclass whose fields are made by ``param``."""

    def __post_init__(self) -> None:
        for setting in self.settings():
            # A frozen dataclass is written once, here: 4.0 for a whole number becomes 4.
            object.__setattr__(self, setting.name, setting.check(getattr(self, setting.name)))

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """The settings in the order they were declared."""
        return tuple(
            Setting(name=f.name, default=f.default, **f.metadata["setting"])
            for f in fields(cls)
            if f.default is not MISSING
        )

    @classmethod
    def build(cls, **values: Any) -> Self:  # noqa: ANN401 - judged by Setting.check
        """Make the settings from names and values.

        Raises:
            SettingError: for an unknown name (naming the nearest) or a value out of bounds.
        """
        known = {setting.name for setting in cls.settings()}
        for name in values:
            if name not in known:
                raise SettingError("There is no setting {name!r} here. {hint}", name=name, hint=nearest(name, known))
        return cls(**values)

    @classmethod
    def from_text(cls, values: Mapping[str, str]) -> Self:
        """Make the settings from a link's words, the inverse of ``changed``."""
        by_name = {setting.name: setting for setting in cls.settings()}
        return cls.build(**{name: by_name[name].parse(t) if name in by_name else t for name, t in values.items()})

    def changed(self) -> dict[str, str]:
        """The settings that differ from their defaults, as words for a link."""
        return {s.name: str(getattr(self, s.name)) for s in self.settings() if getattr(self, s.name) != s.default}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What ``attend`` costs for one head.

    Attributes:
        multiply_adds: multiply-adds in matrix products, as torch's flop counter counts them (two flops each).
        peak_elements: most numbers alive at once beyond q, k and v, the output included.
    """

    multiply_adds: int
    peak_elements: int


@dataclass(frozen=True)
class Paper:
    """Where a variant comes from."""

    title: str
    year: int
    url: str


@dataclass(frozen=True)
class Decoder:
    """The step interface of a variant that is a recurrent network.

    ``init_state(q, v, p)`` makes the empty state from one token's shapes; ``step(state, q, k, v, p)`` takes one token,
    ``[..., d]`` and ``[..., d_v]``, and returns its output and the next state, in constant time and memory.
    """

    init_state: Callable[..., Any]
    step: Callable[..., tuple[Tensor, Any]]


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
        weights: ``(q, k, p, *, causal) -> [..., n, n]``, the explicit matrix, for looking at.
        attend: ``(q, k, v, p, *, causal) -> [..., n, d_v]``, the algorithm one would run; never n x n.
        cost: ``(n, d, p, *, causal) -> Cost`` for one head with ``d_v = d``.
        source: paper or article.
        mask: ``(n, p, *, causal) -> bool [n, n]``, where the pattern is fixed in advance; true = may look.
        pattern: ``(q, k, p, *, causal) -> bool [..., n, n]``, where the pattern is found from the data.
        primitives: ``(q, k, p, *, causal) -> {name: bool [n, n] or [..., n, n]}``, what the mask or pattern is made of;
            its union is that mask or pattern, and the first that allows a pair gives it its colour.
        pairs: how many pairs may look when not causal, to leading order, in plain symbols; empty where not simple.
        approximates: what it stands in for (``"softmax"``), or None where it replaces it.
        reference: ``(q, k, p, *, causal) -> [..., n, n]``, the matrix its errors are taken against, where that is not
            softmax of the scaled ``q kᵀ``.
        causal_reason: why it cannot be causal; None where it can.
        rows_sum_to_one: every row sums to one (a row that may look nowhere is zero).
        signed: entries may be negative.
        random: it draws random numbers, from its ``seed`` alone.
        decoder: the step interface, where it has one.
        anatomy: ``(q, k, v, p, *, causal) -> dict of named intermediates``, where it has an inside worth seeing.
        note: what a reader of its numbers must know, in one sentence.
        couples_heads: heads (axis -3) decide together; every other leading axis is independent all the same.
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
    mask: Callable[..., Tensor] | None = None
    pattern: Callable[..., Tensor] | None = None
    primitives: Callable[..., dict[str, Tensor]] | None = None
    pairs: str = ""
    approximates: Literal["softmax"] | None = None
    reference: Callable[..., Tensor] | None = None
    causal_reason: str | None = None
    rows_sum_to_one: bool = True
    signed: bool = False
    random: bool = False
    decoder: Decoder | None = None
    anatomy: Callable[..., dict[str, Tensor]] | None = None
    note: str = ""
    couples_heads: bool = False

    @property
    def budget(self) -> Setting | None:
        """The setting that buys fidelity with cost, if there is one."""
        return next((s for s in self.params.settings() if s.budget), None)

    def source_code(self) -> str:
        """The text of the variant's own file."""
        module = inspect.getmodule(self.attend)
        return inspect.getsource(module) if module else ""


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
        """The variant and its changed settings as one word, ``nystrom~landmarks~16``; ``registry.from_word`` reads it."""
        return "~".join([self.key, *(part for pair in self.params.changed().items() for part in pair)])

    def weights(self, q: Tensor, k: Tensor, *, causal: bool = False) -> Tensor:
        """The explicit matrix ``A``, ``[..., n, n]``, rows queries, columns keys.

        Raises:
            NotCausalError: if causal is asked of a variant that cannot be.
            ShapeError: if q and k do not fit together.
        """
        self._check(q, k, k, causal)
        return self.variant.weights(q, k, self.params, causal=causal)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
        """The output ``A v``, ``[..., n, d_v]``, by the variant's own algorithm.

        Raises:
            NotCausalError: if causal is asked of a variant that cannot be.
            ShapeError: if q, k and v do not fit together.
        """
        self._check(q, k, v, causal)
        return self.variant.attend(q, k, v, self.params, causal=causal)

    def mask(self, n: int, *, causal: bool = False) -> Tensor | None:
        """The pairs that may look at each other, ``bool [n, n]``, or None where every pair may or the data decides."""
        self._check_causal(causal)
        return None if self.variant.mask is None else self.variant.mask(n, self.params, causal=causal)

    def cost(self, n: int, d: int, *, causal: bool = False) -> Cost:
        """What ``attend`` costs for one head of n tokens and size d."""
        self._check_causal(causal)
        return self.variant.cost(n, d, self.params, causal=causal)

    def snippet(self) -> str:
        """Five runnable lines that make this very attention."""
        values = "".join(f", {f.name}={getattr(self.params, f.name)!r}" for f in dataclasses.fields(self.params))
        return (
            "import torch\nimport attention_core as ac\n\n"
            "q, k, v = torch.randn(3, 4, 128, 32)  # [heads, tokens, size]\n"
            f'attention = ac.get("{self.key}"{values})\n'
            "print(attention.attend(q, k, v).shape, attention.weights(q, k).shape)\n"
        )

    def _check_causal(self, causal: bool) -> None:
        if causal and self.variant.causal_reason is not None:
            raise NotCausalError(
                "{title} cannot be causal: {reason}", title=self.title, reason=self.variant.causal_reason
            )

    def _check(self, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> None:
        self._check_causal(causal)
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
