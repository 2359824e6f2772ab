"""Tests of a toy page: a folder is enough to add a page to the menu and Home, and one line to add an option."""

import sys

import pytest
from driver import assert_says, spoken, visit

import pages
from app import page as frame
from app.state.controls import Options, choice, index, integer, link_only_option, stops, switch
from app.state.link_fields import Field
from app.state.url import LINK

TOY = '''
"""Toy: how warm is it?"""

import streamlit as st

from app.state.controls import Options, choice, integer
from app.page import Page


class ToyOptions(Options, prefix="toy_"):
    view = choice({"bare": "Bare", "dressed": "Dressed"}, "View")
    warmth = integer(20, -5, 40, "Warmth", help="In degrees.")


def top():
    ToyOptions.view.draw()
    ToyOptions.warmth.draw()
    return ToyOptions.current()


def bare(options):
    st.markdown(f"It has {options.warmth} degrees.")


def dressed(options):
    st.markdown(f"It feels like {options.warmth - 3}.")


PAGE = Page(
    title="Toy", icon=":material/toys:", section="Measure", rank=9, question="How warm is it?", options=ToyOptions,
    uses_input=False, top=top, view=ToyOptions.view, views={"bare": bare, "dressed": dressed},
)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a temporary folder for pages, which the app discovers in addition to its own."""
    monkeypatch.setattr(pages, "__path__", [*pages.__path__, str(tmp_path)])
    frame.discover.cache_clear()
    yield tmp_path
    frame.discover.cache_clear()
    for name in [name for name in sys.modules if name.startswith("pages.toy")]:
        del sys.modules[name]


@pytest.fixture
def toy(folder):
    (folder / "toy").mkdir()
    (folder / "toy" / "__init__.py").touch()
    (folder / "toy" / "page.py").write_text(TOY)


def test_a_folder_is_a_page_in_the_menu_and_on_home(toy):
    known = list(frame.discover())
    section = [name for name, page in frame.discover().items() if page.section == frame.discover()["toy"].section]
    assert section[-1] == "toy", "it has the highest rank of its section"
    assert known.index("toy") == known.index(section[0]) + len(section) - 1
    assert "<b>Toy</b> How warm is it?</a>" in spoken(visit("home"))
    assert "# How warm is it?" in spoken(visit("toy"))


def test_the_options_of_a_page_are_in_links_and_choose_the_view(toy):
    at = visit("toy", {"toy_view": "dressed", "toy_warmth": "30"})
    assert_says(at, "It feels like 27.")
    at.number_input(key="toy_warmth").set_value(-5).run()
    assert at.session_state[LINK].written_query == {"toy_view": ["dressed"], "toy_warmth": ["-5"]}
    assert_says(at, "It feels like -8.")
    at.button_group(key="toy_view").set_value("bare").run()
    assert_says(at, "It has -5 degrees.")


@pytest.mark.parametrize("word", ["41", "-6", "warm"])
def test_a_value_out_of_bounds_falls_back_and_is_reported(toy, word):
    at = visit("toy", {"toy_warmth": word})
    assert_says(at, "It has 20 degrees.")
    assert f"For `toy_warmth`, the page uses “20” instead of “{word}”" in at.warning[0].value


def test_a_folder_without_a_page_raises_an_error(folder):
    (folder / "toy").mkdir()
    (folder / "toy" / "__init__.py").touch()
    (folder / "toy" / "page.py").write_text("PAGE = 'toy'\n")
    with pytest.raises(TypeError, match=r"pages/toy/page\.py must define PAGE"):
        frame.discover()


class First(Options, prefix="a_"):
    colour = choice({"red": "Red", "blue": "Blue"}, "Colour", default="blue")
    size = stops((1, 2, 4), 2, "Size", link="how_large")


class Both(First, prefix="b_"):
    on = switch(True, "On")
    token = index(lambda: 5)
    free = link_only_option(lambda: Field("", lambda given: given[0], lambda value: [value]))


def test_options_are_named_by_their_class_and_inherited():
    assert list(Both.fields()) == ["b_on", "b_token", "b_free", "a_colour", "how_large"]
    assert list(First.fields()) == ["a_colour", "how_large"]
    now = Both(size=4, token=3)
    assert (now.colour, now.size, now.on, now.token, now.free) == ("blue", 4, True, 3, "")
    with pytest.raises(AttributeError, match="a_colour is frozen"):
        now.colour = "red"
    with pytest.raises(TypeError, match="colours"):
        Both(colours="red")


def test_an_option_is_checked_by_its_declaration():
    fields = Both.fields()
    assert fields["how_large"].read(["4"]) == 4
    for name, word in (("how_large", "3"), ("a_colour", "green"), ("b_on", "yes"), ("b_token", "5")):
        with pytest.raises((KeyError, ValueError)):
            fields[name].read([word])
    assert fields["b_token"].default is None


def test_bounds_are_computed_when_they_are_needed():
    most = [3]
    count = integer(1, 0, lambda: most[0], "n")
    assert count.field().options == range(4)
    most[0] = 7
    assert count.field().read(["7"]) == 7
