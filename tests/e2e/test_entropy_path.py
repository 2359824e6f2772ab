"""Browser tests of the Entropy page: a link, all views, downloads, and a measurement that is stopped."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import NAMED, chart, legend, press, query, rows, saved, settle, visit, words
from playwright.sync_api import expect

import attention_core as ac

LINK = "?input=synthetic&heads=2&variants=softmax&variants=local&h_longest=256&h_seeds=1"


def downloaded(page, name):
    """Return the last chart as an image file, downloaded with the chart's button."""
    with page.expect_download() as waiting:
        chart(page).hover()
        chart(page).locator(".modebar-btn").first.click()
    assert waiting.value.suggested_filename == name
    return Path(waiting.value.path()).read_bytes()


def test_a_link_leads_through_every_view_to_a_file(page, server, other_page):
    visit(page, f"{server}/entropy{LINK}")
    expect(page.get_by_text("tokens, a smaller share of all keys")).to_be_visible()
    assert legend(page) == ["Softmax", "Local · window 16", "Softmax, log n scaling", "equal weights on all keys"]

    name, lit = chart(page).locator(NAMED).first, chart(page).locator(".trace.lit")
    name.focus()
    expect(lit).to_have_count(2)  # They are the line and its band.
    for band, is_visible in zip(chart(page).locator(".trace.band").all(), (True, False, False), strict=True):
        expect(band).to_have_css("opacity", "0.2" if is_visible else "0")
    name.press("Enter")
    name.blur()
    expect(lit).to_have_count(2)  # Enter has pinned the highlight of the line.
    name.press("Enter")
    name.blur()
    expect(lit).to_have_count(0)

    press(page, "Settings")
    page.get_by_role("combobox", name="Vertical axis").click()
    page.get_by_role("option", name="Normalised H / log n").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Log n scaling", exact=True).click()
    page.get_by_text("Without 1/√d", exact=True).click()
    page.keyboard.press("Escape")
    expect(chart(page).locator(NAMED, has_text="without 1/√d")).to_be_visible()
    settle(page)
    assert {"h_measure=normalised", "h_scales=log_n", "h_scales=unscaled"} <= words(page)
    visit(other_page, f"{server}/entropy?{query(page)}")
    assert legend(other_page) == legend(page)
    assert words(other_page) == words(page)

    page.get_by_text("Export", exact=True).click()
    found = rows(saved(page, "Numbers (CSV)"))
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=128, heads=2))
    expected = ac.metrics.entropy(ac.get("local").weights(qkv.q, qkv.k)).mean(-1)
    [row] = [r for r in found if (r["variant"], r["n"], r["head"]) == ("local", "128", "1")]
    assert float(row["entropy (nats)"]) == pytest.approx(float(expected[1]), abs=1e-5)
    assert downloaded(page, "entropy.png").startswith(b"\x89PNG")

    page.get_by_text("Row totals by length", exact=True).click()
    expect(page.get_by_text("grow approximately as")).to_be_visible()
    settle(page)
    assert "h_view=normalizer" in query(page)

    page.get_by_text("Entropy by logit scale", exact=True).click()
    expect(page.get_by_text("Multiplying all logits by λ = 4 sharpens softmax")).to_be_visible()
    settle(page)
    page.get_by_role("slider").last.press("ArrowRight")
    expect(page.get_by_text("Multiplying all logits by λ = 5.66 sharpens softmax")).to_be_visible()
    settle(page)
    assert "h_factor=5.66" in query(page)


def test_a_saved_chart_states_its_origin(page, server):
    visit(page, f"{server}/entropy{LINK}&picture=svg")
    drawn = ElementTree.fromstring(downloaded(page, "entropy.svg"))
    texts = ["".join(text.itertext()) for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert (
        "Attention Lab · Does attention spread over more keys as the text grows? · Locally correlated · median of 2 "
        "heads" in texts[-2]
    )
    assert texts[-1] == page.url
    assert any("equal weights on" in each for each in texts), "the lines' names are in it"


def test_a_long_sweep_shows_points_immediately_and_keeps_them_if_stopped(page, server):
    visit(page, f"{server}/entropy?input=synthetic&h_longest=4096&h_seeds=4", until=re.compile("share of all keys"))
    press(page, "Stop")
    expect(page.get_by_text("Stopped after")).to_be_visible()
    settle(page)
    assert len(legend(page)) == 10
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    page.get_by_text("Numbers", exact=True).click()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
