"""Tests that all sentences on the pages can be translated, in a fake language that marks every translated message."""

import gettext
import itertools
import json
import re
from pathlib import Path
from string import Formatter

import pyarrow as pa
import pytest
from babel.messages.extract import extract_from_dir
from driver import chosen, unpacked
from google.protobuf.message import Message
from no_model import without_a_model
from test_pages import open_app

import attention_core as ac
from app.lessons.lesson import Lesson, Step
from app.lessons.shipped import all_lessons
from app.page import discover as discover_pages
from app.words import i18n
from app.words.extraction import core, lesson, screen
from pages.inside.steps import link_numbers
from pages.inside.stories import discover

ROOT = Path(__file__).parent.parent.parent
FOLDERS = (
    ("attention_core", "**.py", core),
    ("app", "**.py", screen),
    ("pages", "**.py", screen),
    ("app/lessons/shipped", "*.toml", lesson),
)
SHOWN = {
    "body",
    "label",
    "help",
    "placeholder",
    "options",
    "caption",
    "captions",
    "tooltip",
    "content",
    "title",
    "legend",
}
SPOKEN = {"text", "title", "name", "hovertemplate", "ticktext", "label", "customdata"}
NUMBERS = " ".join(map(str, range(100, 124)))
"""A text without words, so that no token is mistaken for prose."""
MARKED = re.compile(
    r"⟦.*?⟧|<style>.*?</style>|\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|<[^>]*>|\[(?:\[[^]]*\]|[^]])*\]\(http[^)]*\)|\]\((?:\x22[^\x22]*\x22|[^)\x22])*\)|:[\w/-]+:|:[\w-]+\[|%?\{[^}]*\}|&\w+;",
    re.DOTALL,
)
"""Matches marked messages, formulas, code, markup, and placeholders filled in by the browser."""
DATA = {
    "Attention Lab",
    "PNG",
    "SVG",
    "CSV",
    "JSON",
    "softmax",
    "KiB",
    "MiB",
    "ms",
    "[CLS]",
    "[SEP]",
    "MiniLM-L6",
    "SmolLM2-135M",
    "AMD EPYC",
    "Intel Xeon",
    "NVIDIA H200",
    "bfloat16",
    "float32",
    "float64",
    "log n",
    "max |A",
    "+cpu",
    "UTC",
}


def marked(message):
    """Return the message with each literal part in brackets, and the inserted values outside."""
    try:
        parts = list(Formatter().parse(message))
    except ValueError:
        return f"⟦{message}⟧"
    if all(field is None for _, field, _, _ in parts):
        return f"⟦{message}⟧"
    shown = ""
    for words, field, form, conversion in parts:
        shown += f"⟦{words.replace('{', '{{').replace('}', '}}')}⟧" if words else ""
        if field is not None:
            shown += "{" + field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "") + "}"
    return shown


class Marking(gettext.NullTranslations):
    """A fake language in which every message of the catalogue is in brackets."""

    def __init__(self, messages):
        super().__init__()
        self.messages = messages

    def gettext(self, message):
        return marked(message.rpartition(i18n.CONTEXT)[2]) if message in self.messages else message

    def ngettext(self, one, many, n):
        form = one if n == 1 else many
        return self.gettext(form) if (one, many) in self.messages else form


@pytest.fixture(scope="module")
def messages():
    found = [
        (said, context)
        for folder, files, method in FOLDERS
        for _, _, said, _, context in extract_from_dir(str(ROOT / folder), [(files, method)])
    ]
    forms = {
        form if context is None else i18n.C_(context, form)
        for said, context in found
        for form in ([said] if isinstance(said, str) else said)
        if form
    }
    return forms | {tuple(said) for said, _ in found if not isinstance(said, str)}


@pytest.fixture
def marking(messages, monkeypatch):
    monkeypatch.setattr(i18n, "catalogue", lambda language: Marking(messages))


def shown(at):
    """Yield every string on a page with the kind of its element."""
    todo = [at._tree]
    while todo:
        node = todo.pop()
        todo += reversed(node.children.values()) if hasattr(node, "children") else ()
        if isinstance(proto := getattr(node, "proto", None), Message):
            yield from of_proto(proto)


def of_proto(proto):
    kind = type(proto).__name__
    if kind == "PlotlyChart":
        yield from ((kind, words) for words in of_json(json.loads(proto.spec), SPOKEN))
    elif kind == "ArrowDataFrame" or kind == "Dataframe":
        yield from ((kind, words) for words in of_table(proto))
    elif kind == "BidiComponent":
        yield from ((kind, words) for words in of_component(proto))
    else:
        for field, value in proto.ListFields():
            for each in value if field.is_repeated else [value]:
                if isinstance(each, Message):
                    yield from of_proto(each)
                elif isinstance(each, str) and field.name in SHOWN:
                    yield f"{kind}.{field.name}", each


def of_json(value, names, inside=False):
    """Yield the strings under the given names, at any depth."""
    if isinstance(value, str):
        yield from [value] if inside else []
    elif isinstance(value, list):
        for each in value:
            yield from of_json(each, names, inside)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from of_json(each, names, name in names if isinstance(each, (str, list)) else False)


def of_table(proto):
    table = pa.ipc.open_stream(proto.arrow_data.data if hasattr(proto, "arrow_data") else proto.data).read_all()
    yield from (name for name in table.column_names if not name.startswith("__"))
    for column in table.columns:
        yield from (cell for cell in column.to_pylist() if isinstance(cell, str))
    yield from of_json(json.loads(proto.columns or "{}"), {"label", "help"})


def of_component(proto):
    calls = []
    if proto.json:
        calls = [json.loads(proto.json)]
    elif proto.bytes[:2] == b'{"':  # The settings of a large board are a separate message, in JSON.
        calls = [json.loads(proto.bytes)]
    elif proto.bytes:
        header, _payload = unpacked(proto.bytes)
        calls = [header, header.get("settings", {})]
    calls = [each for each in calls if isinstance(each, dict)]
    for name, each in itertools.product(("texts", "panels", "categories", "rows"), calls):
        if found := each.get(name):
            own = found if name == "texts" else ()
            yield from of_json(found, {"title", "caption", "name", "row_title", "col_title", "knob", "note", *own})


def unmarked(words):
    """Return the words outside brackets that are not code, formulas, markup or data."""
    words = words.replace("\\[", "[").replace("\\]", "]")
    for data in DATA:
        words = words.replace(data, " ")
    return re.findall(r"[A-Za-zÀ-ɏ]{2,}", MARKED.sub(" ", words))


VIEWS = [
    ("home", {}),
    ("home", {"shown": "tree"}),
    ("matrices", {"more": "explain"}),
    ("matrices", {"more": "numbers", "causal": True}),
    ("matrices", {"more": "download", "view": "difference", "input": "synthetic"}),
    ("masks", {"masks_part": "reach"}),
    ("masks", {"masks_part": "numbers", "causal": True}),
    ("masks", {"masks_part": "order"}),
    ("masks", {"masks_part": "download"}),
    *(("entropy", {"h_view": view}) for view in ("entropy", "normalizer", "distance", "factor")),
    *(("error", {"against": against, "causal": True}) for against in ("budget", "length", "cost")),
    ("timing", {"t_side": "memory"}),
    ("timing", {"t_side": "work"}),
    ("timing", {"t_mode": "decode"}),
    ("timing", {"causal": True, "variants": chosen("softmax", "nystrom", "landmark", "linformer")}),
    *(("causal", {"c_view": view}) for view in ("overview", "leak", "algorithms", "state", "fading", "generation")),
    *(
        ("model", {"m_view": view})
        for view in ("text", "copying", "layers", "budget", "predicts", "continuation", "encoder")
    ),
    *(("learn", {"l_view": view}) for view in ("race", "attention", "longer", "capacity", "parts")),
    *(("picture", {"p_below": below}) for below in ("explain", "numbers", "budget", "download")),
    ("claims", {}),
    ("lessons", {}),
    ("lessons", {"draft": Lesson(title="1", steps=(Step(at="masks", ask="2", answer="pairs local"),))}),
    *((each.steps[0].page, {"lesson": each}) for each in all_lessons().values()),
]
VIEWS += [(page, {}) for page in discover_pages() if page not in {page for page, _ in VIEWS}]


def missing(at):
    """Return the strings on a page that contain words outside the catalogue."""
    return {(kind, words): left for kind, words in shown(at) if (left := unmarked(words))}


@pytest.mark.parametrize(("page", "state"), VIEWS, ids=str)
def test_all_text_of_a_page_is_in_the_catalogue(page, state, marking, monkeypatch):
    without_a_model(monkeypatch)  # Text that a model writes is not in the catalogue.
    if page == "model":
        state = {"m_text": "own"} | state  # The built-in texts are not in the catalogue either.
    assert not missing(open_app(page, text=NUMBERS, **state))


@pytest.mark.parametrize("variant", discover())
def test_all_text_of_a_story_is_in_the_catalogue(variant, marking):
    at = open_app("inside", text=NUMBERS, inside=ac.get(variant))
    assert not missing(at)
    for step in link_numbers(variant, len(at.button_group(key="step").options))[1:]:
        at.session_state["step"] = step
        assert not missing(at.run())


def test_text_outside_the_catalogue_is_found():
    assert unmarked(marked("of {n} tokens, {name:.2f}").format(n=3, name=1.5)) == []
    assert unmarked(marked("{name} looks far").format(name="the last")) == ["the", "last"]
    assert unmarked("$$ x_{max} $$ `code` **bold** :material/block: [Paper (2017)](https://a.b) <b>") == ["bold"]
    assert unmarked(r"[Entries in \[−1, 1\]](https://a.b) told") == ["told"]
