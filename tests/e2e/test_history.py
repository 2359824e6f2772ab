"""Browser tests of back and forward: each action of a visitor is one step of the browser's history."""

from browser import query, settle, switch, visit
from playwright.sync_api import expect


def causal(page):
    return page.get_by_role("switch", name="Causal", exact=True)


def entries(page):
    return page.evaluate("history.length")


def step(page, by):
    """Press the browser's back or forward button once."""
    page.go_back() if by < 0 else page.go_forward()
    page.wait_for_timeout(300)
    settle(page)


def test_one_step_back_undoes_what_was_done_last_and_one_forward_does_it_again(newly_opened, server):
    page = newly_opened
    visit(page, f"{server}/timing?variants=softmax")
    page.get_by_text("Causal", exact=True).click()
    page.wait_for_url("**/timing?variants=softmax&causal=1")
    settle(page)
    page.get_by_text("Memory", exact=True).first.click()
    page.wait_for_url("**t_side=memory")
    settle(page)
    before = entries(page)
    page.get_by_test_id("stTopNavLink").filter(has_text="Home").click()
    expect(page.get_by_text("All variants")).to_be_visible()
    settle(page)
    assert entries(page) == before + 1
    assert query(page) == "variants=softmax&causal=1"

    step(page, -1)
    expect(page).to_have_url(f"{server}/timing?variants=softmax&causal=1&t_side=memory")
    expect(page.get_by_role("radio", name="Memory", exact=True)).to_be_checked()
    step(page, -1)
    expect(page).to_have_url(f"{server}/timing?variants=softmax&causal=1")
    expect(page.get_by_role("radio", name="Memory", exact=True)).not_to_be_checked()
    expect(causal(page)).to_be_checked()
    step(page, -1)
    expect(page).to_have_url(f"{server}/timing?variants=softmax")
    expect(causal(page)).not_to_be_checked()
    for there, more in (("timing", ""), ("timing", "&t_side=memory"), ("", "")):
        step(page, +1)
        expect(page).to_have_url(f"{server}/{there}?variants=softmax&causal=1{more}")
    expect(page.get_by_text("All variants")).to_be_visible()


def test_a_page_reached_by_a_link_on_another_is_one_step_away(newly_opened, server):
    page = newly_opened
    visit(page, f"{server}/?causal=1&family=sparse")
    before = entries(page)
    page.get_by_test_id("stMain").get_by_role("link", name="Timing").click()
    page.wait_for_url("**/timing?causal=1")
    settle(page)
    assert entries(page) == before + 1
    step(page, -1)
    assert query(page) == "causal=1&family=sparse"
    expect(page.get_by_text("All variants")).to_be_visible()


def test_a_link_that_is_put_right_leaves_no_step_behind(newly_opened, server):
    page = newly_opened
    visit(page, server)
    before = entries(page)
    visit(page, f"{server}/timing?t_from=65")
    expect(page.get_by_text("The link contains values that are not valid")).to_be_visible()
    assert entries(page) == before + 1
    page.get_by_text("Causal", exact=True).click()
    page.wait_for_url("**/timing?causal=1")
    settle(page)
    assert entries(page) == before + 2


def test_on_a_phone_too_a_notice_stands_until_something_is_moved(phone, server):
    told = phone.get_by_text("The link contains values that are not valid")
    visit(phone, f"{server}/causal?c_at=zz&input=synthetic&n=24&heads=2")
    settle(phone)  # The browser has reported a narrow screen, and line labels have moved below the chart.
    expect(told).to_be_visible()
    assert "c_at" not in query(phone)
    switch(phone, "Generation")
    expect(told).to_have_count(0)
