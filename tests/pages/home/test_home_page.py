"""Tests of Home: the links to every page, and the gallery of all variants."""

import base64
import html
import io
import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from driver import chosen, open_page, set_state, ways
from PIL import Image

import attention_core as ac
from app.figures.picture import data_url, picture
from app.lessons.shipped import all_lessons
from app.page import SECTIONS, discover
from app.ui import matrix_picture
from app.ui.lazy import OPEN_FORMS
from app.words.labels import complexity_letters, family_summary, family_title

ROW = '<div class="variant">'
OPENING = {
    "matrices": {"row": ["opening"]},
    "masks": {"front_way": ["hears"]},
    "entropy": {"h_base": ["64"], "h_measure": ["keys"]},
    "error": {"against": ["cost"], "fidelity": ["output"]},
    "causal": {"c_view": ["overview"]},
    "inside": {"step": ["0"]},
    "picture": {"p_below": ["budget"]},
    "timing": {"t_side": ["work"]},
    "learn": {"l_layer": ["0"]},
}
"""Options whose value on a first visit differs from their value in an address without them."""


def rows(at):
    """Return the rows of all open families by title, as parts of Markdown."""
    found = "".join(each.value for each in at.markdown if ROW in each.value)
    split = [each.strip().split("\n\n") for each in found.split(ROW)[1:]]
    return {re.search("<summary>(.*)</summary>", each[1])[1]: each[: each.index("</div>") + 1] for each in split}


def of(family):
    return [v.title for v in ac.all_variants() if v.family == family]


def test_the_gallery_names_every_family_and_its_size():
    labels = [each.label for each in open_page("home").expander]
    assert labels == [f"**{family_title(f)}** ({len(of(f))}) · {family_summary(f)}" for f in ac.families()]


def test_the_gallery_has_a_row_for_every_variant_by_family():
    assert list(rows(open_page("home"))) == [title for family in ac.families() for title in of(family)]


def test_rows_of_a_family_are_drawn_when_it_is_open():
    at = open_page("home", **{OPEN_FORMS: ()})
    assert rows(at) == {}
    at = set_state(at, family=["kernel"])
    assert list(rows(at)) == of("kernel")


@pytest.mark.parametrize("family", ac.families())
def test_every_letter_of_a_complexity_is_explained(family):
    formulas = " ".join(each.complexity for each in ac.all_variants() if each.family == family).replace("log", "")
    explained = {*re.findall(r"\b(\w): ", complexity_letters(family))}
    assert explained == {letter for letter in formulas if letter.isalpha()} | {"n", "d"}


@pytest.mark.parametrize("families", [["sparse"], ["dense", "mixed"]])
def test_a_link_opens_the_families_that_it_names(families):
    at = open_page("home", {"family": families}, **{OPEN_FORMS: ()}, family=families)
    assert list(rows(at)) == [title for family in families for title in of(family)]
    assert [each.proto.expanded for each in at.expander] == [family in families for family in ac.families()]


def questions(at):
    """Return the links to the pages as HTML, by section."""
    [found] = [each.value for each in at.markdown if '<nav class="questions"' in each.value]
    return dict(re.findall(r"<div><b>(.*?)</b><ul>(.*?)</ul></div>", found))


def page_and_query(link):
    """Return the page and the query parameters of a link in HTML."""
    address = urlsplit(html.unescape(link))
    return address.path, parse_qs(address.query)


def test_home_links_to_every_page_by_question_and_section():
    shown = questions(open_page("home"))
    assert list(shown) == list(SECTIONS)
    for section, links in shown.items():
        pages = {key: page for key, page in discover().items() if page.section == section}
        found = re.findall(r'href="(.*?)"><b>(.*?)</b> (.*?)</a>', links)
        assert [page_and_query(link)[0] for link, _, _ in found] == list(pages)
        assert [words for _, *words in found] == [[page.title, html.escape(page.question)] for page in pages.values()]


def test_home_offers_beginners_the_first_lesson():
    [top] = [each.proto.body for each in open_page("home").get("html") if "New here?" in each.proto.body]
    [link] = re.findall(r'href="(.*?)">New here\? Start lesson 1 →</a>', top)
    first = next(iter(all_lessons().values()))
    assert page_and_query(link)[0] == first.steps[0].page
    assert page_and_query(link)[1]["lesson"] == [first.key]
    [every] = re.findall(rf'href="([^"]*?)">All {len(all_lessons())} lessons →</a>', top)
    assert page_and_query(every)[0] == "lessons"


def test_links_on_home_keep_the_input():
    at = open_page("home", input="synthetic", n=20, variants=chosen("softmax", "local"))
    carried = {"input": ["synthetic"], "n": ["20"], "variants": ["softmax", "local"]}
    for links in questions(at).values():
        for link in re.findall(r'href="(.*?)"', links):
            page, query = page_and_query(link)
            assert query == carried | OPENING.get(page, {})
    for page, query, _ in ways(*rows(at)["BigBird"]):
        own = {"variants": ["softmax", "bigbird"]} if page == "matrices" else {"inside": ["bigbird"], "step": ["0"]}
        assert query == carried | own


@pytest.fixture(scope="module")
def home():
    return rows(open_page("home"))


@pytest.mark.parametrize(("key", "causal"), [("softmax", "can"), ("linear", "can"), ("linformer", "cannot")])
def test_a_row_describes_its_variant(home, key, causal):
    variant = ac.variant(key)
    matrix, title, summary, formula, end, costs, further, _ = home[variant.title]
    assert title == f"<details><summary>{variant.title}</summary>"
    assert f'role="img" aria-label="{variant.title}: attention matrix on the same 32 tokens"' in matrix
    assert summary == variant.summary
    assert formula.strip("$\n ") == variant.formula
    assert end == "</details>"
    assert costs == f'<p class="costs">time O({variant.complexity}) · {causal} be causal</p>'
    compare, *apart = ways(further)
    assert compare == ("matrices", {"variants": list(dict.fromkeys(["softmax", key]))}, "Compare it with softmax")
    expected = ("inside", {"inside": [key], "step": ["0"]}, "See it step by step")
    assert apart == [expected] * bool(variant.anatomy)


def test_every_row_is_complete(home):
    for variant in ac.all_variants():
        parts = home[variant.title]
        assert parts[-1] == "</div>", "a blank line within a part would end it early"
        assert len(parts) == 8


@pytest.mark.parametrize("key", ["softmax", "linear", "relu2", "nystrom"])
def test_a_row_shows_the_matrix_of_its_variant(home, key):
    qkv = matrix_picture.SAMPLE.load()
    own = ac.get(key).weights(qkv.q, qkv.k)[0].numpy()
    [packed] = re.findall(r"base64,([^)]*)\)", home[ac.variant(key).title][0])
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(packed))))
    assert shown.shape == (32, 32, 3)
    np.testing.assert_allclose(shown, picture(own, dark=False, side=1), atol=1)


def test_a_family_shows_the_matrices_of_its_first_variants():
    [sheet] = [each.proto.body for each in open_page("home").get("html") if "--matrices" in each.proto.body]
    for family in ac.families():
        first = [each for each in ac.all_variants() if each.family == family][:4]
        [pictures] = re.findall(rf"\.st-key-home-family-{family} {{ --matrices: (.*?); }}", sheet)
        assert pictures.split(", ") == [f"url({matrix_picture.matrix_picture(each.key, dark=False)})" for each in first]


def test_pictures_are_cached_for_the_second_visitor(monkeypatch):
    open_page("home")
    drawn = []
    monkeypatch.setattr(
        matrix_picture, "data_url", lambda *given, **text: drawn.append(given) or data_url(*given, **text)
    )
    at = open_page("home")
    assert drawn == []
    sent = Counter(each.type for each in at.main)
    assert sum(sent.values()) <= 36, sent  # one element for a family's rows; each element takes 1/3 ms to send
