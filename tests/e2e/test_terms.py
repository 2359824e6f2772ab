"""A browser test of glossary terms: a tooltip explains them on hover and focus, except in text that a visitor typed."""

from browser import settle, switch, visit
from playwright.sync_api import expect

from app.state.session import write_text
from app.words import glossary

[WORD] = write_text("The head of the kernel wrote a causal letter.")
TERM = "matrix error"
MEANING = next(entry.definition for entry in glossary.ENTRIES if TERM in entry.forms.split("|"))


def terms(page, word=None):
    return page.locator(".glossary-term", has_text=word)


def test_a_term_has_a_tooltip_and_typed_text_has_no_tooltip(page, server):
    visit(page, f"{server}/error?input=synthetic&n=128&heads=2&variants=softmax&variants=local")
    expect(terms(page, TERM)).to_have_count(1)
    sentence = page.get_by_test_id("stMain").locator("p, li", has=terms(page, TERM)).last
    message, bubble = sentence.inner_text(), page.get_by_role("tooltip")
    terms(page, TERM).hover()
    expect(bubble).to_have_text(MEANING)
    page.mouse.move(2, 2)
    expect(bubble).to_have_count(0)
    terms(page, TERM).focus()
    expect(bubble).to_have_text(MEANING)
    expect(terms(page, TERM)).to_have_attribute("aria-describedby", "glossary-meaning")
    page.keyboard.press("Escape")
    expect(bubble).to_have_count(0)

    switch(page, "Causal")  # Streamlit replaces the sentence, and no part of the old sentence remains.
    expect(sentence).not_to_have_text(message)
    assert sentence.inner_text().count(TERM) == message.count(TERM)
    switch(page, "Causal")
    expect(sentence).to_have_text(message)

    visit(page, f"{server}/matrices?text={WORD}&row=2&special=1")
    settle(page)
    quoted = page.get_by_test_id("stMain").get_by_text("“head”").first
    expect(quoted).to_be_visible()
    page.wait_for_timeout(600)  # In this time, the script marks the terms in new text.
    assert (
        terms(page).evaluate_all("(found) => found.filter((each) => each.previousSibling?.data.endsWith('“')).length")
        == 0
    )
