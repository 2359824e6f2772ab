"""Browser tests of Windows' high contrast mode, which removes backgrounds: selections and weights must stay visible."""

import re

import numpy as np
import pytest
from browser import colours, counts, open_input, picture, pictures, press, settle, visit
from playwright.sync_api import expect

SWITCH = '[data-testid="stCheckbox"] label:has([aria-label="Causal"]) > span + div'


@pytest.fixture(params=["light", "dark"])
def forced(page, request):
    page.emulate_media(forced_colors="active", color_scheme=request.param)
    yield page
    page.emulate_media(forced_colors="none")


def commonest(image):
    """Return the most frequent colour of a picture."""
    return max(counts(image))[1]


def contrast(one, others):
    """Return the largest contrast of a colour to other colours, as WCAG 2 defines it."""

    def luminance(colours):
        shares = np.atleast_2d(colours) / 255
        return np.where(shares <= 0.03928, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)

    ground, found = luminance(one) + 0.05, luminance(others) + 0.05
    return (np.maximum(ground, found) / np.minimum(ground, found)).max()


def readable(image):
    """Return whether some pixels of a word have a contrast of at least 4.5 to the background."""
    return contrast(commonest(image), list(colours(image))) >= 4.5


def test_the_selected_segment_and_the_causal_switch_are_visible(forced, server):
    visit(forced, f"{server}/matrices?input=synthetic&n=16&heads=1&variants=softmax")
    open_input(forced)
    group = forced.get_by_role("radiogroup", name="Input", exact=True)
    chosen, other = group.get_by_role("radio", name="Synthetic"), group.get_by_role("radio", name="File")
    assert contrast(commonest(picture(chosen)), commonest(picture(other))) > 2
    assert readable(picture(chosen))
    switch = forced.locator(SWITCH)
    off = commonest(picture(switch))
    assert len(colours(picture(switch))) > 1
    forced.get_by_role("switch", name="Causal").press("Space")
    settle(forced)
    assert contrast(commonest(picture(switch)), off) > 2


def test_the_word_strips_show_weights_in_colours_on_which_words_are_readable(forced, server):
    visit(forced, f"{server}/matrices?variants=softmax&variants=local")
    text = forced.locator(".strips .text").first
    expect(text.locator(".word").first).to_be_visible()
    words = pictures(text, ".word")
    assert len({commonest(word) for word in words}) > 4
    assert all(readable(word) for word in words)


def test_the_sentence_on_home_shows_weights_behind_its_words(forced, server):
    visit(forced, server)
    words = pictures(forced.locator(".sentence .text").first, ".word")
    assert len({commonest(word) for word in words}) > 2
    assert all(readable(word) for word in words)


def test_tokens_the_chosen_variant_and_the_layers_are_visible_on_model(forced, server):
    visit(forced, f"{server}/model")
    ground = commonest(picture(forced.locator(".loss")))
    choices = forced.locator(".choice [role=radio]")
    chosen, other = picture(choices.nth(0)), picture(choices.nth(1))
    assert contrast(commonest(chosen), commonest(other)) > 2
    assert readable(chosen)
    tokens = forced.locator(".token")
    late = [picture(tokens.nth(i)) for i in range(70, 85)]  # A window of 64 tokens changes only later tokens.
    assert len({commonest(token) for token in late}) > 3
    press(forced, re.compile("^Text: "))
    thumbs = forced.locator('[data-testid="stSlider"] [role="group"] > div > [data-rac]')
    expect(thumbs.first).to_be_visible()
    assert contrast(commonest(picture(thumbs.first)), ground) > 2


def test_the_words_on_inside_keep_the_colours_of_their_groups(forced, server):
    visit(forced, f"{server}/inside?variants=nystrom")
    text = forced.locator(".token-kinds").first
    expect(text.locator("span[data-token]").first).to_be_visible()
    words = pictures(text, "span[data-token]")
    assert len({commonest(word) for word in words}) > 1
    assert all(readable(word) for word in words)
