"""Classes to declare the options of a page: one line per option declares its values, widget, help and type.

A page declares its options as the attributes of a class::

    class EntropyOptions(Options, prefix="h_"):
        unit = choice({"nats": N_("nats"), "bits": N_("bits")}, N_("Entropy in"))
        band = switch(True, N_("Band"), help=N_("From the lower to the upper quartile over heads and seeds."))

``EntropyOptions.unit.draw()`` draws the widget. ``EntropyOptions.current().unit`` is the current value, here a ``str``.
``EntropyOptions(unit="bits")`` represents a state in which the other options have their defaults. In links, the name of
an option is the prefix and the attribute's name, here ``h_unit``, or the name given as ``link``.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import streamlit as st

from app.jobs import cached
from app.state import link_fields, url
from app.state.link_fields import Field
from app.words.i18n import _
from attention_core.limits import Limits, current

T = TypeVar("T")
U = TypeVar("U")


class Control(Generic[T]):
    """One option: its allowed values and its widget.

    Attributes:
        name: name of the option in links and of its value in the session state.
        title: label of its widget, an untranslated message.
        help: tooltip of its widget, an untranslated message.
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
            field: returns the ``Field`` that validates the option and reads and writes it in links; called once for
                each profile of limits, because bounds depend on the profile.
            title: label of its widget.
            help: tooltip of its widget.
            link: name in links; by default the prefix and the attribute name.
            widget: Streamlit function that draws it.
            arguments: returns arguments of the widget other than label, key and help.
        """
        self.field, self.title, self.help = field, title, help
        self._link, self._widget, self._arguments = link, widget, arguments

    def set_name(self, name: str, prefix: str) -> None:
        """Set the option's name from the attribute under which a class of options declares it."""
        self.name = self._link or prefix + name

    @overload
    def __get__(self, options: None, owner: object) -> Self: ...

    @overload
    def __get__(self, options: "Options", owner: object) -> T: ...

    def __get__(self, options: "Options | None", owner: object) -> "Self | T":
        """Return the option itself on a class, and its value on an instance."""
        return self if options is None else options.values[self.name]

    def __set__(self, options: "Options", value: T) -> None:
        """Raise an AttributeError, because an instance represents one fixed state."""
        raise AttributeError(f"{self.name} is frozen; set it on its class")

    @property
    def value(self) -> T:
        """The current value, always an allowed one."""
        value: T = url.value(self.name)
        return value

    def __call__(self) -> T:
        """Return the current value."""
        return self.value

    def set(self, value: T) -> None:
        """Change the value. Call this only before the option's widget is drawn, or in a callback."""
        st.session_state[self.name] = value

    def label_of(self, value: T) -> str:
        """Return the name of a value on screen."""
        label: str = self._arguments()["format_func"](value)
        return label

    def restrict_to(self, options: Container[Any]) -> T:
        """Reset the value to its default if it is not among ``options``.

        Return the new value. See ``url.restrict_to``.
        """
        url.restrict_to(**{self.name: options})
        return self.value

    def draw(self, **layout: Any) -> T:  # noqa: ANN401 - arguments of Streamlit's widget
        """Draw the option's widget and return the current value; ``layout`` overrides arguments of the widget."""
        assert self._widget is not None, f"{self.name} has no widget of its own"
        cached.page_lock().yield_turn()
        arguments = {"help": _(self.help) or None, **self._arguments(), **layout}
        self._widget(_(arguments.pop("label", self.title)), key=self.name, **arguments)
        return self.value

    def draw_with_options(
        self,
        options: Sequence[U],
        fallback: U,
        *,
        key: str,
        widget: Callable[..., U] = st.selectbox,
        **layout: Any,  # noqa: ANN401 - arguments of Streamlit's widget
    ) -> U:
        """Draw a widget with the currently available options, which may not include the default, and return its value.

        ``fallback`` is shown while none of the options is chosen.
        """
        cached.page_lock().yield_turn()
        arguments = {"help": _(self.help) or None, **layout}
        return widget(
            _(arguments.pop("label", self.title)),
            options,
            **arguments,
            **url.widget_arguments(self.name, options, fallback, key=key),
        )


class Options:
    """An immutable set of values of the options that a class declares; values that are not given are defaults."""

    controls: ClassVar[dict[str, Control[Any]]] = {}
    _shared: ClassVar[dict[int, type["Options"]]] = {}

    def __init_subclass__(cls, prefix: str = "", shared: int = 0) -> None:
        """Name the options after the class's attributes, and append the options of the base classes in their order.

        Args:
            prefix: prefix of each name in links and in the session state.
            shared: position among the options that every page has; 0 for options that only some pages have.
        """
        if shared:
            Options._shared[shared] = cls
        cls.controls = {name: control for name, control in vars(cls).items() if isinstance(control, Control)}
        for name, control in cls.controls.items():
            control.set_name(name, prefix)
        for base in cls.__bases__:
            cls.controls |= getattr(base, "controls", {}) | cls.controls

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - each value has the type of its control
        """Create a state from values by attribute name.

        Raises:
            TypeError: if an option of that name does not exist.
        """
        if unknown := set(values) - set(self.controls):
            raise TypeError(f"{type(self).__name__} has no option {sorted(unknown)}")
        self.values = {
            control.name: values[name] if name in values else control.field().default
            for name, control in self.controls.items()
        }

    @staticmethod
    def shared() -> dict[str, Field]:
        """Return the fields that every page has: those of all classes declared as ``shared``, in order of position."""
        return dict(item for _, options in sorted(Options._shared.items()) for item in options.fields().items())

    @classmethod
    def current(cls) -> Self:
        """Return the current values in the session."""
        return cls(**{name: control.value for name, control in cls.controls.items()})

    @classmethod
    def fields(cls) -> dict[str, Field]:
        """Return the fields of these options in a link, by name."""
        return dict(_fields(tuple(cls.controls.values()), current()))


@cache
def _fields(controls: tuple[Control[Any], ...], profile: Limits) -> Mapping[str, Field]:
    # The bounds of some fields depend on the current limits. The argument ``profile`` is these limits. It is not used
    # here, but makes them part of the cache key.
    return {control.name: control.field() for control in controls}


def choice(names: Mapping[T, str] | Callable[[], Mapping[T, str]], title: str, **kwargs: Any) -> Control[T]:  # noqa: ANN401
    """Declare an option with a few values side by side, drawn as a segmented control.

    Args:
        names: untranslated names of the values on screen, the default first; or a function that returns translated
            names.
        title: label of the widget.
        kwargs: further arguments of ``Control``; ``default``; ``opening``, the value for an empty address if it is not
            the default; ``layout``, arguments of the widget.
    """
    return _choice_control(names, title, st.segmented_control, {"required": True, "width": "content"}, kwargs)


def selection(names: Mapping[T, str] | Callable[[], Mapping[T, str]], title: str, **kwargs: Any) -> Control[T]:  # noqa: ANN401
    """Declare an option with many values, drawn as a select box; arguments as in ``choice``."""
    return _choice_control(names, title, st.selectbox, {}, kwargs)


def pills(names: Mapping[T, str] | Callable[[], Mapping[T, str]], title: str, **kwargs: Any) -> Control[T]:  # noqa: ANN401
    """Declare an option with several values, drawn as pills that wrap; arguments as in ``choice``."""
    return _choice_control(names, title, st.pills, {"required": True}, kwargs)


def _choice_control(
    names: Mapping[T, str] | Callable[[], Mapping[T, str]],
    title: str,
    widget: Callable[..., Any],
    defaults: Mapping[str, Any],
    kwargs: dict[str, Any],
) -> Control[T]:
    layout, default, opening = (kwargs.pop(name, None) for name in ("layout", "default", "opening"))

    def titles() -> Mapping[T, str]:
        return names() if callable(names) else {word: _(name) for word, name in names.items()}

    def field() -> Field:
        options = list(titles())
        return replace(link_fields.one_of(options[0] if default is None else default, options), opening=opening)

    def arguments() -> Mapping[str, Any]:
        options = titles()
        return {**defaults, "options": list(options), "format_func": options.__getitem__, **(layout or {})}

    return Control(field, title, widget=widget, arguments=arguments, **kwargs)


def multiselect(options: Sequence[T], default: Sequence[T], title: str, **kwargs: Any) -> Control[list[T]]:  # noqa: ANN401
    """Declare an option with any number of selected values. The caller passes ``format_func`` when drawing it."""
    return Control(
        lambda: link_fields.some_of(list(default), options),
        title,
        widget=st.pills,
        arguments=lambda: {"options": options, "selection_mode": "multi", "width": "content"},
        **kwargs,
    )


def stops(options: Sequence[T], default: T, title: str, *, template: str = "{}", **kwargs: Any) -> Control[T]:  # noqa: ANN401
    """Declare an option for one of several values on a slider, shown by the ``str.format`` template ``template``."""
    return Control(
        lambda: link_fields.one_of(default, options),
        title,
        widget=st.select_slider,
        arguments=lambda: {"options": options, "format_func": template.format},
        **kwargs,
    )


def integer(
    default: int,
    low: int,
    high: int | Callable[[], int],
    title: str,
    *,
    widget: Callable[..., int] = st.number_input,
    layout: Mapping[str, Any] | None = None,
    **kwargs: Any,  # noqa: ANN401 - arguments of Control
) -> Control[int]:
    """Declare an option for an integer within bounds, drawn as a number input or, with ``st.slider``, as a slider."""

    def top() -> int:
        return high() if callable(high) else high

    def arguments() -> Mapping[str, Any]:
        bounds = {"min_value": low, "max_value": top()} if widget in (st.number_input, st.slider) else {}
        return {**bounds, **(layout or {})}

    return Control(
        lambda: link_fields.integer(default, low, top()), title, widget=widget, arguments=arguments, **kwargs
    )


int_choice = partial(integer, widget=st.selectbox)
"""Declare an option for an integer in a select box or ``st.select_slider``; the choices are passed to ``draw``."""


def index(high: Callable[[], int], title: str = "", **kwargs: Any) -> Control[int | None]:  # noqa: ANN401
    """Declare an option for a position below a bound (a token, a feature), initially None, without a widget."""
    return Control(lambda: link_fields.integer(None, 0, high() - 1), title, **kwargs)


def switch(default: bool, title: str, *, opening: bool | None = None, **kwargs: Any) -> Control[bool]:  # noqa: ANN401
    """Declare an on/off option; ``opening`` is the value for an empty address if it is not the default."""
    return Control(lambda: link_fields.switch(default, opening), title, widget=st.toggle, **kwargs)


def link_only_option(field: Callable[[], Field], title: str = "", **kwargs: Any) -> Control[Any]:  # noqa: ANN401
    """Declare an option that links carry but that has no standard widget, such as the chosen variants."""
    return Control(field, title, **kwargs)
