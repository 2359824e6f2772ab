"""State <-> address bar: the names, defaults and validation of everything a link carries.

A value lives in ``st.session_state`` under its name; the address holds what differs from the defaults, so the same link
shows the same picture anywhere. Nothing in an address is trusted: a value that does not pass its check falls back to
its default and is named in a notice.
"""

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import attention_core as ac
from app import presets
from app.text import _, literal
from attention_core.inputs.synthetic import KINDS, SyntheticSpec
from attention_core.limits import current

LINK_TEXT = 12_000
"""Characters of compressed text that a link may carry: web servers refuse addresses longer than about 16,000."""

LINK = "link"


@dataclass
class Link:
    """The address during one run.

    Attributes:
        given: what a new link says, by name; None where the address is our own.
        written: what the last run put into the address.
        fields: what this run has asked for.
        refused: names whose values did not fit.
    """

    given: dict[str, list[str]] | None
    written: dict[str, list[str]]
    fields: dict[str, "Field"] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """One value that a link carries: its default, and how it is read from words and written as words."""

    default: Any
    read: Callable[[list[str]], Any]
    write: Callable[[Any], list[str]] = lambda value: [str(value)]


def choice(*words: str) -> Field:
    """One of some words, the first being the default."""

    def read(given: list[str]) -> str:
        if given[-1] not in words:
            raise ValueError
        return given[-1]

    return Field(words[0], read)


def whole(default: int | None, low: int, high: int) -> Field:
    """A whole number within bounds; a default of None allows none."""

    def read(given: list[str]) -> int:
        value = int(given[-1])
        if not low <= value <= high:
            raise ValueError
        return value

    return Field(default, read)


def number(default: float, low: float, high: float) -> Field:
    """A number within bounds."""

    def read(given: list[str]) -> float:
        value = float(given[-1])
        if not low <= value <= high:
            raise ValueError
        return value

    return Field(default, read)


def switch(default: bool) -> Field:
    """On or off."""
    return Field(default, lambda given: {"1": True, "0": False}[given[-1]], lambda on: ["1" if on else "0"])


def read_text(given: list[str]) -> str:
    """A preset's name after ``@``, or a text that ``write_text`` packed."""
    word = given[-1]
    if word.startswith("@"):
        return presets.texts()[word[1:]]
    packed = base64.urlsafe_b64decode(word.encode("ascii") + b"=" * (-len(word) % 4))
    unpack = zlib.decompressobj()
    text = unpack.decompress(packed, 4 * current().text_characters)
    if unpack.unconsumed_tail or not unpack.eof:
        raise ValueError
    return text.decode()


def write_text(text: str) -> list[str]:
    """A preset by name, any other text deflated; a text too long for an address stays out of it."""
    for name, known in presets.texts().items():
        if text == known:
            return ["@" + name]
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode().rstrip("=")
    return [packed] if len(packed) <= LINK_TEXT else []


def read_variants(given: list[str]) -> tuple[ac.Attention, ...]:
    """Variants with their changed settings, in the order they are shown; each once."""
    chosen = [ac.from_word(word) for word in given[: current().compared_variants]]
    return tuple({attention.key: attention for attention in chosen}.values())


def default_variants() -> tuple[ac.Attention, ...]:
    """What a first visit compares: the reference, two linear forms, four sparse patterns and one of low rank."""
    return tuple(
        ac.get(key) for key in ("softmax", "linear", "efficient", "local", "atrous", "sparse", "topk", "nystrom")
    )


def shared() -> dict[str, Field]:
    """What every page has in common: the input, the variants, and whether the future is hidden."""
    limits, plain = current(), SyntheticSpec()
    return {
        "input": choice("text", "synthetic", "upload"),
        "text": Field(presets.texts()["english"], read_text, write_text),
        "model": Field("minilm", lambda given: given[-1][:96]),
        "layer": whole(presets.LAYER, 0, 999),
        "head": whole(presets.HEAD, -1, 999),
        "kind": choice(plain.kind, *(kind.key for kind in KINDS if kind.key != plain.kind)),
        "n": whole(plain.n, 1, limits.matrix_tokens),
        "d": whole(plain.d, 2, limits.head_size),
        "heads": whole(plain.heads, 1, limits.heads),
        "sharpness": number(plain.sharpness, 0.0, 16.0),
        "seed": whole(plain.seed, 0, 2**31 - 1),
        "rope": switch(plain.rope),
        "variants": Field(default_variants(), read_variants, lambda chosen: [attention.word for attention in chosen]),
        "causal": switch(False),
        "special": switch(True),
    }


def open_link() -> None:
    """Look at the address, called once at the top of a run: one that was not written by the last run is a new link.

    A page change clears the address; the state then stays, and is written again at the end of the run.
    """
    state, query = st.session_state, st.query_params
    given = {name: query.get_all(name) for name in query}
    fresh = LINK not in state or (bool(given) and given != state[LINK].written)
    state[LINK] = Link(given if fresh else None, {} if fresh else state[LINK].written)


def use(fields: Mapping[str, Field]) -> None:
    """Put these values into the session: from a new link, else as they were, else their defaults.

    A page calls this at its top for what is its own; the names are those of its widgets' keys.
    """
    state = st.session_state
    link: Link = state[LINK]
    link.fields.update(fields)
    if link.given is None:
        for name, kind in fields.items():
            # A widget that is not drawn in a run loses its state; writing a value to itself keeps it.
            state[name] = state.get(name, kind.default)
        return
    values, refused = read_link(link.given, fields)
    state.update(values)
    link.refused += refused


def close_link(notice: DeltaGenerator) -> None:
    """Put the state into the address and name what a link carried in vain; called once at the end of a run.

    Args:
        notice: where on the page the sentence goes.
    """
    link: Link = st.session_state[LINK]
    unknown = [name for name in link.given or () if name not in link.fields]
    if refused := [*link.refused, *unknown]:
        names = ", ".join(literal(name[:30]) for name in refused[:6])
        notice.warning(
            _("The link carried values that do not fit; their defaults are shown instead: {names}.", names=names)
        )
    write_link()


def write_link() -> None:
    """Put the state into the address; a fragment calls it when it has changed what a link carries."""
    link: Link = st.session_state[LINK]
    link.written = {name: words for name, words in link_of(st.session_state, link.fields).items() if words}
    if {name: st.query_params.get_all(name) for name in st.query_params} != link.written:
        st.query_params.from_dict(link.written)


def read_link(given: Mapping[str, list[str]], known: Mapping[str, Field]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The full state a link stands for, and the names of its values that were refused."""
    values, refused = {}, []
    for name, kind in known.items():
        values[name] = kind.default
        if name in given:
            try:
                values[name] = kind.read(given[name])
            except (ValueError, KeyError, ac.LabError, binascii.Error, zlib.error, OverflowError):
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


def show_share() -> None:
    """How to share what is on screen, and what cannot travel in a link."""
    with st.popover(_("Share"), icon=":material/share:", type="tertiary"):
        st.markdown(_("The address bar always holds everything on screen: input, layer, head, variants and knobs."))
        state = st.session_state
        if state["input"] == "upload":
            st.info(_("An uploaded file does not travel in a link: whoever opens it must upload the file again."))
        elif state["input"] == "text" and not write_text(state["text"]):
            st.info(_("This text is too long for a link: the link opens with the default text."))
        address = (st.context.url or "").split("?")[0]  # there is none outside a browser
        st.code(address + query_string(link_of(state, state[LINK].fields)), language=None, wrap_lines=True)


def query_string(link: Mapping[str, list[str]]) -> str:
    """A query as it stands in an address."""
    return "?" + urlencode(link, doseq=True) if link else ""
