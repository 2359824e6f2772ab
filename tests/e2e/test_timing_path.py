"""Browser tests of the Timing page: recorded times, a measurement that is stopped, saved and loaded, and links."""

import json
import re

from browser import press, saved, settle, visit, words
from playwright.sync_api import expect

SO_FAR = re.compile("Incomplete run")
TINY = "variants=softmax&variants=local&variants=linear&t_heads=2&t_d=8"
LONG = "variants=softmax&variants=local&variants=linear&t_heads=8&t_d=64"
"""Settings with which a run does not end before it is stopped twice."""


def test_the_recorded_run_is_shown_and_a_live_run_is_stopped_saved_and_loaded(page, server, tmp_path):
    visit(page, f"{server}/timing?{TINY}&t_from=16&t_to=4096&t_rounds=25")
    expect(page.get_by_text("faster than softmax").first).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)

    press(page, "Measure on this server")
    expect(page.get_by_text("samples · about").first).to_be_visible()
    expect(page.get_by_text("On this server,").first).to_be_visible()
    press(page, "Stop")
    expect(page.get_by_role("button", name="Measure on this server")).to_be_visible()
    settle(page)
    expect(page.get_by_text(SO_FAR).first).to_contain_text("Incomplete run")

    press(page, "Files")
    mine = saved(page, "Save the live run (JSON)")
    run = json.loads(mine.read_text())
    samples = sum(len(point["ms"]) for point in run["points"])
    assert 0 < samples < 25 * 9 * 4  # There are three variants, and one of them as a mask on the full matrix.

    page.locator('input[type="file"]').set_input_files(
        {"name": "mine.json", "mimeType": "application/json", "buffer": mine.read_bytes()}
    )
    settle(page)
    assert "t_beside=loaded" in words(page)
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "something else"}')
    page.locator('input[type="file"]').set_input_files(broken)
    expect(page.get_by_text("The file is not a timing run")).to_be_visible()


def test_a_tiny_run_ends_by_itself_and_its_settings_are_in_the_link(page, server):
    visit(page, f"{server}/timing?{TINY}&t_from=16&t_to=32&t_rounds=2&t_mode=backward&t_side=memory")
    press(page, "Measure on this server")
    expect(page.get_by_text("On this server,").first).to_be_visible()
    settle(page)
    expect(page.get_by_role("button", name="Measure on this server")).to_be_visible()
    assert {"t_from=16", "t_to=32", "t_rounds=2", "t_mode=backward", "t_side=memory"} <= words(page)


def test_a_malformed_link_opens_the_defaults_and_names_the_faults(page, server):
    visit(page, f"{server}/timing?t_from=65&t_to=many&t_mode=sideways&t_beside=nothing&t_rounds=0")
    notice = page.get_by_text("The link contains values that this page does not accept")
    for name in ("t_from", "t_to", "t_mode", "t_rounds"):
        expect(notice).to_contain_text(name)
    expect(page.locator(".js-plotly-plot")).to_have_count(2)


def test_a_run_has_one_stop_button_and_a_lost_connection_is_shown(newly_opened, server):
    page, sockets, lost = newly_opened, [], []

    def connect(socket):
        if lost:
            socket.close()
        else:
            socket.connect_to_server()
            sockets.append(socket)

    page.route_web_socket(re.compile("_stcore/stream"), connect)
    visit(page, f"{server}/timing?{LONG}&t_from=256&t_to=8192&t_rounds=25")
    press(page, "Measure on this server")
    expect(page.get_by_text("samples · about").first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_be_visible()  # The page shows that something is running.
    expect(page.get_by_role("button", name="Stop")).to_have_count(1)
    for _again in range(2):
        expect(page.get_by_text("On this server,").first).to_be_visible()  # At least one measurement has arrived.
        press(page, "Stop")
        expect(page.get_by_role("button", name="Measure on this server")).to_be_visible()
        settle(page)
        expect(page.get_by_text(SO_FAR).first).to_contain_text("Incomplete run")
        press(page, "Continue")
        expect(page.get_by_text("samples · about").first).to_be_visible()
    lost.append(True)
    for socket in sockets:
        socket.close()
    expect(page.get_by_test_id("stConnectionStatus")).to_be_visible()
