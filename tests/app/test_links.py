"""Every page's link: what it refuses, what it brings back, and that nothing a visitor can set is left out of it."""

from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import share
from app.navigation import entries
from app.share import LINK

ROOT = Path(__file__).parent.parent.parent
PAGES = [entry.file.removesuffix(".py") for entry in entries()]
TINY = {"input": "synthetic", "n": "12", "heads": "2", "d": "4", "head": "1"}
"""An input on which every page is quick."""
HOSTILE = (
    "", " ", "NaN", "inf", "-inf", "1e999", "-99999999999", "9" * 5000, "None", "perhaps", "0x1", "1_0", " 1", "٣", "½",
    "\U0001f642", "<script>alert(1)</script>", "'; drop table", "../../etc/passwd", "a/b/c", "@nowhere", "x" * 20_000,
    "softmax~temperature~nan", "\x00",
)  # fmt: skip
"""Words that no value has."""
WORDS = [
    ["0.5"], ["1.25"], ["none"], ["@chinese"], share.write_text("any words\n…"), share.write_text(""), ["smollm2"],
    ["owner/name"], ["nystrom~landmarks~7"], ["retention~decay~0.5"], ["softmax", "local~window~3"], ["sparse", "local"],
    ["softmax"],
]  # fmt: skip
"""An address's words for the values that cannot be listed."""


def open_page(page, query=()):
    at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=120).run()
    at.switch_page(f"../pages/{page}.py")
    for name, words in dict(query).items():
        at.query_params[name] = words
    return at.run()


@cache
def fields(page):
    """What a page declares, on a small input."""
    at = open_page(page, TINY)
    assert not at.exception
    return dict(at.session_state[LINK].fields)


def others(kind):
    """Values other than the default: a few of those there are."""
    if kind.options is not None:
        few = kind.options if len(kind.options) < 30 else [kind.options[i] for i in (0, len(kind.options) // 2, -1)]
        return [value for value in few if value != kind.default]
    found = []
    for words in WORDS:
        try:
            found.append(kind.read(words))
        except share.UNREADABLE:
            continue
    return [value for value in found if value != kind.default]


@pytest.mark.parametrize("page", PAGES)
def test_hostile_words_fall_back_and_are_named(page):
    for name, kind in fields(page).items():
        for word in HOSTILE:
            values, refused = share.read_link({name: [word]}, {name: kind})
            assert (values, refused) == ({name: kind.default}, (name,)), (name, word)
            assert f"{name} is " in share.refusal(values, {name: kind}, {name: [word]})


@pytest.mark.parametrize("page", PAGES)
def test_a_word_given_twice_is_refused(page):
    for name, kind in fields(page).items():
        word = kind.write(others(kind)[-1])[-1]
        values, refused = share.read_link({name: [word, word]}, {name: kind})
        assert refused == (name,) or (name == "stack" and values == {"stack": (word, word)}), name


@pytest.mark.parametrize("page", PAGES)
def test_every_value_travels_in_a_link(page):
    for name, kind in fields(page).items():
        assert others(kind), name
        for value in others(kind):
            link = share.link_of({name: value}, {name: kind})
            assert link[name]
            assert share.read_link(link, {name: kind}) == ({name: value}, ()), (name, value)
            assert kind.holds(value)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_on_a_link_of_nothing_but_hostile_words(page):
    known = list(fields(page))
    for start in range(0, len(known), share.NAMED):
        names = known[start : start + share.NAMED]
        at = open_page(page, TINY | dict.fromkeys(names, "perhaps"))
        assert not at.exception
        assert not at.error
        for name in names:
            assert f"{name} is " in at.warning[0].value
