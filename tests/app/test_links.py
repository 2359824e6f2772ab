"""Tests of the link to every page: it contains and restores all options, and rejects values that are not valid."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from driver import CONTROLS, drawn, moved, open_page
from driver import visit as driver_visit
from no_model import without_a_model

import attention_core as ac
from app.page import discover
from app.state import link_fields, refusals, session, url
from app.state.controls import Control, Options
from app.state.session import SharedOptions
from app.state.url import LINK

ROOT = Path(__file__).parent.parent.parent
PAGES = discover()
FIRST = next(iter(PAGES))
TINY = {
    "input": "synthetic",
    "n": "12",
    "heads": "2",
    "d": "4",
    "head": "1",
    "variants": ["softmax", "local", "reformer"],
}
"""Query parameters that make every page fast."""
MORE = {"entropy": {"input": "text", "text": session.write_text("a few words are enough")}}
"""Further parameters for single pages: a synthetic sequence has no end."""
HOSTILE = (
    "",
    " ",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-99999999999",
    "9" * 5000,
    "None",
    "perhaps",
    "0x1",
    "1_0",
    " 1",
    "٣",
    "½",
    "\U0001f642",
    "<script>alert(1)</script>",
    "'; drop table",
    "../../etc/passwd",
    "a/b/c",
    "@nowhere",
    "x" * 20_000,
    "softmax~temperature~nan",
    "\x00",
)
"""Words that are valid for no option."""
WORDS = [
    ["0.5"],
    ["1.25"],
    ["none"],
    ["@chinese"],
    session.write_text("any words\n…"),
    session.write_text(""),
    ["smollm2"],
    ["owner/name"],
    ["nystrom~landmarks~7"],
    ["retention~decay~0.5"],
    ["softmax", "local~window~3"],
    ["sparse", "local"],
    ["sparse", "mixed"],
    ["softmax"],
    ["sparse"],
    ["3-4"],
    ["flat"],
    ["parity", "linear", "steps~9"],
]
"""Words for options whose values cannot be listed."""


@pytest.fixture(autouse=True)
def made_up_numbers(monkeypatch):
    without_a_model(monkeypatch)


def open_tiny(page, query=()):
    return open_page(page, TINY | MORE.get(page, {}) | dict(query))


@cache
def fields(page):
    """Return the options that a page declares on a small input."""
    at = open_tiny(page)
    return dict(at.session_state[LINK].fields)


def own(page):
    """Return the options of a page itself; the shared options count for the first page."""
    return {name: kind for name, kind in fields(page).items() if page == FIRST or name not in Options.shared()}


def others(kind):
    """Return a few values of an option other than its default."""
    if kind.options is not None:
        few = kind.options if len(kind.options) < 30 else [kind.options[i] for i in (0, len(kind.options) // 2, -1)]
        return [value for value in few if value != kind.default]
    found = []
    for words in WORDS:
        try:
            found.append(kind.read(words))
        except link_fields.READ_ERRORS:
            continue
    return [value for value in found if value != kind.default]


@pytest.mark.parametrize("page", PAGES)
def test_invalid_values_fall_back_and_are_reported(page):
    for name, kind in own(page).items():
        for word in HOSTILE:
            values, refused = url.read_link({name: [word]}, {name: kind})
            assert (values, refused) == ({name: kind.default}, (name,)), (name, word)
            assert f"For `{name}`, " in refusals.notice_text(values, {name: kind}, {name: [word]})


@pytest.mark.parametrize("word", [" ", "The cat sat.", "a " * 1750])
def test_plain_text_in_an_address_is_reported_with_the_expected_form(word):
    fields = Options.shared()
    values, refused = url.read_link({"text": [word]}, fields)
    sentence = refusals.notice_text(values, fields, {name: [word] for name in refused})
    assert (
        "a text in the lab's compressed form, with at most 20,000 characters before compression, or the name of an "
        "example: " in sentence
    )
    assert "@story" in sentence
    assert url.read_link({"text": session.write_text(word)}, fields) == ({**values, "text": word}, ())


@pytest.mark.parametrize("page", PAGES)
def test_a_word_given_twice_is_refused(page):
    for name, kind in own(page).items():
        word = kind.write(others(kind)[-1])[-1]
        values, refused = url.read_link({name: [word, word]}, {name: kind})
        assert refused == (name,) or (name == "stack" and values == {"stack": (word, word)}), name


@pytest.mark.parametrize("page", PAGES)
def test_every_value_is_restored_by_a_link(page):
    for name, kind in own(page).items():
        assert others(kind), name
        for value in others(kind):
            link = url.to_query({name: value}, {name: kind})
            assert link[name]
            assert url.read_link(link, {name: kind}) == ({name: value}, ()), (name, value)
            assert kind.is_allowed(value)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_with_a_link_of_only_invalid_values(page):
    known = list(own(page))
    for start in range(0, len(known), refusals.MAX_NAMED):
        names = known[start : start + refusals.MAX_NAMED]
        at = open_tiny(page, dict.fromkeys(names, "perhaps"))
        assert not at.error
        for name in names:
            assert f"For `{name}`, " in at.warning[0].value


@pytest.mark.parametrize("page", list(PAGES)[1:])
def test_a_page_reads_a_link_with_all_options_and_writes_the_same(page):
    needs_more = {"t_device": "cpu", "t_beside": "none", "coloured": "local", "explained": "local"}
    values = {name: needs_more.get(name, others(kind)[0]) for name, kind in own(page).items()}
    link = url.to_query(values, own(page))
    at = open_tiny(page, link)
    assert not at.warning
    assert {name: at.query_params.get(name) for name in link} == {
        name: words if len(words) > 1 else words[0] for name, words in link.items()
    }


DECLARED = Options.shared() | {name: kind for page in PAGES.values() for name, kind in page.options.fields().items()}
"""Every option that a link can contain."""
KEEPERS = {ROOT / "app" / name for name in ("state/controls.py", "state/url.py", "state/session.py")}
"""Files that may implement how option values are stored."""


def sources():
    """Yield the path and the syntax tree of every file that draws."""
    for path in sorted(path for top in ("app", "pages") for path in (ROOT / top).rglob("*.py")):
        yield path, ast.parse(path.read_text())


def unstored(tree):
    """Yield the calls in a file that draw a widget whose value no option stores."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CONTROLS:
            arguments = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if "on_change" not in arguments and "url.widget_arguments(" not in arguments.get(None, ""):
                yield node


def test_every_control_is_an_option_or_passes_its_value_on():
    assert not [f"{path.name}:{call.lineno}" for path, tree in sources() for call in unstored(tree)]


def literal_reads(tree):
    """Yield the places that read an option from the session by its literal name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            kept, name = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            kept, name = node.func.value, node.args[0]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            kept, name = node.comparators[0], node.left
        elif isinstance(node, ast.Attribute):
            kept, name = node.value, ast.Constant(node.attr)
        else:
            continue
        if ast.unparse(kept) in ("st.session_state", "state") and getattr(name, "value", None) in DECLARED:
            yield node


def test_a_value_is_read_from_its_option_and_not_from_the_session():
    known = [(path, tree) for path, tree in sources() if path not in KEEPERS]
    assert not [f"{path.name}:{node.lineno}" for path, tree in known for node in literal_reads(tree)]


@pytest.mark.parametrize(
    "line", ["st.pills('T', [1, 2])", "left.slider('T', 0, 9, key='n')", "st.toggle('T', **layout)"]
)
def test_a_control_that_stores_no_option_is_found(line):
    assert len(list(unstored(ast.parse(line)))) == 1
    assert not list(unstored(ast.parse(f"{line[:-1]}, on_change=take)")))
    assert not list(unstored(ast.parse(f"{line[:-1]}, **url.widget_arguments('n', few, 0, key='k'))")))


@pytest.mark.parametrize("session", ["st.session_state", "state"])
@pytest.mark.parametrize(
    "line", ["{}['causal']", "{}.get('causal')", "'causal' in {}", "{}.causal", "{}['causal'] = 1"]
)
def test_a_value_read_from_the_session_by_name_is_found(line, session):
    assert len(list(literal_reads(ast.parse(line.format(session))))) == 1
    assert not list(literal_reads(ast.parse(line.format(session).replace("causal", "drawn"))))


SHORT = {"input": "synthetic", "h_longest": "128", "h_seeds": "1"}
VIEWS = {
    "home": [{}],
    "matrices": [
        {"row": "3", "more": "row"},
        {"row": "3", "more": "explain"},
        {"input": "text", "text": "@repeats"},
        {"more": "heads"},
        {"input": "image", "grid": "16"},
        {"more": "download"},
        {"input": "synthetic", "n": "300", "heads": "1", "variants": "softmax"},
        {"input": "trained", "trained": ["parity", "softmax", "steps~1"]},
    ],
    "masks": [{}, {"masks_part": "order"}],
    "entropy": [
        *({"h_view": view} for view in ("entropy", "normalizer", "distance", "factor")),
        {"h_scales": ["log_n", "temperature"], "h_heads": "one"} | SHORT,
    ],
    "error": [{"against": "cost"}],
    "learn": [{}, {"l_view": "attention"}],
    "picture": [
        *({"grid": "16", "p_below": below} for below in ("explain", "budget", "download")),
        {"input": "trained", "trained": ["digits", "softmax", "steps~1"]},
    ],
    "timing": [{}],
    "model": [
        {"m_text": "own"},
        {"m_view": "layers"},
        {"m_view": "encoder"},
        {"m_view": "continuation"},
        {"m_view": "trained", "trained": ["parity", "softmax", "steps~1"]},
    ],
    "causal": [*({"c_view": view} for view in ("leak", "algorithms", "state", "fading"))],
    "inside": [
        {"inside": key, "step": step}
        for key, step in (
            ("linear", "4"),
            ("performer", "4"),
            ("reformer", "1"),
            ("pooled", "2"),
            ("nystrom", "3"),
            ("deltanet", "4"),
        )
    ],
    "lessons": [{}],
    "claims": [{}, {"claim": "relu2_normaliser"}],
}
"""Addresses that together show every control."""
TRIED = set()
"""Kinds of controls that have been tried; the variants' controls are the same on every page."""


def kind_of(key):
    """Return a control's key without the parts that depend on the variant."""
    keys = {v.key for v in ac.all_variants()} | set(ac.families())
    return ".".join(part for part in key.split(".") if part not in keys and not part.isdigit())


@pytest.fixture
def used_options(monkeypatch):
    """Return the set of names of the options that are drawn or set without a widget."""
    found = set()

    def record_use(act):
        def noted(control, *given, **text):
            found.add(control.name)
            return act(control, *given, **text)

        return noted

    # With only one device, the page has no menu of devices.
    monkeypatch.setattr("pages.timing.options.devices", lambda: ("cpu", "cuda"))
    for name in ("draw", "draw_with_options"):
        monkeypatch.setattr(Control, name, record_use(getattr(Control, name)))
    return found


SET_AS_ARGUMENTS = {"words", "encoders", "replacements"}
"""Options of the Model page whose controls are arguments of functions, which set them."""


def set_elsewhere():
    """Return the options that a page sets in code, or by a link to the same page, instead of by a widget."""
    strings = [
        node.value
        for _path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    in_links = {name for text in strings for name in re.findall(r"#\?(\w+)=", text)}
    return (
        SET_AS_ARGUMENTS
        | in_links
        | {
            node.value.attr
            for _path, tree in sources()
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == "set" and isinstance(node.value, ast.Attribute)
        }
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_changed_control_changes_the_link(page, used_options):
    for view in VIEWS.get(page, [{}]):
        at = open_tiny(page, view)
        for key in [control.key for control in drawn(at)]:
            control = next((each for each in drawn(at) if each.key == key), None)
            if control is None or key in at.session_state[LINK].fields or kind_of(key) in TRIED:
                continue  # A widget whose key is the name of an option stores this option.
            before = dict(at.query_params)
            if moved(control) is None:
                continue
            at.run()
            TRIED.add(kind_of(key))
            assert dict(at.query_params) != before, key
            link = at.session_state[LINK]
            values, refused = url.read_link(link.written_query, link.fields)
            assert refused == ()
            assert all(at.session_state[name] == value for name, value in values.items())
    of_page = PAGES[page].options.controls | (SharedOptions.controls if page == "matrices" else {})
    unasked = {name for name, control in of_page.items() if control.name not in used_options}
    assert unasked <= set_elsewhere(), "options that nothing on any of these addresses asks for"


def test_a_notice_stays_during_one_automatic_run_only():
    at = driver_visit("timing", {"t_from": "65", "unheard": "3"})
    [text] = [each.value for each in at.warning]
    assert "For `t_from`, the page uses" in text
    assert "no parameter with the name “unheard”" in text
    at.session_state[LINK].keep_notice = True  # A report of the browser's width sets this.
    assert [each.value for each in at.run().warning] == [text]
    assert not at.run().warning
