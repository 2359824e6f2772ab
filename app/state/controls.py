"""Options declared once: a link's field, its check, its widget, its help and its typed value follow from one line.

A page's options are a class of these, as ``Params`` are for a variant::

    class EntropyOptions(Options, prefix="h_"):
        unit = choice({"nats": N_("nats"), "bits": N_("bits")}, N_("Entropy in"))
        band = switch(True, N_("Band"), help=N_("From the lower to the upper quartile over heads and seeds."))

``EntropyOptions.unit.draw()`` draws the widget; ``EntropyOptions.now().unit`` is the value, here of type ``str``, and
``EntropyOptions(unit="bits")`` stands for a state in which the other options have their defaults. An option travels in
links under its name behind the prefix, ``h_unit``, or under the one it gives as ``link``.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import streamlit as st

from app.jobs import cached
from app.state import url
from app.state.url import Field
from app.words.i18n import _
from attention_core.limits import Limits, current

T = TypeVar("T")
U = TypeVar("U")


class Control(Generic[T]):
    """One option: what it may be, and how it is asked for.

    Attributes:
        name: in links, and of its value in the session.
        title: of its widget, to be translated.
        help: likewise.
    """

    name: str

    def __init__(
        self,
        field: Callable[[], Field],
        title: str = "",
        *,
        help: str = "",
        link: str = "",
        widget: Callable[..., T] | None = None,
        arguments: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """Declare an option.

        Args:
            field: its check and its words in links; asked for once for each profile, on which bounds depend.
            title: of its widget.
            help: beside its widget.
            link: its name in links where that is not its own behind the prefix.
            widget: draws it.
            arguments: what the widget is given beside title, key and help.
        """
        self.field, self.title, self.help = field, title, help
        self._link, self._widget, self._arguments = link, widget, arguments

    def named(self, name: str, prefix: str) -> None:
        """Take the name under which a class of options declares it."""
        self.name = self._link or prefix + name

    @overload
    def __get__(self, options: None, owner: object) -> Self: ...

    @overload
    def __get__(self, options: "Options", owner: object) -> T: ...

    def __get__(self, options: "Options | None", owner: object) -> "Self | T":
        """The option itself of a class, its value of an instance."""
        return self if options is None else options.values[self.name]

    def __set__(self, options: "Options", value: T) -> None:
        """Refuse: an instance stands for one state."""
        raise AttributeError(f"{self.name} is frozen; set it on its class")

    @property
    def value(self) -> T:
        """Its value now, one of those there are."""
        found: T = url.value(self.name)
        return found

    def __call__(self) -> T:
        """Its value now."""
        return self.value

    def set(self, value: T) -> None:
        """Change its value; before its widget is drawn, or in a callback."""
        st.session_state[self.name] = value

    def called(self, value: T) -> str:
        """What one of its values is called on screen."""
        name: str = self._arguments()["format_func"](value)
        return name

    def fit(self, options: Container[Any]) -> T:
        """Bring it back to its default where what is on screen does not have its value; one from a link is refused."""
        url.fit(**{self.name: options})
        return self.value

    def draw(self, **layout: Any) -> T:  # noqa: ANN401 - streamlit's own
        """Draw its widget.

        Args:
            layout: of the widget, over what was declared.

        Returns:
            Its value.
        """
        assert self._widget is not None, f"{self.name} has no widget of its own"
        cached.drawing().give_way()
        told = {"help": _(self.help) or None, **self._arguments(), **layout}
        self._widget(_(told.pop("label", self.title)), key=self.name, **told)
        return self.value

    def draw_among(
        self,
        options: Sequence[U],
        otherwise: U,
        *,
        key: str,
        widget: Callable[..., U] = st.selectbox,
        **layout: Any,  # noqa: ANN401 - streamlit's own
    ) -> U:
        """Draw it among the options that there are just now, which need not hold its default.

        Args:
            options: what can be chosen.
            otherwise: the one shown while none of them is.
            key: the widget's own key.
            widget: draws it.
            layout: of the widget.

        Returns:
            The one shown.
        """
        cached.drawing().give_way()
        told = {"help": _(self.help) or None, **layout}
        return widget(
            _(told.pop("label", self.title)), options, **told, **url.mirror(self.name, options, otherwise, key=key)
        )


class Options:
    """Values of the options that a class declares, frozen; what is not given has its default."""

    controls: ClassVar[dict[str, Control[Any]]] = {}
    _shared: ClassVar[dict[int, type["Options"]]] = {}

    def __init_subclass__(cls, prefix: str = "", shared: int = 0) -> None:
        """Name the options after the class's attributes; the bases' follow in the order they are named in.

        Args:
            prefix: before each name, in links and in the session.
            shared: the place among the options that every page has; 0 for options that only some pages have.
        """
        if shared:
            Options._shared[shared] = cls
        cls.controls = {name: control for name, control in vars(cls).items() if isinstance(control, Control)}
        for name, control in cls.controls.items():
            control.named(name, prefix)
        for base in cls.__bases__:
            cls.controls |= getattr(base, "controls", {}) | cls.controls

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - each of its control's type
        """Take values by the options' names.

        Raises:
            TypeError: if there is no option of that name.
        """
        if unknown := set(values) - set(self.controls):
            raise TypeError(f"{type(self).__name__} has no option {sorted(unknown)}")
        self.values = {
            control.name: values[name] if name in values else control.field().default
            for name, control in self.controls.items()
        }

    @staticmethod
    def shared() -> dict[str, Field]:
        """The fields that every page has: those of all classes declared as ``shared``, by their places."""
        return {name: kind for _, options in sorted(Options._shared.items()) for name, kind in options.fields().items()}

    @classmethod
    def now(cls) -> Self:
        """The values as they stand in the session."""
        return cls(**{name: control.value for name, control in cls.controls.items()})

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """What a link carries of them."""
        return dict(_fields(tuple(cls.controls.values()), current()))


@cache
def _fields(controls: tuple[Control[Any], ...], profile: Limits) -> Mapping[str, Field]:  # bounds depend on that alone
    return {control.name: control.field() for control in controls}


def choice(names: Mapping[T, str] | Callable[[], Mapping[T, str]], title: str, **told: Any) -> Control[T]:  # noqa: ANN401
    """One of a few, side by side.

    Args:
        names: what each is called on screen, to be translated, the default first; or what returns them, translated.
        title: of the widget.
        told: further arguments of ``Control``; ``default``; ``opening``, what an empty address stands for where that is
            another one; ``layout`` of the widget.
    """
    return _listed(names, title, st.segmented_control, {"required": True, "width": "content"}, told)


def selection(names: Mapping[T, str] | Callable[[], Mapping[T, str]], title: str, **told: Any) -> Control[T]:  # noqa: ANN401
    """One of many, in a list that opens; arguments as of ``choice``."""
    return _listed(names, title, st.selectbox, {}, told)


def pills(names: Mapping[T, str] | Callable[[], Mapping[T, str]], title: str, **told: Any) -> Control[T]:  # noqa: ANN401
    """One of some, in rows that wrap; arguments as of ``choice``."""
    return _listed(names, title, st.pills, {"required": True}, told)


def _listed(
    names: Mapping[T, str] | Callable[[], Mapping[T, str]],
    title: str,
    widget: Callable[..., Any],
    usual: Mapping[str, Any],
    told: dict[str, Any],
) -> Control[T]:
    layout, default, opening = (told.pop(name, None) for name in ("layout", "default", "opening"))

    def titles() -> Mapping[T, str]:
        return names() if callable(names) else {word: _(name) for word, name in names.items()}

    def field() -> Field:
        known = list(titles())
        return replace(url.one_of(known[0] if default is None else default, known), opening=opening)

    def arguments() -> Mapping[str, Any]:
        known = titles()
        return {**usual, "options": list(known), "format_func": known.__getitem__, **(layout or {})}

    return Control(field, title, widget=widget, arguments=arguments, **told)


def several(options: Sequence[T], default: Sequence[T], title: str, **told: Any) -> Control[list[T]]:  # noqa: ANN401
    """Any number of some; whoever draws them gives their names as ``format_func``."""
    return Control(
        lambda: url.some_of(list(default), options),
        title,
        widget=st.pills,
        arguments=lambda: {"options": options, "selection_mode": "multi", "width": "content"},
        **told,
    )


def stops(options: Sequence[T], default: T, title: str, *, form: str = "{}", **told: Any) -> Control[T]:  # noqa: ANN401
    """One of some numbers on a slider, written in a ``str.format`` form."""
    return Control(
        lambda: url.one_of(default, options),
        title,
        widget=st.select_slider,
        arguments=lambda: {"options": options, "format_func": form.format},
        **told,
    )


def whole(
    default: int,
    low: int,
    high: int | Callable[[], int],
    title: str,
    *,
    widget: Callable[..., int] = st.number_input,
    layout: Mapping[str, Any] | None = None,
    **told: Any,  # noqa: ANN401 - arguments of Control
) -> Control[int]:
    """A whole number within bounds, typed or, with ``st.slider``, drawn."""
    return Control(
        lambda: url.whole(default, low, _top(high)),
        title,
        widget=widget,
        arguments=lambda: {"min_value": low, "max_value": _top(high), **(layout or {})},
        **told,
    )


def _top(high: int | Callable[[], int]) -> int:
    return high() if callable(high) else high


def listed_whole(
    default: int,
    low: int,
    high: int | Callable[[], int],
    title: str,
    *,
    widget: Callable[..., int] = st.selectbox,
    layout: Mapping[str, Any] | None = None,
    **told: Any,  # noqa: ANN401 - arguments of Control
) -> Control[int]:
    """A whole number in a list or, with ``st.select_slider``, on a line; whoever draws it says which there are."""
    return Control(
        lambda: url.whole(default, low, _top(high)), title, widget=widget, arguments=lambda: layout or {}, **told
    )


def place(high: Callable[[], int], title: str = "", **told: Any) -> Control[int | None]:  # noqa: ANN401
    """A place among so many (a token, a feature), none at first; whoever draws it knows which there are."""
    return Control(lambda: url.whole(None, 0, high() - 1), title, **told)


def switch(default: bool, title: str, *, opening: bool | None = None, **told: Any) -> Control[bool]:  # noqa: ANN401
    """On or off; what an empty address stands for may be another than what an address leaves out."""
    return Control(lambda: url.switch(default, opening), title, widget=st.toggle, **told)


def kept(field: Callable[[], Field], title: str = "", **told: Any) -> Control[Any]:  # noqa: ANN401
    """What a link carries and no single widget asks for: variants, a stack, what a click chose."""
    return Control(field, title, **told)
