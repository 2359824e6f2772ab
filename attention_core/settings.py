"""Settings of a variant: their defaults, bounds and help texts, and the checks that every value passes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, Self, dataclass_transform

import numpy as np
from torch import Tensor

from attention_core.errors import Name, Names, SettingError, name_hint
from attention_core.formatting import N_

Value = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of a variant, with what menus, forms, links and documents need to show it."""

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
        """The type of value that the setting takes."""
        if self.choices:
            return "choice"
        if isinstance(self.default, bool):
            return "bool"
        return "int" if isinstance(self.default, int) else "float"

    def check(self, value: Any) -> Value:  # noqa: ANN401 - any value, which this method validates
        """Return the value, converted to the setting's type.

        Raises:
            SettingError: if the value has the wrong type or is out of bounds.
        """
        if isinstance(value, np.generic):  # a number or a word of numpy
            value = value.item()
        if self.kind == "choice":
            if value not in self.choices:
                raise SettingError(
                    "Invalid {name}: {value!r}. Choose one of {choices}.",
                    name=Name(self.name),
                    value=value,
                    choices=Names(self.choices),
                )
            return str(value)
        if self.kind == "bool":
            if not isinstance(value, bool):
                raise SettingError(
                    "Invalid {name}: {value!r}. Choose True or False.", name=Name(self.name), value=value
                )
            return value
        number_type = int if self.kind == "int" else float
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # The bounds are compared first, because neither an infinite number nor a very large one can be converted.
        if not is_number or not self.low <= value <= self.high or value != number_type(value):
            raise SettingError(
                "{name} is {value!r}. Choose {kind} from {low} to {high}.",
                name=Name(self.name),
                value=value,
                kind=N_("a whole number") if number_type is int else N_("a number"),
                low=self.low,
                high=self.high,
            )
        return number_type(value)

    def parse(self, text: str) -> Value:
        """Return the value that a text in a link represents; the inverse of ``str``.

        Raises:
            SettingError: if the text is not a valid value of this setting.
        """
        if self.kind == "bool":
            return self.check({"True": True, "False": False}.get(text, text))
        if self.kind == "choice":
            return self.check(text)
        try:
            return self.check(int(text) if self.kind == "int" else float(text))
        except (ValueError, OverflowError):
            return self.check(text[:40])


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
) -> Any:  # noqa: ANN401 - a dataclass field, declared with the type of its value
    """Declare one setting of a variant, as a dataclass field.

    Args:
        default: the default value; its type is the setting's type.
        help: one line in plain language.
        low: smallest value; a number needs both bounds.
        high: largest value.
        step: distance between neighbouring values on a slider; 1 for whole numbers.
        scale: ``"log"`` if values matter by ratio, not by difference.
        choices: the allowed words of a setting that takes a word.
        budget: whether a larger value lowers the approximation error and raises the cost.

    Raises:
        TypeError: if a number has no bounds, or the default word is not among the choices.

    Example:
        >>> from attention_core import Params, param
        >>> class LocalParams(Params):
        ...     window: int = param(16, low=0, high=4096, help="Tokens visible on each side.")
        >>> LocalParams.build(window=8)
        LocalParams(window=8)
    """
    is_number = not isinstance(default, (bool, str))
    if is_number and (low is None or high is None):
        raise TypeError("a setting whose value is a number needs the bounds low and high")
    if isinstance(default, str) and default not in choices:
        raise TypeError("a setting whose value is a word needs a list of choices that includes its default")
    metadata = {
        "low": low,
        "high": high,
        "step": 1 if step is None and isinstance(default, int) else step,
        "scale": scale,
        "choices": choices,
        "help": help,
        "budget": budget,
    }
    return field(default=default, metadata={"setting": metadata})


@dataclass(frozen=True, kw_only=True)
class Trainable:
    """A tensor that a model learns; without training, the variant computes it from a setting or by a rule instead.

    The variant's functions read it from ``Params.learned``. A model starts its training with zeros.

    Attributes:
        name: its name in ``Params.learned``.
        title: a plural noun that describes it, such as "forget gates".
        per: ``"token"``: a linear map gives one number per token and head, ``[B, H, n, 1]``. ``"channel"``: a linear
            map gives d numbers, ``[B, H, n, d]``. ``"head"``: a parameter per head, ``[H, 1, 1]``. ``"layer"``: a
            parameter that all heads share.
        shape: for ``"layer"``, ``(p, tokens, d) -> shape`` for settings p, at most ``tokens`` tokens and head size d.
        over_positions: whether the shape depends on ``tokens``, so that longer sequences are not possible.
        when: ``(p) -> bool``, whether it is trained at these settings.
    """

    name: str
    title: str
    per: Literal["token", "channel", "head", "layer"]
    shape: Callable[[Any, int, int], tuple[int, ...]] | None = None
    over_positions: bool = False
    when: Callable[[Any], bool] = lambda p: True


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True, eq=False)
class Params:
    """The base class of a variant's settings. Every subclass becomes a frozen dataclass, with ``param`` fields.

    Attributes:
        learned: the values of the variant's ``trainable`` tensors in a layer of a trained model, by name; empty without
            training. Settings are equal only if they share the same tensors, because training changes their values.

    Example:
        >>> import attention_core as ac
        >>> [setting.name for setting in ac.variant("local").params.settings()]
        ['window', 'columns']
    """

    learned: Mapping[str, Tensor] = field(default_factory=dict, repr=False)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, eq=False)(cls)

    def __post_init__(self) -> None:
        for setting in self.settings():
            # The check also converts values, for example 4.0 to 4. In a frozen dataclass, only ``object.__setattr__``
            # can store the result.
            object.__setattr__(self, setting.name, setting.check(getattr(self, setting.name)))

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        """Return the values and the identities of the learned tensors, by which settings are compared."""
        settings = tuple(getattr(self, setting.name) for setting in self.settings())
        return settings, frozenset((name, id(tensor)) for name, tensor in self.learned.items())

    @classmethod
    @cache
    def settings(cls) -> tuple[Setting, ...]:
        """Return the settings in the order of their declaration."""
        return tuple(
            Setting(name=f.name, default=f.default, **f.metadata["setting"])
            for f in fields(cls)
            if f.default is not MISSING
        )

    @classmethod
    def build(cls, **values: Any) -> Self:  # noqa: ANN401 - Setting.check validates each value
        """Return an instance with these settings, the others at their defaults.

        Raises:
            SettingError: for an unknown name (the message names the most similar one) or a value out of bounds.
        """
        cls._check_names(values)
        return cls(**values)

    def with_values(self, **values: Any) -> Self:  # noqa: ANN401 - Setting.check validates each value
        """Return the same settings with some values changed; errors as in ``build``."""
        self._check_names(values)
        return replace(self, **values)

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        known = {setting.name for setting in cls.settings()}
        for name in names:
            if name not in known:
                raise SettingError("There is no setting {name!r}. {hint}", name=name, hint=name_hint(name, known))

    @classmethod
    def from_text(cls, values: Mapping[str, str]) -> Self:
        """Return an instance from the texts in a link, by setting name; the inverse of ``changed``."""
        by_name = {setting.name: setting for setting in cls.settings()}
        return cls.build(**{name: by_name[name].parse(t) if name in by_name else t for name, t in values.items()})

    def learned_rows(self, name: str, first: int, count: int) -> Tensor | None:
        """Return a learned tensor ``[..., n, *]`` for ``count`` tokens from ``first`` on; None if it is not learned."""
        learned = self.learned.get(name)
        return None if learned is None else learned[..., first : first + count, :]

    def changed(self) -> dict[str, str]:
        """Return, by name, the settings that differ from their defaults, as texts for a link."""
        return {s.name: str(getattr(self, s.name)) for s in self.settings() if getattr(self, s.name) != s.default}
