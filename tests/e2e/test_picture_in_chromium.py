"""Browser tests of the Picture page, which shows an image as several variants return it: maps, sliders and files."""

import io
import re

import pytest
from browser import drawn, on, open_input, point_at, query, saved, settle, visit
from PIL import Image
from playwright.sync_api import expect

LINK = "picture?grid=16&p_squares=0&variants=softmax&variants=linear&variants=local~window~2"
COUNT = """() => {
    const send = WebSocket.prototype.send;
    window.sent = 0;
    WebSocket.prototype.send = function (message) {
        window.sent += 1;
        return send.call(this, message);
    };
}"""
"""JavaScript that counts the messages to the server in ``window.sent`` from now on."""


def tile(page, title):
    """Return the image of a variant on the board."""
    return page.locator("figure").filter(has=page.locator(".title").get_by_text(title, exact=True))


@pytest.fixture
def pictures(page, server):
    visit(page, f"{server}/{LINK}")
    expect(tile(page, "Local")).to_be_visible()
    return page


def test_pointing_at_a_pixel_shows_its_attention_for_every_variant_without_the_server(pictures):
    maps, readout = pictures.locator("figure[data-map]"), pictures.locator(".readout")
    expect(pictures.locator(".legend")).to_contain_text("Each pixel is a token")
    pictures.evaluate(COUNT)
    seen = []
    for share, place in ((0.3, "row 5, column 5"), (0.9, "row 15, column 15")):
        point_at(tile(pictures, "Original").locator(".image"), share, share)
        expect(readout).to_contain_text(place)
        expect(maps).to_have_count(3)
        seen.append(drawn(tile(pictures, "Local").locator(".map")))
    assert seen[0] != seen[1]
    expect(tile(pictures, "Linear").locator(".note")).to_contain_text("max 0.4")
    pictures.mouse.move(0, 0)
    expect(maps).to_have_count(0)
    assert pictures.evaluate("window.sent") == 0


def test_a_switch_shows_the_errors_of_all_images_without_the_server(pictures):
    seen = [drawn(tile(pictures, title).locator(".pixels")) for title in ("Original", "Local")]
    pictures.evaluate(COUNT)
    error = pictures.get_by_role("button", name="Error", exact=True)
    error.click()
    expect(error).to_have_attribute("aria-pressed", "true")
    expect(pictures.locator(".legend")).to_have_text("Darker: larger error (white: 0, darkest: 0.3 or more).")
    original, local = (drawn(tile(pictures, title).locator(".pixels")) for title in ("Original", "Local"))
    assert (original == seen[0], local == seen[1]) == (True, False)
    pictures.get_by_role("button", name="Image", exact=True).click()
    assert drawn(tile(pictures, "Local").locator(".pixels")) == seen[1]
    assert pictures.evaluate("window.sent") == 0


def test_a_digit_shows_the_attention_that_its_pixels_receive_until_the_pointer_is_on_a_pixel(page, server):
    run = "&".join(f"trained={word}" for word in ("digits", "softmax", "steps~1"))
    visit(page, f"{server}/picture?input=trained&{run}&variants=softmax&variants=linear")
    linear = tile(page, "Linear")
    expect(linear.locator(".number")).to_contain_text("error", timeout=60_000)
    expect(page.locator("figure[data-map]")).to_have_count(2)
    expect(page.locator("figure i:visible")).to_have_count(0)
    received = drawn(linear.locator(".map"))
    point_at(page.locator("figure .image").first, 0.3, 0.3)
    expect(linear.locator(".note")).to_contain_text("max")
    expect(page.locator("figure i:visible")).to_have_count(3)
    assert drawn(linear.locator(".map")) != received


def test_a_clicked_pixel_stays_and_is_in_the_link(pictures):
    pictures.mouse.click(*on(tile(pictures, "Softmax").locator(".image"), 0.3, 0.9))
    settle(pictures)
    assert f"p_pixel={14 * 16 + 4}" in query(pictures)
    pictures.mouse.move(0, 0)
    expect(pictures.locator("figure[data-map]")).to_have_count(3)
    pictures.reload()
    expect(pictures.locator(".readout")).to_contain_text("row 15, column 5")


def test_a_slider_changes_the_image_and_its_number(pictures):
    local = tile(pictures, "Local")
    before, number = drawn(local.locator(".pixels")), local.locator(".number").inner_text()
    local.get_by_role("slider").focus()
    pictures.keyboard.press("End")  # The window then contains the whole image, so the result equals softmax's.
    expect(local.locator(".number")).not_to_have_text(number)
    settle(pictures)
    expect(local.locator(".number")).to_have_text(tile(pictures, "Softmax").locator(".number").inner_text())
    assert drawn(local.locator(".pixels")) != before
    assert re.search("local~window~(2[5-9]|[3-9])", query(pictures))


def test_the_images_keep_their_places_and_the_moved_slider_keeps_the_focus(page, server):
    visit(page, f"{server}/{LINK}&variants=topk")
    titles, slider = page.locator("figure .title"), tile(page, "Local").get_by_role("slider")
    expect(titles).to_have_text(["Original", "Noisy", "Softmax", "Linear", "Local", "Top-k"])
    slider.focus()
    page.keyboard.press("End")
    settle(page)
    expect(titles.nth(4)).to_have_text("Local")
    expect(slider).to_be_focused()


def test_the_button_on_an_image_opens_the_settings_of_its_variant(pictures):
    tile(pictures, "Local").get_by_role("button", name="Settings of Local").click()
    expect(pictures.locator(".st-key-variants-settings").get_by_text("Window", exact=True)).to_be_visible()
    tile(pictures, "Local").locator(".title").click()
    expect(pictures.locator(".st-key-variants-settings")).to_have_count(0)


def test_an_uploaded_photograph_is_shown_and_a_bad_file_is_refused(other_page, server):
    visit(other_page, f"{server}/{LINK}&photo=own")
    expect(other_page.get_by_text("Upload a PNG or JPEG")).to_be_visible()
    open_input(other_page)
    upload = other_page.get_by_test_id("stFileUploader").locator("input[type=file]")
    file = io.BytesIO()
    Image.new("RGB", (40, 20), (200, 100, 50)).save(file, "PNG")
    upload.set_input_files({"name": "mine.png", "mimeType": "image/png", "buffer": file.getvalue()})
    expect(other_page.get_by_text("(40 × 20 pixels) was resized to 16 × 16 pixels")).to_be_visible()
    shown = "(canvas) => [...canvas.getContext('2d').getImageData(3, 3, 1, 1).data]"
    expect(tile(other_page, "Original")).to_be_visible()
    assert tile(other_page, "Original").locator(".pixels").evaluate(shown) == [200, 100, 50, 255]
    upload.set_input_files({"name": "bad.png", "mimeType": "image/png", "buffer": b"nothing"})
    expect(other_page.get_by_text("bad.png is not a PNG or JPEG image.")).to_be_visible()
    expect(other_page.locator("figure")).to_have_count(0)


def test_the_images_are_saved_as_png(pictures):
    image = Image.open(saved(pictures, "Save these images as PNG")).convert("RGB")
    # The saved picture has double size: five images of 220 pixels in a row, with margins of 16 pixels.
    assert image.width == 2 * (16 + 5 * (220 + 16))
    corner = (
        tile(pictures, "Original")
        .locator(".pixels")
        .evaluate("(canvas) => [...canvas.getContext('2d').getImageData(0, 0, 1, 1).data]")
    )
    assert list(image.getpixel((2 * (16 + 3), 2 * (16 + 24 + 3)))) == corner[:3]
