"""Tests that typed or uploaded text is never interpreted as markup or code."""

import ast
import html
import io
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from driver import charts, open_page, set_state, unpacked
from no_model import without_a_model
from test_links import VIEWS

import attention_core as ac
from app.state.session import write_text
from app.ui import export
from app.ui.input_forms import UPLOAD
from attention_core.inputs.source import UploadSource
from pages.home import gallery

ROOT = Path(__file__).parents[2]
MARKUP = '<a href="javascript:x">$zq$**zq**`zq`[zq](f)'
MARKUP_IN_HTML = re.compile(r"<a\b|</a\b")
MARKUP_IN_MARKDOWN = re.compile(r"(?<!\\)(<a href|\$zq|\*\*zq|\[zq\])")


@pytest.fixture(autouse=True)
def made_up_numbers(monkeypatch):
    without_a_model(monkeypatch)


def hostile():
    """Return an upload whose name and labels contain markup."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 2, 12, 4)).astype("f4")
    labels = np.array([MARKUP + str(i) for i in range(12)])
    out = io.BytesIO()
    np.savez(out, q=q, k=k, v=v, tokens=labels, **{"x" + MARKUP[:14]: q})
    return UploadSource.of(MARKUP[:30] + ".npz", out.getvalue())


def shown(at):
    """Yield ``(kind, text)`` of every element whose text is rendered as markup."""
    for name in ("markdown", "caption", "info", "warning", "error", "success", "latex", "title", "metric"):
        for each in at.get(name):
            yield name, str(getattr(each, "value", "")) + str(getattr(each, "label", ""))
    for each in at.get("html"):
        yield "html", re.sub(r'<a class="way[^>]*>|</a>', "", each.proto.body)  # The app's own links are no typed text.
    for figure in charts(at):
        yield "chart", json.dumps(figure, ensure_ascii=False)
    for name in ("button_group", "button", "toggle", "selectbox", "select_slider", "expander", "popover", "page_link"):
        for each in at.get(name):
            options = getattr(each.proto, "options", [])
            contents = [option.content for option in options] if name == "button_group" else []
            yield name, " ".join([getattr(each.proto, "label", ""), getattr(each.proto, "help", ""), *contents])


def views_of(page, source):
    """Yield the views of a page, each opened with an uploaded file, and their link."""
    for view in VIEWS[page]:
        link = {"variants": ["softmax", "local", "reformer"], "h_longest": "128"} | view | {"input": "upload"}
        yield set_state(open_page(page, link), **{UPLOAD: source}), view


@pytest.mark.parametrize("page", VIEWS)
def test_labels_and_file_names_are_never_markup(page):
    seen = set()
    for at, view in views_of(page, hostile()):
        for kind, words in shown(at):
            if "javascript" in words or "a href" in words:
                seen.add(kind)
            read_as = MARKUP_IN_HTML if kind in ("html", "chart", "latex") else MARKUP_IN_MARKDOWN
            assert not read_as.search(words), (kind, view, words[:2000])
    assert seen or page in ("home", "timing", "model", "claims", "entropy", "error", "lessons", "learn", "picture")


def in_the_gallery(markdown):
    """Return the gallery's Markdown without link addresses, and the addresses."""
    return re.sub(r' href="[^"]*"', "", markdown), re.findall(r' href="([^"]*)"', markdown)


PLAIN_CHARACTERS = re.compile(r"[\w.~%+&;=?/-]*", re.ASCII)


@pytest.mark.parametrize(
    "link",
    [
        {"text": write_text(MARKUP)},
        {"text": ["@" + MARKUP]},
        {"model": [MARKUP]},
        {"variants": ["softmax", MARKUP]},
        {"input": ["upload"]},
    ],
    ids=lambda link: next(iter(link)),
)
def test_the_values_in_homes_links_are_never_markup_in_its_gallery(link):
    def shown(at):
        at.session_state[UPLOAD] = hostile()
        return in_the_gallery("".join(each.value for each in at.run().markdown if 'class="variant"' in each.value))

    rows, addresses = shown(open_page("home", link))
    assert rows == shown(open_page("home"))[0]
    assert all(map(PLAIN_CHARACTERS.fullmatch, addresses))


@pytest.mark.parametrize("words", [MARKUP, '">x', "'", "\n\n# x", "&quot;>", ")\n\n**zq**"])
def test_any_text_in_a_rows_query_appears_only_in_addresses(words):
    def row(query):
        return in_the_gallery(gallery.row(ac.variant("linear"), query, dark=False))

    rows, addresses = row({"text": [words], words: [words]})
    assert rows == row({})[0]
    assert all(map(PLAIN_CHARACTERS.fullmatch, addresses))
    for address in addresses:
        assert parse_qs(urlsplit(html.unescape(address)).query, strict_parsing=True)["text"] == [words]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-x", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_a_table_cell_is_never_a_formula(cell):
    found = export.to_csv([cell], [[cell]]).decode("utf-8-sig")
    assert [line.strip('"')[0] for line in found.split("\r\n")[:2]] == ["'", "'"]


def test_numbers_and_text_are_unchanged_in_a_table():
    found = export.to_csv(["token", "weight"], [["a-b", -0.5], ["–", None]]).decode("utf-8-sig")
    assert found == "token,weight\r\na-b,-0.5\r\n–,\r\n"


NEVER = {
    "eval": "a link never runs",
    "exec": "a link never runs",
    "pickle.load": "a file is never unpickled",
    "pickle.loads": "a file is never unpickled",
    "torch.load": "a file is never unpickled",
    "np.load": "arrays are read by attention_core.inputs.npz",
    "np.lib.format.read_array": "arrays are read by attention_core.inputs.npz",
    "yaml.load": "a file makes no objects",
    "os.system": "no shell",
}
ALLOWED = {
    "app/jobs/executors.py": {
        "pickle.load(stream)": "rows of a worker, a process of the same user, behind a socket that nobody else opens"
    },
    "attention_core/workers.py": {
        "pickle.load(stream)": "tasks of the app, behind that socket",
        "pickle.loads(pickled_task)": "likewise",
        "pickle.loads(pickle.dumps(error))": "it was pickled here: whether it can be sent",
    },
    "pages/claims/board.py": {
        "place.markdown(card(outcome), unsafe_allow_html=True)": "a claim's sentences and figures hold numbers alone"
    },
    "pages/home/page.py": {
        "st.markdown('\\n\\n'.join(parts), unsafe_allow_html=True, anchors=False)": "the pages; what a "
        "visitor types is only in the addresses of the links, escaped"
    },
    "pages/home/tree.py": {
        "st.markdown(f':small[{text}]\\n\\n{roots}', unsafe_allow_html=True)": "names and settings are ours"
    },
    "pages/home/gallery.py": {
        "st.markdown('\\n\\n'.join(['<div class=\"family\">', *rows, '</div>']), unsafe_allow_html=True)": (
            "rows are ours; what a visitor types is only in the addresses of their links, escaped"
        )
    },
}
"""Allowed exceptions by file, with the reason."""
SOURCES = [path for top in ("app", "pages", "attention_core") for path in sorted((ROOT / top).rglob("*.py"))]


def forbidden(tree):
    """Yield the calls in a file that are forbidden."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found = {keyword.arg: keyword.value for keyword in node.keywords}
            if ast.unparse(node.func) in NEVER:
                yield node
            for name in ("unsafe_allow_html", "allow_pickle", "trust_remote_code", "shell", "unsafe_allow_javascript"):
                if name in found and not (isinstance(found[name], ast.Constant) and found[name].value is False):
                    yield node
            if re.fullmatch(r"Auto\w+\.from_\w+", ast.unparse(node.func)) and "trust_remote_code" not in found:
                yield node
            if ast.unparse(node.func) == "AutoModel.from_pretrained" and "use_safetensors" not in found:
                yield node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_file_evaluates_unpickles_or_allows_markup(path):
    found = {ast.unparse(node) for node in forbidden(ast.parse(path.read_text()))}
    assert found == set(ALLOWED.get(path.relative_to(ROOT).as_posix(), ()))


@pytest.mark.parametrize(
    "line",
    [
        "eval(x)",
        "np.load(file)",
        "torch.load(file)",
        "st.markdown(x, unsafe_allow_html=True)",
        "np.savez(file, allow_pickle=True)",
        "AutoModel.from_pretrained(folder, trust_remote_code=False)",
        "AutoTokenizer.from_pretrained(folder, use_safetensors=True)",
        "AutoConfig.from_pretrained(folder, trust_remote_code=True)",
    ],
)
def test_each_forbidden_call_is_found(line):
    assert list(forbidden(ast.parse(line)))


OWN_SCRIPTS = sorted(path for path in (ROOT / "app").rglob("*.js") if path.parent.name != "plotly")


@pytest.mark.parametrize("path", OWN_SCRIPTS, ids=lambda path: path.name)
def test_the_boards_insert_text_only_as_text(path):
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
    )


HEBREW = ["אחת", "שתיים", "שלוש", "ארבע", "חמש", "שש", "שבע", "שמונה", "תשע", "עשר", "אלף", "מאה"]
ISOLATED = re.compile("\u2068[^\u2068\u2069]*\u2069")
RIGHT_TO_LEFT = re.compile("[\u0590-\u05ff]+")


def right_to_left():
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 12, 4)).astype("f4")
    out = io.BytesIO()
    np.savez(out, q=q, k=k, v=v, tokens=np.array(HEBREW), אחר=q)
    return UploadSource.of("קובץ.npz", out.getvalue())


def strings(value):
    """Return every string in a figure's specification."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for one in inner for each in strings(one)]


def sentences(at):
    """Yield every shown text in which an uploaded word may be next to other words."""
    for kind, words in shown(at):
        if kind == "html":
            yield from (html.unescape(title) for title in re.findall(r'title="([^"]*)"', words))
        elif kind == "chart":
            yield from strings(json.loads(words))
        else:
            yield words
    for each in at.get("selectbox"):
        yield from each.proto.options
    for proto in (each.proto for each in at.get("bidi_component") if each.proto.bytes):
        sentence = (
            json.loads(proto.bytes) if proto.component_name == "attention_lab_settings" else unpacked(proto.bytes)[0]
        )
        yield from (words for name, words in named_strings(sentence) if name not in WORDS_ALONE)


WORDS_ALONE = ("tokens", "labels", "row_labels", "col_labels", "last_turn")
"""Token lists in messages to the browser; the browser draws each token alone or isolated."""


def named_strings(value, name=""):
    """Return every string in a message, with the name of its field."""
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in named_strings(each, key)]
    return [found for each in value for found in named_strings(each, name)] if isinstance(value, list) else []


@pytest.mark.parametrize("page", VIEWS)
def test_right_to_left_tokens_are_isolated_in_every_sentence(page):
    for at, view in views_of(page, right_to_left()):
        for words in sentences(at):
            outside = ISOLATED.sub("", ISOLATED.sub("", words))
            assert not RIGHT_TO_LEFT.search(outside) or words in HEBREW, (view, words[:500])
