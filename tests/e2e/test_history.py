"""Browser tests of the back and forward buttons: each action of the visitor is one step in the browser's history."""

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


def test_back_undoes_the_last_action_and_forward_repeats_it(newly_opened, server):
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


def test_following_a_link_adds_one_step_to_the_history(newly_opened, server):
    page = newly_opened
    visit(page, f"{server}/?causal=1&family=sparse")
    before = entries(page)
    page.get_by_test_id("stMain").get_by_role("link", name="Timing").click()
    page.wait_for_url("**/timing?causal=1&t_side=work")
    settle(page)
    assert entries(page) == before + 1
    step(page, -1)
    assert query(page) == "causal=1&family=sparse"
    expect(page.get_by_text("All variants")).to_be_visible()


def test_correcting_a_link_adds_no_step_to_the_history(newly_opened, server):
    page = newly_opened
    visit(page, server)
    before = entries(page)
    visit(page, f"{server}/timing?t_from=65")
    expect(page.get_by_text("The link contains values that this page does not accept")).to_be_visible()
    assert entries(page) == before + 1
    page.get_by_text("Causal", exact=True).click()
    page.wait_for_url("**/timing?causal=1")
    settle(page)
    assert entries(page) == before + 2


def test_a_notice_stays_on_a_phone_until_a_control_is_changed(phone, server):
    text = phone.get_by_text("The link contains values that this page does not accept")
    visit(phone, f"{server}/causal?c_at=zz&input=synthetic&n=24&heads=2")
    settle(phone)  # In this time, the browser reports a narrow screen, which causes a second run.
    expect(text).to_be_visible()
    assert "c_at" not in query(phone)
    switch(phone, "Generation")
    expect(text).to_have_count(0)
