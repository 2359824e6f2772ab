"""Browser tests that Streamlit sends no path or version of the server, and that a new version reloads the page."""

import platform

import streamlit as st
from browser import settle, visit
from conftest import ROOT
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ADDRESS = "/masks?input=synthetic&n=24"
MOUNTED = 'globalThis[Symbol.for("attention-lab.page")]'


def test_no_message_contains_a_path_or_a_version(newly_opened, server):
    heard = []
    newly_opened.on("websocket", lambda socket: socket.on("framereceived", lambda frame: heard.append(frame)))
    visit(newly_opened, server + ADDRESS)
    text = b"".join(each if isinstance(each, bytes) else each.encode() for each in heard)
    assert len(text) > 10_000
    for word in (str(ROOT), st.__version__, platform.python_version()):
        assert word.encode() not in text
    newly_opened.get_by_test_id("stMainMenu").click()
    expect(newly_opened.get_by_test_id("stMainMenuList")).to_be_visible()
    expect(newly_opened.get_by_text("Made with")).to_have_count(0)


def test_a_page_is_reloaded_after_a_new_version_and_shows_the_same(newly_opened, server):
    connections = []

    def as_older_version(raw):
        message = ForwardMsg.FromString(raw)
        component = message.delta.new_element.bidi_component
        if "page_script." in component.js_content:
            component.js_content = component.js_content.replace(".js", ".js?older")
            message.hash = "0" * 32  # The browser caches the changed message under another hash.
        return message.SerializeToString()

    def connect(socket):
        upstream, first = socket.connect_to_server(), not connections
        connections.append(socket)
        upstream.on_message(lambda raw: socket.send(as_older_version(raw) if first else raw))

    newly_opened.route_web_socket("**/_stcore/stream", connect)
    visit(newly_opened, server + ADDRESS)
    newly_opened.wait_for_function(f"() => {MOUNTED}?.endsWith('.js?older')")
    newly_opened.evaluate("window.before = true")
    connections[0].close(code=1012)
    newly_opened.wait_for_function("() => window.before === undefined")
    newly_opened.wait_for_selector('[data-testid="stApp"]')
    settle(newly_opened)
    assert len(connections) == 3
    newly_opened.wait_for_function(f"() => {MOUNTED}?.endsWith('.js')")
    assert newly_opened.url == server + ADDRESS
    expect(newly_opened.get_by_text("Softmax").first).to_be_visible()
