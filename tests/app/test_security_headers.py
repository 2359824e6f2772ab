import pytest
from driver import complete

from app.server import security_headers
from app.server.security_headers import SecurityHeaders


def ask(kind="http", sent=(), answered=()):
    """Return the first message sent in answer to a request, when the wrapped app answers with the given headers."""
    back = []

    async def app(scope, receive, send):
        start = {"type": "http.response.start", "status": 200, "headers": list(answered)}
        await send(start if kind == "http" else {"type": "websocket.accept"})

    async def send(message):
        back.append(message)

    scope = {"type": kind, "scheme": kind.replace("websocket", "ws"), "headers": list(sent)}
    complete(SecurityHeaders(app)(scope, None, send))
    return back[0]


def test_a_response_keeps_its_headers_and_gets_ours():
    found = dict(ask(answered=[(b"etag", b"1")])["headers"])
    assert found[b"etag"] == b"1"
    assert found[b"x-content-type-options"] == b"nosniff"
    assert found[b"referrer-policy"] == b"same-origin"
    assert b"camera=()" in found[b"permissions-policy"]
    assert b"default-src 'none'" in found[b"content-security-policy"]


def test_only_scripts_of_this_server_and_its_page_may_run():
    rule = next(rule for rule in security_headers.policy().split("; ") if rule.startswith("script-src"))
    assert rule.startswith("script-src 'self' blob: 'sha256-")
    assert "unsafe" not in rule


def framing(monkeypatch, profile, given=""):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", profile)
    monkeypatch.setenv(security_headers.FRAME_ANCESTORS, given)
    [rule] = [rule for rule in security_headers.policy().split("; ") if rule.startswith("frame-ancestors ")]
    return set(rule.split()[1:])


def test_own_machine_may_be_framed_by_loopback_pages(monkeypatch):
    assert framing(monkeypatch, "own") == {"'self'", "https:", "http://localhost:*", "http://127.0.0.1:*"}


def test_hosted_lab_may_be_framed_over_https_only(monkeypatch):
    assert framing(monkeypatch, "hosted") == {"'self'", "https:"}


@pytest.mark.parametrize("profile", ["own", "hosted"])
@pytest.mark.parametrize("setting", ["'self'", "https://moodle.example.edu http://course.example.edu"])
def test_frame_ancestors_setting_replaces_the_default(monkeypatch, profile, setting):
    assert framing(monkeypatch, profile, setting) == set(setting.split())


@pytest.mark.parametrize(
    ("proto", "attributes"), [("http", "SameSite=Lax"), ("https", "SameSite=None; Secure; Partitioned")]
)
def test_the_upload_cookie_works_in_another_sites_frame_only_over_https(proto, attributes):
    answer = ask(sent=[(b"x-forwarded-proto", proto.encode())], answered=[(b"set-cookie", b"token=1; SameSite=Lax")])
    assert dict(answer["headers"])[b"set-cookie"] == f"token=1; {attributes}".encode()


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        (None, "websocket.accept"),
        ("https://lab.example.edu", "websocket.accept"),
        ("http://localhost:3000", "websocket.accept"),
        ("https://elsewhere.example", "websocket.close"),
        ("https://lab.example.edu:8443", "websocket.close"),
        ("null", "websocket.close"),
    ],
)
def test_a_websocket_opens_only_for_this_sites_pages(origin, kind):
    sent = [(b"host", b"lab.example.edu"), *([(b"origin", origin.encode())] if origin else [])]
    assert ask("websocket", sent)["type"] == kind
