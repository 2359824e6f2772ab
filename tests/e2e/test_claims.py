"""Browser tests of the Claims page: claims are checked when the page opens, and a link opens the numbers of a claim."""

import re
import time

from browser import NAMED, SIDEWAYS, open_input, press, query, rows, saved, settle, visit, words
from playwright.sync_api import expect

from attention_core import claims
from attention_core.inputs import SyntheticSource, SyntheticSpec

COUNT = len(claims.all_claims())
SEEDS = iter((0, 1))
"""Seeds of the input: a second attempt needs another one, because the server keeps the result of the first."""

SEEN = """(({ top }) => top >= 0 && top <= innerHeight / 2)(
    document.querySelector(".st-key-claims-panel-cosine_closest").getBoundingClientRect())"""
"""JavaScript that returns whether the opened panel begins in the upper half of the screen."""
SENTENCE = re.compile(r"(No claim that depends on your input is tested|\d+ of \d+ tested claims that .* holds?)\.")


def sentence(page):
    return page.get_by_text(SENTENCE)


def openers(page):
    return page.locator('[class*="st-key-claims-open-"] button')


def test_a_claim_is_opened_from_its_verdict_and_by_its_link(page, server, phone):
    seed = next(SEEDS)
    source = SyntheticSource(SyntheticSpec(n=40, d=8, heads=2, seed=seed))
    visit(page, f"{server}/claims?input=synthetic&n=40&d=8&heads=2&head=-1&seed={seed}")
    expect(sentence(page)).to_be_visible(timeout=60_000)
    settle(page)
    press(page, "Run 1 more check")
    # As in `settle`, the check waits until a processor is idle.
    expect(page.get_by_text(re.compile(r"\d+ not run"))).to_have_count(0, timeout=180_000)
    settle(page)
    assert "check=1" in query(page)
    found = rows(saved(page, "All claims (CSV)"))
    assert [row["number"] for row in found] == [str(number) for number in range(1, COUNT + 1)]
    fixed = {str(claim.number) for claim in claims.all_claims() if claim.theorem}
    varying = [row for row in found if row["number"] not in fixed]
    held = [row for row in varying if row["verdict"] == "holds"]
    tested = [row for row in varying if row["verdict"] != "not testable on this input"]
    assert f"{len(held)} of {len(tested)} tested claims that depend on your input hold" in sentence(page).inner_text()

    filters = page.locator(".st-key-headline-claims-all")
    filters.get_by_text(re.compile("partly holds?")).click()
    settle(page)
    partly = [row for row in found if row["verdict"] == "holds partly"]
    expect(openers(page)).to_have_count(len(partly))
    assert "verdict=partly" in query(page)
    filters.get_by_text("All 35", exact=True).click()
    settle(page)

    tile = page.locator('[class*="st-key-claims-index-"] a[href="#?claim=cosine_closest"]')
    cosine = claims.claim("cosine_closest")
    name = re.compile(rf"^{cosine.number}: {re.escape(cosine.short)} \(")
    expect(tile).to_have_accessible_name(name)
    tile.hover()
    expect(page.get_by_role("tooltip")).to_have_text(name)
    tile.press("Enter")
    panel = page.locator(".st-key-claims-panel-cosine_closest")
    expect(panel.locator(NAMED, has_text="output")).to_be_visible()
    settle(page)
    page.wait_for_function(f"() => {SEEN}")
    assert "claim=cosine_closest" in query(page)
    expect(openers(page)).to_have_count(0)
    press(page, "Close")
    settle(page)
    expect(panel).to_have_count(0)
    assert "claim=" not in query(page)
    page.go_back()
    settle(page)
    expect(panel).to_be_visible()
    [task] = claims.tasks(source, keys=["cosine_closest"])
    [outcome] = claims.run(task)
    text = outcome.claim.formatted_numbers(outcome.numbers)
    count = f"{round(outcome.heads * outcome.numbers['heads'] / 100)} of {outcome.heads} heads"
    expect(panel.get_by_text("Measured (required):")).to_contain_text(count.removesuffix(" heads"))
    panel.get_by_text("Experiment and rule").click()
    expect(panel.get_by_text("A kernel is a function of query and key")).to_be_visible()
    assert len(rows(saved(page, "Rows (CSV)"))) == len(outcome.rows)

    visit(phone, f"{server}/claims?{query(page)}")
    finding = outcome.claim.finding.replace("{heads}% of the heads", count)
    expect(phone.get_by_text(finding.format(**text))).to_be_visible()
    phone.wait_for_function(f"() => {SEEN}")
    assert phone.evaluate(SIDEWAYS) <= 390

    page.get_by_role("link", name="Open in Matrices").click()
    expect(page.get_by_text("What does each variant attend to?")).to_be_visible()
    settle(page)
    assert {"n=40", "variants=softmax", "variants=cosine"} <= words(page)


def test_checks_can_be_stopped_and_continued(page, server):
    # The input has a new seed in each run of this test, so that no result is cached.
    visit(page, f"{server}/claims?input=synthetic&n=512&heads=12&seed={time.time_ns() % 2**31}", until=SENTENCE)
    stopped = page.get_by_text(re.compile(rf"Stopped after \d+ of {COUNT - 1} results"))
    press(page, "Stop")
    expect(stopped).to_be_visible(timeout=60_000)
    settle(page)
    expect(page.get_by_text(re.compile(r"\d+ not run"))).to_be_visible()
    press(page, "Continue")
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_be_visible()
    expect(stopped).to_have_count(0)
    press(page, "Stop")
    expect(stopped).to_be_visible(timeout=60_000)
    settle(page)


def test_a_filter_keeps_the_input_of_a_first_visit(page, server):
    visit(page, f"{server}/claims", until=SENTENCE)
    settle(page)
    shown = page.locator(".st-key-question a").inner_text()
    page.locator(".st-key-headline-claims-all").get_by_text(re.compile("untestable")).click()
    page.wait_for_url("**verdict=untestable**")
    settle(page)
    assert page.locator(".st-key-question a").inner_text() == shown


def test_an_open_sidebar_moves_the_filter_but_does_not_cover_it(page, server):
    visit(page, f"{server}/claims?input=synthetic&n=32&heads=1")
    page.set_viewport_size({"width": 1440, "height": 900})
    open_input(page)
    settle(page)
    button = page.locator(".st-key-claims-check").bounding_box()
    for link in page.locator(".st-key-controls-claims a").all():
        box = link.bounding_box()
        assert box["x"] + box["width"] <= button["x"] or box["y"] + box["height"] <= button["y"], link.inner_text()
