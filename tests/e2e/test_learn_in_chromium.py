"""A browser test of the Learn page: recorded results, training, the slider of steps, and the trained model as input."""

from browser import press, settle, visit
from playwright.sync_api import expect

PATIENCE = 60_000
"""Milliseconds within which two models train for 50 steps."""


def test_models_are_trained_and_one_opens_on_matrices(page, server):
    visit(page, f"{server}/learn?variants=softmax&variants=linear&l_steps=50&l_view=attention")
    press(page, "Train on this server")
    expect(page.get_by_text("Trained on this server.")).to_be_visible(timeout=PATIENCE)
    matrices = page.locator(".checkpoints img")
    expect(matrices).to_have_count(2)
    trained = [each.get_attribute("src") for each in matrices.all()]
    page.get_by_role("slider", name="Training step").press("Home")
    expect(page.locator(".checkpoints")).to_contain_text("step 0")
    settle(page)
    assert not set(trained) & {each.get_attribute("src") for each in matrices.all()}
    page.get_by_role("button", name="Open in Matrices").click()
    page.get_by_role("link", name="Softmax", exact=True).click()
    expect(page.get_by_text("Associative recall with Softmax, 50 steps").first).to_be_visible(timeout=PATIENCE)
