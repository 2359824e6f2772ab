"""Home: what leads to every page, and the gallery of all variants."""

from driver import links, open_page

import attention_core as ac
from app.page import discover


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
