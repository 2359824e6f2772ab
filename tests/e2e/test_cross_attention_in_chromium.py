"""A browser test of cross-attention: matrices of an uploaded file with queries and keys of different sequences."""

import re

import numpy as np
import pytest
from browser import BOARD, open_input, settle, visit
from playwright.sync_api import expect

DRAW = np.random.default_rng(5)
Q, K = DRAW.normal(size=(1, 6, 8)), DRAW.normal(size=(1, 11, 8))
WORDS = [f"key{j}" for j in range(11)]
TIP = re.compile(r"query (\d+) “t\1” → key (\d+) “key\2”")


def test_a_rectangular_board_shows_values_and_its_text_has_the_keys(server, newly_opened, tmp_path):
    np.savez(tmp_path / "cross.npz", q=Q, k=K, v=K, key_tokens=np.array(WORDS))
    page = newly_opened
    visit(page, f"{server}/matrices?input=upload&variant=softmax&variant=linear")
    open_input(page)
    page.set_input_files("input[type=file]", tmp_path / "cross.npz")
    canvas = page.locator(f"{BOARD} figure canvas").first
    expect(canvas).to_be_visible()
    settle(page)
    logits = Q[0] @ K[0].T / 8**0.5
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 0.97 * box["height"])
    tip = page.locator(f"{BOARD} .tip")
    expect(tip).to_contain_text(TIP)
    row, col = map(int, TIP.search(tip.inner_text()).groups())
    assert (row, col) == (5, 10)
    shown = tip.locator(".what").inner_text().removeprefix("weight ")
    assert float(shown.removesuffix("%")) / 100 == pytest.approx(weights[5, 10], rel=5e-3)
    page.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 0.97 * box["height"])
    heading = page.locator(".strips .heading")
    expect(heading).to_have_text("Weights of query “t5”")
    words = page.locator(".strips .strip").first.locator("[data-j]")
    assert words.all_inner_texts() == WORDS
    # The words of the text are keys, so a click on a word pins no query.
    words.nth(3).click()
    settle(page)
    expect(heading).to_have_text("Weights of query “t5”")
    shown = page.locator(".strips .at").first.inner_text()
    assert shown.startswith("“key3” "), shown
    assert float(shown.split()[1].removesuffix("%")) / 100 == pytest.approx(weights[5, 3], rel=5e-3)
