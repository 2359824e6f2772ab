"""Tests of Home: the links to every page, and the gallery of all variants."""

import base64
import io
import re
from collections import Counter
from urllib.parse import parse_qs

import numpy as np
import pytest
from driver import chosen, links, open_page, ways
from PIL import Image

import attention_core as ac
from app.figures.picture import picture
from app.page import SECTIONS, discover
from app.words.labels import family_title
from pages.home import gallery

ROW = '<div class="variant">'
OPENING = {"error": {"against": ["cost"]}, "causal": {"c_view": ["overview"]}}
"""Options whose value on a first visit differs from their value in an address without them."""


def rows(at):
    """Return the gallery's rows by title, as parts of Markdown."""
    [found] = [each.value for each in at.markdown if ROW in each.value]
    split = [each.strip().split("\n\n") for each in found.split(ROW)[1:]]
    return {re.search("<summary>(.*)</summary>", each[1])[1]: each[: each.index("</div>") + 1] for each in split}


def test_the_gallery_has_a_row_for_every_variant_by_family():
    at = open_page("home")
    assert list(rows(at)) == [v.title for family in ac.families() for v in ac.all_variants() if v.family == family]
    [found] = [each.value for each in at.markdown if ROW in each.value]
    assert re.findall("^### (.*)$", found, re.MULTILINE) == list(map(family_title, ac.families()))


@pytest.mark.parametrize("family", ac.families())
def test_a_family_shows_all_of_its_own_and_nothing_else(family):
    shown = rows(open_page("home", family=family))
    assert list(shown) == [v.title for v in ac.all_variants() if v.family == family]


def test_home_leads_to_every_page_by_its_question():
    at = open_page("home")
    shown = [(link.page, link.label) for link in links(at)]
    for key, page in discover().items():
        if key != "home":
            assert (key, f"**{page.title}** · {page.question}") in shown


def test_pages_stand_under_their_sections_and_take_the_input_along():
    at = open_page("home", input="synthetic", n=20, variants=chosen("softmax", "local"))
    contents = [each for each in at.main if each.type in ("markdown", "page_link")]
    carried = {"input": ["synthetic"], "n": ["20"], "variants": ["softmax", "local"]}
    for section in SECTIONS:
        start = [each.value for each in contents if each.type == "markdown"].index(f"**{section}**")
        assert start == SECTIONS.index(section) + 2  # after the sentence and the description of the page
        place = next(i for i, each in enumerate(contents) if getattr(each, "value", "") == f"**{section}**")
        pages = [key for key, page in discover().items() if page.section == section]
        assert [each.proto.page for each in contents[place + 1 : place + 1 + len(pages)]] == pages
        assert contents[place + 1 + len(pages)].type != "page_link"
    for way in links(at):
        assert parse_qs(way.query_string) == carried | OPENING.get(way.page, {})
        assert way.icon == discover()[way.page].icon
    assert len(links(at)) == len(discover()) - 1
    for page, query, _ in ways(*rows(at)["BigBird"]):
        own = {"variants": ["softmax", "bigbird"]} if page == "matrices" else {"inside": ["bigbird"]}
        assert query == carried | own


@pytest.fixture(scope="module")
def home():
    return rows(open_page("home"))


@pytest.mark.parametrize(("key", "causal"), [("softmax", "yes"), ("linear", "yes"), ("linformer", "no")])
def test_a_row_is_about_its_variant(home, key, causal):
    variant = ac.variant(key)
    matrix, title, summary, formula, end, costs, further, _ = home[variant.title]
    assert title == f"<details><summary>{variant.title}</summary>"
    assert f'role="img" aria-label="{variant.title}: its matrix on the same 32 tokens"' in matrix
    assert summary == variant.summary
    assert formula.strip("$\n ") == variant.formula
    assert end == "</details>"
    assert costs == f'<p class="costs">time {variant.complexity} · causal: {causal}</p>'
    compare, *apart = ways(further)
    assert compare == ("matrices", {"variants": list(dict.fromkeys(["softmax", key]))}, "Compare it with softmax")
    expected = ("inside", {"inside": [key]}, "Take it apart")
    assert apart == [expected] * bool(variant.anatomy)


def test_every_row_has_all_its_parts_and_ends(home):
    for variant in ac.all_variants():
        parts = home[variant.title]
        assert parts[-1] == "</div>", "a blank line within a part would end it early"
        assert len(parts) == 8


@pytest.mark.parametrize("key", ["softmax", "linear", "relu2", "nystrom"])
def test_a_row_shows_its_own_matrix(home, key):
    qkv = gallery.SAMPLE.load()
    own = ac.get(key).weights(qkv.q, qkv.k)[0].numpy()
    [packed] = re.findall(r"base64,([^)]*)\)", home[ac.variant(key).title][0])
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(packed))))
    assert shown.shape == (32, 32, 3)
    np.testing.assert_allclose(shown, picture(own, dark=False, side=1), atol=1)


def test_a_second_visitor_costs_no_picture_and_few_messages(monkeypatch):
    open_page("home")
    drawn = []
    monkeypatch.setattr(gallery, "picture", lambda *given, **told: drawn.append(given) or picture(*given, **told))
    at = open_page("home")
    assert drawn == []
    sent = Counter(each.type for each in at.main)
    assert sum(sent.values()) <= 45, sent  # one element for all rows; each element takes 1/3 ms to send
