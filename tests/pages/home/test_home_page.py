"""Home: what leads to every page, and the gallery of all variants."""

from urllib.parse import parse_qs

import numpy as np
import pytest
from driver import chosen, links, open_page

import attention_core as ac
from app.figures.picture import picture
from app.naming import family_title
from app.page import SECTIONS, discover
from pages.home import gallery


def test_the_gallery_has_a_card_for_every_variant():
    at = open_page("home")
    shown = " ".join(m.value for m in at.markdown)
    for variant in ac.all_variants():
        assert f"**{variant.title}**" in shown
        assert variant.summary in shown


def test_the_gallery_filters_by_family():
    at = open_page("home", family="sparse")
    shown = " ".join(m.value for m in at.markdown)
    assert "**Local**" in shown
    assert "**Softmax**" not in shown


def test_home_leads_to_every_page_by_its_question():
    at = open_page("home")
    shown = [(link.page, link.label) for link in links(at)]
    for key, page in discover().items():
        if key != "home":
            assert (key, f"**{page.title}** · {page.question}") in shown


def test_pages_stand_under_their_sections_and_take_the_input_along():
    at = open_page("home", input="synthetic", n=20, variants=chosen("softmax", "local"))
    contents = [each for each in at.main if each.type in ("markdown", "page_link")]
    ways = links(at)
    for section in SECTIONS:
        start = [each.value for each in contents if each.type == "markdown"].index(f"**{section}**")
        assert start == SECTIONS.index(section) + 1  # after what the page is
        place = next(i for i, each in enumerate(contents) if getattr(each, "value", "") == f"**{section}**")
        pages = [key for key, page in discover().items() if page.section == section]
        assert [each.proto.page for each in contents[place + 1 : place + 1 + len(pages)]] == pages
        assert contents[place + 1 + len(pages)].type != "page_link"
    for way in ways[: len(discover()) - 1]:
        assert parse_qs(way.query_string) == {"input": ["synthetic"], "n": ["20"], "variants": ["softmax", "local"]}
        assert way.icon == discover()[way.page].icon


def card(at, variant):
    """What stands on a variant's card, from its name to the next."""
    elements = [each for each in at.main if each.type in ("markdown", "latex", "caption", "page_link")]
    starts = [i for i, each in enumerate(elements) if ":gray-badge[" in getattr(each, "value", "")]
    [start] = [i for i in starts if elements[i].value.startswith(f"**{variant.title}**")]
    return elements[start : min([i for i in starts if i > start], default=None)]


@pytest.fixture(scope="module")
def home():
    return open_page("home")


@pytest.mark.parametrize(("key", "causal"), [("softmax", "yes"), ("linear", "yes"), ("linformer", "no")])
def test_a_card_is_about_its_variant(home, key, causal):
    variant = ac.variant(key)
    title, summary, formula, costs, compare, *apart = card(home, variant)
    assert title.value == f"**{variant.title}**  :gray-badge[{family_title(variant.family)}]"
    assert summary.value == variant.summary
    assert formula.value.strip("$\n ") == variant.formula
    assert costs.value == f"time {variant.complexity} · causal: {causal}"
    assert (compare.proto.page, compare.proto.label) == ("matrices", "Compare it with softmax")
    assert parse_qs(compare.proto.query_string)["variants"] == list(dict.fromkeys(["softmax", key]))
    assert [way.proto.label for way in apart] == ["Take it apart"] * bool(variant.anatomy)


def test_a_card_shows_its_own_matrix(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        gallery, "picture", lambda weights, *, dark: drawn.append(weights) or picture(weights, dark=dark)
    )
    open_page("home", family="kernel")
    qkv = gallery.SAMPLE.load()
    own = [ac.get(v.key).weights(qkv.q, qkv.k)[0].numpy() for v in ac.all_variants() if v.family == "kernel"]
    for shown, wanted in zip(drawn, own, strict=True):
        np.testing.assert_allclose(shown, wanted, atol=1e-6)


def test_a_family_shows_all_of_its_own_and_nothing_else():
    at = open_page("home", family="low_rank")
    shown = [m.value.split("**")[1] for m in at.markdown if ":gray-badge[" in m.value]
    assert shown == [v.title for v in ac.all_variants() if v.family == "low_rank"]
    assert len(set(shown)) > 1
