"""State <-> address bar: the names, defaults and validation of everything a link carries.

A value lives in ``st.session_state`` under its name; the address holds what differs from the defaults, so the same link
shows the same picture anywhere. Nothing in an address is trusted: a value that does not pass its check falls back to
its default and is named in a notice. What can be checked of a word alone is checked as it is read (``Field.read``);
what depends on the input, or on anything else on screen, once that is known (``fit``).
"""

import binascii
import re
import zlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

import attention_core as ac
from app.words.i18n import _, literal, paragraph

LINK = "link"
NAMED = 12
"""Refused values that a notice names; of more it tells the number."""
WORD = 30
"""Characters of a link's word that a notice repeats."""
IN_FLIGHT = 32
"""Addresses remembered that the browser has not shown yet: so many moves ahead of the answers is nobody."""


@dataclass
class Link:
    """The address during one run.

    Attributes:
        given: what a new link says, by name; None where the address is our own.
        written: what the last run put into the address.
        page: the page it stands on, by Streamlit's name for it.
        overtaken: what runs before the last put there that the browser may show yet, oldest first: a visitor who does
            not wait makes the next move from an address that is no longer the last.
        valid: the last value of each name that was one of those there are.
        opened: what an empty address stood for, by name: each page opens on its own until a visitor changes them.
        unchecked: the words of values that came from a link and may yet turn out not to fit what is on screen.
        fields: what this run has asked for.
        refused: the words of values that did not fit, by name.
        told: what the notice named, by name: what did not fit, and what the page does not know.
        stays: whether the next run is nobody's move, after which the notice still stands.
        place: where on the page the notice goes.
        arriving: whether this is a session's first run, which leaves the address as it came: it does stand for what is
            shown, and to put it right now would lead "back" to it again.
        unread: what a new link says while no run has ended since. Streamlit interrupts a run when the browser sends
            the next request, and a run that was interrupted early has read only some of the link's values.
        read: the names of the fields that have been read from it.
    """

    given: dict[str, list[str]] | None
    written: dict[str, list[str]]
    page: str = ""
    overtaken: list[dict[str, list[str]]] = field(default_factory=list)
    valid: dict[str, Any] = field(default_factory=dict)
    opened: dict[str, Any] = field(default_factory=dict)
    unchecked: dict[str, list[str]] = field(default_factory=dict)
    fields: dict[str, "Field"] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)
    told: dict[str, list[str]] = field(default_factory=dict)
    stays: bool = False
    place: DeltaGenerator | None = None
    arriving: bool = False
    unread: dict[str, list[str]] | None = None
    read: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Field:
    """One value that a link carries.

    Attributes:
        default: the value that an address leaves out.
        read: from an address's words to the value; raises where they do not fit.
        write: the way back.
        options: the values there are beside the default; None where they cannot be counted.
        accepts: whether a value is one of those, where they cannot be counted.
        takes: says what it takes, for a value beyond its bounds.
        opening: the value that an address stands for which says nothing at all: what a first visit begins with may
            change, what an address that was made once stands for may not. None where it is the default.
        around: whether it is about what stands around a picture: an address of nothing else opens what an empty one
            does.
    """

    default: Any
    read: Callable[[list[str]], Any]
    write: Callable[[Any], list[str]] = lambda value: [str(value)]
    options: Sequence[Any] | None = None
    accepts: Callable[[Any], bool] = lambda value: True
    takes: Callable[[], str] | None = None
    opening: Any = None
    around: bool = False

    def opens(self) -> Any:  # noqa: ANN401 - of the value's type
        """What an empty address stands for."""
        return self.default if self.opening is None else self.opening

    def holds(self, value: object) -> bool:
        """Whether a value is one of those there are."""
        if self.options is None:
            return self.accepts(value)
        return value == self.default or value in self.options

    def passed(self, words: list[str]) -> bool:
        """Whether these words go beyond what it takes, whatever is on screen."""
        try:
            self.read(words)
        except ac.LabError:  # of a variant's own setting
            return False
        except UNREADABLE:
            return True
        return False


class CutError(ValueError):
    """A list in a link of which only a part can be shown."""

    def __init__(self, kept: object) -> None:
        super().__init__()
        self.kept = kept


UNREADABLE = (ValueError, KeyError, ac.LabError, binascii.Error, zlib.error, OverflowError)
"""What a field raises where an address's words do not fit."""


def only(given: list[str]) -> str:
    """The word of a value that has just one."""
    [word] = given  # none or several raise ValueError
    return word


def one_of(default: Any, options: Iterable[Any]) -> Field:  # noqa: ANN401 - of any type that str tells apart
    """One of some values."""
    known = {str(option): option for option in options}
    return Field(
        default,
        lambda given: known[only(given)],
        options=tuple(known.values()),
        takes=(lambda: ", ".join(known)) if len(known) <= NAMED else None,
    )


def some_of(default: list[Any], options: Sequence[Any]) -> Field:
    """Any number of some values, in their order; ``none`` stands for none of them."""
    known = {str(option): option for option in options}

    def read(given: list[str]) -> list[Any]:
        if len({*given}) < len(given) or ("none" in given and len(given) > 1):
            raise ValueError
        chosen = [] if given == ["none"] else [known[word] for word in given]
        return sorted(chosen, key=options.index)

    def write(chosen: list[Any]) -> list[str]:
        return [str(option) for option in sorted(chosen, key=options.index)] or ["none"]

    return Field(
        default, read, write, accepts=lambda chosen: isinstance(chosen, list) and all(map(options.__contains__, chosen))
    )


def choice(*words: str) -> Field:
    """One of some words, the first being the default."""
    return one_of(words[0], words)


def whole(default: int | None, low: int, high: int) -> Field:
    """A whole number within bounds; a default of None allows none."""
    allowed = range(low, high + 1)

    def read(given: list[str]) -> int:
        value = int(only(given))
        if value not in allowed or str(value) != only(given):  # int reads " 3" and "\N{ARABIC-INDIC DIGIT THREE}" too
            raise ValueError
        return value

    return Field(default, read, options=allowed, takes=lambda: _("{low:,} to {high:,}", low=low, high=high))


def number(default: float, low: float, high: float) -> Field:
    """A number within bounds."""

    def read(given: list[str]) -> float:
        if not re.fullmatch(r"[-+.\de]+", only(given), re.ASCII):
            raise ValueError
        value = float(only(given))
        if not low <= value <= high:
            raise ValueError
        return value

    return Field(
        default,
        read,
        accepts=lambda value: isinstance(value, int | float) and low <= value <= high,
        takes=lambda: _("{low:g} to {high:g}", low=low, high=high),
    )


def switch(default: bool, opening: bool | None = None) -> Field:
    """On or off."""
    return Field(
        default,
        lambda given: {"1": True, "0": False}[only(given)],
        lambda on: ["1" if on else "0"],
        (True, False),
        opening=opening,
    )


def open_link() -> None:
    """Look at the address, called once at the top of a run: one that was not written by an earlier run is a new link.

    A page change by the menu clears the address; the state then stays, and is written again. A step back or forward in
    the browser asks for what its address says, even if that is nothing.
    """
    state, query, context = st.session_state, st.query_params, get_script_run_ctx()
    given = {name: query.get_all(name) for name in query}
    last: Link | None = state.get(LINK)
    stepped, page = getattr(context, "is_history_navigation", False), getattr(context, "page_script_hash", "")
    if last is None or stepped or (given and not _ours(given, page, last)):
        state[LINK] = Link(given, given, page, arriving=last is None, unread=given)
        return
    overtaken = last.overtaken if page == last.page else []
    if given == last.written:
        overtaken = []
    elif given in overtaken:
        overtaken = overtaken[overtaken.index(given) :]
    told = last.told if last.stays else {}
    state[LINK] = Link(
        None,
        last.written,
        page,
        overtaken,
        last.valid,
        last.opened,
        last.unchecked,
        refused={**told},
        unread=last.unread,
        read=last.read,
    )


def stay() -> None:
    """Let a notice stand through the next run, which no visitor asked for: the browser has told something of itself."""
    if LINK in st.session_state:
        st.session_state[LINK].stays = True


def _ours(given: dict[str, list[str]], page: str, last: Link) -> bool:
    return given == last.written or (page == last.page and given in last.overtaken)


def use(fields: Mapping[str, Field]) -> None:
    """Put these values into the session: from a new link, else as they were, else what an empty address stands for.

    A page calls this at its top for what is its own; the names are those of its widgets' keys.
    """
    state = st.session_state
    link: Link = state[LINK]
    link.fields.update(fields)
    unread = {}
    if link.unread is not None:
        unread = {name: kind for name, kind in fields.items() if link.given is not None or name not in link.read}
        _read_values(unread, link.unread, link)
    for name, kind in fields.items():
        if name in unread:
            continue
        if name not in state or (name in link.opened and _value(name, link) == link.opened[name]):
            state[name] = link.opened[name] = kind.opens()
        else:
            # A widget that is not drawn in a run loses its state; writing it keeps it.
            state[name] = _value(name, link)


def _read_values(fields: Mapping[str, Field], given: Mapping[str, list[str]], link: Link) -> None:
    """Put into the session what a new link says about these values."""
    state = st.session_state
    values, refused = read_link(given, fields)
    if not [name for name in given if name not in link.fields or not link.fields[name].around]:
        link.opened |= {name: kind.opens() for name, kind in fields.items() if name not in given}
        values |= {name: link.opened[name] for name in fields if name not in given}
    for name in set(values) - set(given):
        if name in state and not fields[name].write(value(name)):
            del values[name]  # what is too long for an address is not gone because an address does not hold it
    state.update(values)
    link.read |= {*fields}
    link.valid |= values
    link.refused |= {name: given[name] for name in refused}
    link.unchecked |= {name: given[name] for name in fields if name in given and name not in refused}


def value(name: str) -> Any:  # noqa: ANN401 - any field's
    """A value now: in the session, and one of those there are.

    A move that was made before the answer to the one before may hand back what its widget no longer offers, as the
    word that stood there; it then stays what it was.
    """
    return _value(name, st.session_state[LINK])


def _value(name: str, link: Link) -> Any:  # noqa: ANN401 - any field's
    state, kind = st.session_state, link.fields.get(name)
    if kind is None:
        return state[name]
    found = state.get(name, kind.default)
    if kind.holds(found):
        link.valid[name] = found
        return found
    kept = link.valid.get(name, kind.default)
    return kept if kind.holds(kept) else kind.default


def untouched(names: Iterable[str]) -> bool:
    """Whether these values are still those that an empty address stands for."""
    link: Link = st.session_state[LINK]
    return all(name in link.opened and _value(name, link) == link.opened[name] for name in names)


def arrived() -> bool:
    """Whether this run shows what a link asks for, and not what a widget has changed."""
    link: Link = st.session_state[LINK]
    return link.given is not None


def values() -> dict[str, Any]:
    """What a link carries, as it is now."""
    link: Link = st.session_state[LINK]
    return {name: _value(name, link) for name in link.fields}


def fit(**options: Container[Any]) -> None:
    """Bring values back to their defaults that what is on screen does not have; those from a link are refused.

    Called when it is known what there is: layers of a model, heads and tokens of an input, steps of a story. A default
    need not fit: whoever draws it does with the nearest that does.

    Args:
        options: by the value's name, those there are.
    """
    state = st.session_state
    link: Link = state[LINK]
    for name, allowed in options.items():
        words = link.unchecked.pop(name, None)
        now = value(name)
        if now != link.fields[name].default and now not in allowed:
            state[name] = link.fields[name].default
            if words is not None:
                link.refused[name] = words


def mirror(name: str, options: Sequence[Any], otherwise: object, *, key: str) -> dict[str, Any]:
    """Arguments of a widget that shows a value, or what the page takes while nothing that fits was chosen.

    Args:
        name: the value's name; unlike a widget's own, its default need not be among the options.
        options: what can be chosen.
        otherwise: the one shown while none of them is.
        key: the widget's own key.
    """
    fit(**{name: options})
    now = value(name)
    st.session_state[key] = now if now in options else otherwise
    return {"key": key, "on_change": _take, "args": (name, key)}


def follow(key: str, value: Any) -> str:  # noqa: ANN401 - any widget's
    """Set a widget to what was decided elsewhere; the key to draw it under.

    That is a new one where the browser stands at something else: what is still in flight from the widget before then
    speaks to nobody, where under the same key it would be taken for a press.

    Args:
        key: the widget's own key, of which the new ones are made.
        value: what it shows; of a list the order does not count.
    """
    state = st.session_state
    turn = state.get(f"{key}.turn", 0)
    stands = state.get(_turned(key, turn), value)
    if (set(stands) != set(value)) if isinstance(value, list) else (stands != value):
        turn += 1
    state[f"{key}.turn"], state[_turned(key, turn)] = turn, value
    return _turned(key, turn)


def _turned(key: str, turn: int) -> str:
    return f"{key}.{turn}" if turn else key


def _take(name: str, key: str) -> None:
    st.session_state[name] = st.session_state[key]
    st.session_state[name] = value(name)


def show_notices(place: DeltaGenerator) -> None:
    """Where on the page the sentence goes that names what a link carried in vain."""
    st.session_state[LINK].place = place


def announce() -> None:
    """Write the address and name what does not fit, as soon as a page has asked for its values: the rest takes time."""
    link: Link = st.session_state[LINK]
    write_link()
    unknown = {name: words for name, words in (link.given or {}).items() if name not in link.fields}
    link.told = link.refused | unknown
    if link.place and link.told:
        link.place.warning(refusal(st.session_state, link.fields, link.told))


def close_link() -> None:
    """The same at the end of a run, when everything has been checked."""
    announce()
    link: Link = st.session_state[LINK]
    link.arriving, link.unread = False, None


def refusal(state: Mapping[Any, Any], fields: Mapping[str, Field], refused: Mapping[str, Sequence[str]]) -> str:
    """Which of a link's values do not fit, and what is shown instead, as Markdown.

    Args:
        state: what is shown.
        fields: what the page knows.
        refused: the link's words by name.
    """
    instead = [_instead(name, fields[name], state[name], words) for name, words in refused.items() if name in fields]
    unknown = [_quoted([name]) for name in refused if name not in fields]
    return paragraph(
        _("The link carried values that do not fit."),
        _("Shown instead: {values}.", values=_some(instead)) if instead else "",
        _("This page does not know: {names}.", names=_some(unknown)) if unknown else "",
    )


def _instead(name: str, kind: Field, shown: object, words: Sequence[str]) -> str:
    told = {"name": name, "shown": _shown(kind, shown), "word": _quoted(words)}
    if kind.takes and kind.passed([*words]):
        return _("{name} is {shown}, not {word}: it takes {takes}", **told, takes=kind.takes())
    return _("{name} is {shown}, not {word}", **told)


def _some(told: Sequence[str]) -> str:
    more, named = len(told) - NAMED, "; ".join(told[:NAMED])
    return _("{named} and {n} more", named=named, n=more) if more > 0 else named


def _quoted(words: Sequence[str]) -> str:
    word = ", ".join(words[:NAMED])
    return "“" + literal(word[:WORD] + ("…" if len(word) > WORD else "")) + "”"


def _shown(kind: Field, value: object) -> str:
    if value is None:
        return _("none")
    words = kind.write(value)
    if value == kind.default and len(", ".join(words)) > WORD:
        return _("the default")
    return _quoted(words)


def write_link() -> None:
    """Put the state into the address; a fragment calls it when it has changed what a link carries."""
    link: Link = st.session_state[LINK]
    if link.arriving:
        return
    written = {name: words for name, words in here().items() if words}
    if written != link.written:
        earlier = [each for each in (*link.overtaken, link.written) if each != written]
        link.written, link.overtaken = written, earlier[-IN_FLIGHT:]
    if {name: st.query_params.get_all(name) for name in st.query_params} != link.written:
        st.query_params.from_dict(link.written)


def read_link(given: Mapping[str, list[str]], known: Mapping[str, Field]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The full state a link stands for, and the names of its values that were refused."""
    values: dict[str, Any] = {}
    refused = []
    for name, kind in known.items():
        values[name] = kind.default
        if name in given:
            try:
                values[name] = kind.read(given[name])
            except CutError as cut:
                values[name] = cut.kept
                refused.append(name)
            except UNREADABLE:
                refused.append(name)
    return values, tuple(refused)


def link_of(
    state: Mapping[Any, Any],
    fields: Mapping[str, Field],
    **changes: Any,  # noqa: ANN401 - any field's value
) -> dict[str, list[str]]:
    """The query of the address that stands for a state, with some values changed."""
    now = {name: changes.get(name, state[name]) for name in fields}
    return {name: kind.write(now[name]) for name, kind in fields.items() if now[name] != kind.default}


def here() -> dict[str, list[str]]:
    """Return the query of the address that opens what is on screen.

    It names every value that differs from its default, on a first visit too: what an empty address opens may change.
    """
    now, fields = values(), st.session_state[LINK].fields
    # An address without a single word opens a first visit, so a state of defaults alone names what differs from that.
    return link_of(now, fields) or {
        name: kind.write(now[name]) for name, kind in fields.items() if now[name] != kind.opens()
    }


def query_string(link: Mapping[str, list[str]]) -> str:
    """A query as it stands in an address."""
    return "?" + urlencode(link, doseq=True) if link else ""
