"""Reads the values that describe the screen from a link, checks them, and writes them to the address bar.

A value is stored in ``st.session_state`` under its name. The address holds the values that differ from the defaults,
so a link shows the same screen to everyone. Values in an address are never trusted: the default replaces a value that
fails a check, and a notice lists the value. A ``Field`` describes one value, and ``Field.read`` makes the checks that
need only the value itself. ``restrict_to`` makes the checks that depend on the input or on other content of the
screen. In this module, the words of a value are the strings that represent it in an address, and a run is one
execution of Streamlit's script.
"""

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.state.link_fields import READ_ERRORS, Field, TruncatedError
from app.state.refusals import notice_text
from app.words.i18n import LANGUAGE

LINK = "link"
IN_FLIGHT = 32
"""Largest number of stored queries that the browser may still send (see ``Link.pending_queries``).

A visitor never makes so many changes before the browser has updated its address.
"""


@dataclass
class Link:
    """The state of the address during one run.

    Attributes:
        query: words of a newly opened link, by name; None if the app itself wrote the address.
        written_query: query that the last run wrote into the address.
        page: Streamlit's hash of the page that is open.
        pending_queries: queries that earlier runs wrote and that the browser may still send, oldest first. It does so
            if the visitor changes a widget before the browser has updated its address.
        valid_values: last allowed value of each name.
        opening_values: values set for an address without a query, by name. Until the visitor changes such a value,
            every page replaces it with its own opening value.
        unchecked: words of values from a link that ``restrict_to`` has not checked yet, by name.
        fields: fields that this run has registered, by name.
        refused: words of rejected values, by name.
        reported: words that the notice of this run lists, by name: rejected values, and parameters that the page does
            not know.
        keep_notice: whether the browser, not the visitor, causes the next run, so that the notice must stay.
        notice_container: element in which the notice is drawn.
        is_first_run: whether this is the session's first run, which leaves the address unchanged. The address already
            represents what is shown, and rewriting it would add a step to the browser's history.
        unread_query: query of a new link until a run has completed. Streamlit interrupts a run when the browser sends
            the next request, and an interrupted run may have read only some of the values.
        read_names: names of the fields that were already read from ``unread_query``.
    """

    query: dict[str, list[str]] | None
    written_query: dict[str, list[str]]
    page: str = ""
    pending_queries: list[dict[str, list[str]]] = dataclasses.field(default_factory=list)
    valid_values: dict[str, Any] = dataclasses.field(default_factory=dict)
    opening_values: dict[str, Any] = dataclasses.field(default_factory=dict)
    unchecked: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    fields: dict[str, Field] = dataclasses.field(default_factory=dict)
    refused: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    reported: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    keep_notice: bool = False
    notice_container: DeltaGenerator | None = None
    is_first_run: bool = False
    unread_query: dict[str, list[str]] | None = None
    read_names: set[str] = dataclasses.field(default_factory=set)


def open_link() -> None:
    """Store a new ``Link`` for this run, which says whether the address is a new link or one that the app wrote.

    Called once at the top of a run.

    A page change in the menu clears the address; the session's values stay and are written into the address again.
    After a step back or forward in the browser, the values follow the address, even if the address is empty.
    """
    state, params, context = st.session_state, st.query_params, get_script_run_ctx()
    query = {name: params.get_all(name) for name in params}
    last: Link | None = state.get(LINK)
    is_step, page = getattr(context, "is_history_navigation", False), getattr(context, "page_script_hash", "")
    if last is None or is_step or (query and not _is_own_address(query, page, last)):
        state[LINK] = Link(query, query, page, is_first_run=last is None, unread_query=query)
        return
    pending = last.pending_queries if page == last.page else []
    if query == last.written_query:
        pending = []
    elif query in pending:
        pending = pending[pending.index(query) :]
    reported = last.reported if last.keep_notice else {}
    state[LINK] = Link(
        None,
        last.written_query,
        page,
        pending,
        last.valid_values,
        last.opening_values,
        last.unchecked,
        refused={**reported},
        unread_query=last.unread_query,
        read_names=last.read_names,
    )


def keep_notice_next_run() -> None:
    """Keep the notice in the next run, which a report of the browser causes and not an action of the visitor."""
    if LINK in st.session_state:
        st.session_state[LINK].keep_notice = True


def _is_own_address(query: dict[str, list[str]], page: str, last: Link) -> bool:
    """Return whether the app wrote an address, or the address carries only the language that is already shown."""
    if query == {LANGUAGE: [st.session_state.get(LANGUAGE)]}:
        return True
    return query == last.written_query or (page == last.page and query in last.pending_queries)


def register_fields(fields: Mapping[str, Field]) -> None:
    """Set the fields' values in the session.

    A new link determines the values. Otherwise, existing values stay. Missing values, and unchanged opening values
    of another page, become the fields' opening values.

    A page calls this at its top for its own options; the names are the keys of its widgets.
    """
    state = st.session_state
    link: Link = state[LINK]
    link.fields.update(fields)
    unread_fields = {}
    if link.unread_query is not None:
        unread_fields = {
            name: field for name, field in fields.items() if link.query is not None or name not in link.read_names
        }
        _read_values(unread_fields, link.unread_query, link)
    for name, field in fields.items():
        if name in unread_fields:
            continue
        if name not in state or (name in link.opening_values and _read_value(name, link) == link.opening_values[name]):
            state[name] = link.opening_values[name] = (field.page_opening or field.opening_value)()
        else:
            # Streamlit deletes a widget's value after a run that does not draw the widget, for example on another page.
            # It keeps a value that the script itself writes in every run.
            state[name] = _read_value(name, link)


def _read_values(fields: Mapping[str, Field], query: Mapping[str, list[str]], link: Link) -> None:
    """Set the fields' values from a new link; a field that the link omits gets its default value or opening value."""
    state = st.session_state
    values, refused = read_link(query, fields)
    if not [name for name in query if name not in link.fields or not link.fields[name].presentation_only]:
        link.opening_values |= {name: field.opening_value() for name, field in fields.items() if name not in query}
        values |= {name: link.opening_values[name] for name in fields if name not in query}
    for name in [*values]:
        # The app writes only the beginning of a long text into a link, and nothing of a lesson that is too long. If the
        # link has what the app would write for the session's value, the complete value in the session stays. It is set
        # again, because Streamlit deletes the value of a widget that the previous page did not draw.
        if name in state and fields[name].write(value(name)) == query.get(name, []):
            values[name] = value(name)
    state.update(values)
    link.read_names |= {*fields}
    link.valid_values |= values
    link.refused |= {name: query[name] for name in refused}
    link.unchecked |= {name: query[name] for name in fields if name in query and name not in refused}


def value(name: str) -> Any:  # noqa: ANN401 - the value of any field
    """Return the current value in the session, always an allowed one.

    If a visitor does not wait for a rerun, a widget may return a value that it no longer offers. The previous value is
    then returned.
    """
    return _read_value(name, st.session_state[LINK])


def _read_value(name: str, link: Link) -> Any:  # noqa: ANN401 - the value of any field
    state, field = st.session_state, link.fields.get(name)
    if field is None:
        return state[name]
    current = state.get(name, field.default)
    if field.is_allowed(current):
        link.valid_values[name] = current
        return current
    previous = link.valid_values.get(name, field.default)
    return previous if field.is_allowed(previous) else field.default


def are_unchanged(names: Iterable[str]) -> bool:
    """Return whether these values are still the ones that the app set for an address without a query."""
    link: Link = st.session_state[LINK]
    return all(name in link.opening_values and _read_value(name, link) == link.opening_values[name] for name in names)


def written_openings(fields: Mapping[str, Field]) -> dict[str, list[str]]:
    """Return the query for the opening values of the fields that have one."""
    return {name: field.write(field.opening) for name, field in fields.items() if field.opening is not None}


def opening_query(fields: Mapping[str, Field]) -> dict[str, list[str]]:
    """Return ``written_openings`` in the first run of a session that began at an address without a query; else {}."""
    link: Link = st.session_state[LINK]
    return {} if link.query or not link.is_first_run else written_openings(fields)


def is_new_link() -> bool:
    """Return whether this run shows a newly opened link rather than a changed widget."""
    link: Link = st.session_state[LINK]
    return link.query is not None


def values() -> dict[str, Any]:
    """Return the current values of everything that a link carries, by name."""
    link: Link = st.session_state[LINK]
    return {name: _read_value(name, link) for name in link.fields}


def restrict_to(**options: Container[Any]) -> None:
    """Reset values that are not allowed to their defaults; the notice lists the rejected values that a link contained.

    Call it once the allowed values are known, such as the layers of a model or the tokens of an input. The default may
    itself not be allowed; the code that draws the value must then use the nearest allowed one.

    Args:
        options: allowed values, by the value's name.
    """
    state = st.session_state
    link: Link = state[LINK]
    for name, allowed in options.items():
        words = link.unchecked.pop(name, None)
        current = value(name)
        if current != link.fields[name].default and current not in allowed:
            state[name] = link.fields[name].default
            if words is not None:
                link.refused[name] = words


def widget_arguments(name: str, options: Sequence[Any], fallback: object, *, key: str) -> dict[str, Any]:
    """Return the arguments of a widget that shows a value, or a fallback while the value is not among ``options``."""
    restrict_to(**{name: options})
    current = value(name)
    st.session_state[key] = current if current in options else fallback
    return {"key": key, "on_change": _store_widget_value, "args": (name, key)}


def sync_widget(key: str, value: Any) -> str:  # noqa: ANN401 - the value of any widget
    """Set a widget to a value decided elsewhere, and return the key to draw the widget under.

    If the browser shows another value, the key is a new one. Messages that the browser sent for the
    old widget are then ignored; under the same key Streamlit would treat them as a click.

    Args:
        key: base key of the widget, from which new keys are made.
        value: value to show; the order of a list does not count.
    """
    state = st.session_state
    version = state.get(f"{key}.turn", 0)
    shown = state.get(_versioned_key(key, version), value)
    if (set(shown) != set(value)) if isinstance(value, list) else (shown != value):
        version += 1
    state[f"{key}.turn"], state[_versioned_key(key, version)] = version, value
    return _versioned_key(key, version)


def _versioned_key(key: str, version: int) -> str:
    return f"{key}.{version}" if version else key


def _store_widget_value(name: str, key: str) -> None:
    st.session_state[name] = st.session_state[key]
    st.session_state[name] = value(name)


def show_notices(container: DeltaGenerator) -> None:
    """Set the container in which this run draws the notice about rejected values of a link."""
    st.session_state[LINK].notice_container = container


def write_and_report() -> None:
    """Write the address, and draw the notice about rejected values.

    Called as soon as the page has read its values, because drawing the page takes longer.
    """
    link: Link = st.session_state[LINK]
    write_link()
    unknown = {name: words for name, words in (link.query or {}).items() if name not in link.fields}
    link.reported = link.refused | unknown
    if link.notice_container and link.reported:
        link.notice_container.warning(notice_text(st.session_state, link.fields, link.reported))


def finish_run() -> None:
    """Write the address and draw the notice again at the end of a run, after all checks."""
    write_and_report()
    link: Link = st.session_state[LINK]
    link.is_first_run, link.unread_query = False, None


def write_link() -> None:
    """Write the current query into the address. A fragment calls it after it has changed a value that links carry."""
    link: Link = st.session_state[LINK]
    if link.is_first_run:
        return
    query = {name: words for name, words in current_query().items() if words}
    if query != link.written_query:
        pending = [each for each in (*link.pending_queries, link.written_query) if each != query]
        link.written_query, link.pending_queries = query, pending[-IN_FLIGHT:]
    if {name: st.query_params.get_all(name) for name in st.query_params} != link.written_query:
        st.query_params.from_dict(link.written_query)


def read_link(query: Mapping[str, list[str]], fields: Mapping[str, Field]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return each field's value in a link (the default if missing or rejected), and the names of rejected values."""
    values: dict[str, Any] = {}
    refused = []
    for name, field in fields.items():
        values[name] = field.default
        if name in query:
            try:
                values[name] = field.read(query[name])
            except TruncatedError as error:
                values[name] = error.value
                refused.append(name)
            except READ_ERRORS:
                refused.append(name)
    return values, tuple(refused)


def to_query(
    values: Mapping[Any, Any],
    fields: Mapping[str, Field],
    **changes: Any,  # noqa: ANN401 - any field's value
) -> dict[str, list[str]]:
    """Return the query of an address with these values, except those replaced by ``changes``."""
    shown = {name: changes.get(name, values[name]) for name in fields}
    return {name: field.write(shown[name]) for name, field in fields.items() if shown[name] != field.default}


def current_query() -> dict[str, list[str]]:
    """Return the query of the address that opens the current screen.

    It also names the values that the app set for an address without a query, if they differ from the defaults: a later
    version of the app may set others.
    """
    shown, fields = values(), st.session_state[LINK].fields
    query = to_query(shown, fields)
    if all(fields[name].presentation_only for name in query):
        # An empty query, or one with only presentation fields, would open the screen of a first visit, where some
        # values are not the defaults. So the query also names the values that differ from that screen.
        query |= {
            name: field.write(shown[name]) for name, field in fields.items() if shown[name] != field.opening_value()
        }
    return query


def query_string(link: Mapping[str, Sequence[str]]) -> str:
    """Return a query as a string, with its question mark; "" for an empty query."""
    return "?" + urlencode(link, doseq=True) if link else ""
