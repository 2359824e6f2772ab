"""Fuzz tests with generated texts, settings, links, files and widget changes: only ``LabError`` may be raised.

By default, the tests generate a few hundred inputs, the same each time. To generate more than ten thousand inputs,
different in each run:

    HYPOTHESIS_PROFILE=fuzz pytest tests/fuzz
"""

import io
import json
import math
import os
import random
import resource
import struct
import zipfile
import zlib
from base64 import urlsafe_b64encode
from urllib.parse import parse_qs, quote

import numpy as np
import pytest
from driver import CONTROLS, open_page, send
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from no_model import without_a_model
from press import MOVES

import attention_core as ac
from app.page import discover
from app.state import refusals, url
from app.state.controls import Options
from app.state.session import SharedOptions
from attention_core.benchmarking.run_file import from_json, recorded_runs, to_json
from attention_core.errors import LabError
from attention_core.inputs.upload import from_upload
from attention_core.limits import current

FUZZ = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"
generated = settings(
    max_examples=2000 if FUZZ else 60, derandomize=not FUZZ, deadline=None, suppress_health_check=list(HealthCheck)
)
ROOM = 2**28
"""Bytes by which the process may grow while it reads one input; a decompression bomb takes gigabytes."""


@pytest.fixture(autouse=True, scope="module")
def hosted():
    """Select the profile for public servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_PROFILE", "hosted")
        yield


def peak():
    """Return the peak memory of this process in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def refused(act, *given):
    """Check that an input is accepted or rejected with a ``LabError`` that has a message, within bounded memory."""
    message, before = "accepted", peak()
    try:
        act(*given)
    except LabError as error:
        message = str(error)
    assert message.strip()
    assert peak() - before < ROOM


CHARACTERS = (
    st.characters()
    | st.characters(categories=["Cs", "Cc", "Cf", "Co", "Cn", "Mn", "Me"])
    | st.sampled_from("\x00\u202e\u200f\u2028\ufeff\u0301\U000e0001مر图🙂<&>`$\\*_[]()~#|'\"")
)
TEXTS = st.text(CHARACTERS, max_size=200) | st.builds(
    lambda part, count: part * count, st.text(CHARACTERS, min_size=1, max_size=9), st.sampled_from([1, 40, 3000])
)


@settings(generated, max_examples=600 if FUZZ else 12)
@given(TEXTS)
def test_any_text_is_read_or_refused(text):
    def read():
        qkv = ac.inputs.from_text(text, model="minilm", layer=0)
        assert 0 < qkv.n <= current().matrix_tokens
        assert all(math.isfinite(float(x.sum())) for x in (qkv.q, qkv.k, qkv.v))

    refused(read)
    [words] = [SharedOptions.text.field().write(text)]
    assert not words or url.read_link({"text": words}, {"text": SharedOptions.text.field()})[1] == ()


NUMBERS = st.sampled_from(
    [
        "nan",
        "inf",
        "-inf",
        "1e999",
        "-1",
        "0",
        "1",
        "2",
        "3.5",
        "-0.0",
        "9" * 400,
        "1e-320",
        "0x1",
        "1_0",
        "٣",
        "True",
        "",
    ]
)
WORDS = NUMBERS | st.integers().map(str) | st.floats().map(str) | st.text(CHARACTERS, max_size=30)
NAMES = st.sampled_from([s.name for v in ac.all_variants() for s in v.params.settings()])
KEYS = st.sampled_from([variant.key for variant in ac.all_variants()])


@st.composite
def variants(draw):
    """Generate a variant in link form, most often one that is almost valid."""
    key = draw(KEYS | st.text(CHARACTERS, max_size=12))
    own = [s.name for v in ac.all_variants() if v.key == key for s in v.params.settings()]
    name = st.sampled_from(own) if own else NAMES
    parts = draw(st.lists(name | NAMES | WORDS, max_size=1).flatmap(lambda p: st.lists(name | WORDS, max_size=5)))
    return "~".join([key, *parts])


@generated
@given(variants())
def test_any_variant_in_link_form_is_read_or_refused(word):
    def read():
        attention = ac.from_word(word)
        assert ac.from_word(attention.word) == attention
        qkv = ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(n=5, d=4, heads=1)).load()
        weights = attention.weights(qkv.q, qkv.k)
        assert weights.shape == (1, 5, 5)

    refused(read)


FIELDS = Options.shared() | {name: kind for page in discover().values() for name, kind in page.options.fields().items()}


def packed(text):
    """Return a text in the encoding that links use."""
    return urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode().rstrip("=")


OFFERED = [word for kind in FIELDS.values() for option in (kind.options or ())[-3:] for word in kind.write(option)]
VALUES = (
    WORDS
    | variants()
    | TEXTS.map(lambda text: packed(text[:20_000]))
    | st.text(CHARACTERS, max_size=40).map(lambda text: quote(text, errors="replace"))
    | st.text(CHARACTERS, max_size=20).map(lambda text: quote(quote(text, errors="replace")))
    | st.text("%0123456789abcdefG&=+;", max_size=40)
    | st.sampled_from(OFFERED)
)
LINKS = st.dictionaries(
    st.sampled_from(list(FIELDS)) | st.text(CHARACTERS, max_size=20),
    st.lists(VALUES, min_size=1, max_size=4),
    max_size=9,
)


@generated
@given(LINKS)
def test_any_link_is_read_and_written_again(link):
    values, rejected = url.read_link(link, FIELDS)
    assert all(kind.is_allowed(values[name]) for name, kind in FIELDS.items())
    unknown = {name: words for name, words in link.items() if name not in FIELDS}
    message = refusals.notice_text(values, FIELDS, {name: link[name] for name in rejected} | unknown)
    assert len(message) < 10_000
    written = url.to_query(values, FIELDS)
    reread = url.read_link({name: words for name, words in written.items() if words}, FIELDS)
    assert reread[1] == ()


@generated
@given(st.text("%0123456789abcdefGtexnvarisml&=+;~@-._", max_size=300))
def test_any_query_string_is_read(query):
    url.read_link(parse_qs(query, keep_blank_values=True, max_num_fields=1000), FIELDS)


TYPES = st.sampled_from(
    ["<f4", ">f4", "<f2", ">f8", "<c8", "<i8", "|b1", "<U3", "|O", "|V8", "[('a', '<f4')]", "<M8[ns]", "x"]
)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 7, 17, 600, 10**6, 10**12, -1, 2**63]), max_size=5).map(tuple)


FLOATS = st.sampled_from(["<f4", "<f4", ">f8", "<f2"])
ARRAYS = ["q.npy", "k.npy", "v.npy", "tokens.npy", "causal.npy", "../q.npy", "/etc/q.npy", "q", "\u202eq.npy"]


@st.composite
def members(draw):
    """Generate one ``.npy`` member: a valid array, or an arbitrary header and data that need not match it."""
    if draw(st.booleans()):
        shape = draw(st.sampled_from([(3, 2), (3, 2), (1, 3, 2), (2, 3, 2), (3,), (), (0, 2)]))
        array = np.full(shape, draw(st.floats(-3, 3, width=16) | st.floats(width=16)), draw(FLOATS))
        out = io.BytesIO()
        np.save(out, np.asfortranarray(array) if draw(st.booleans()) else array)
        return out.getvalue()
    kind, order = draw(TYPES), draw(st.booleans())
    kind = kind if kind.startswith("[") else repr(kind)
    header = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {draw(SHAPES)!r}, }}"
    header = header if draw(st.booleans()) else draw(st.text(max_size=80))
    body = header.encode("latin1", "replace") + b" " * draw(st.integers(0, 70)) + b"\n"
    length = draw(st.sampled_from([len(body), len(body), 0, 2, 65535]))
    version = draw(st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"]))
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", length)
    return b"\x93NUMPY" + version + size + body + draw(st.binary(max_size=60))


@st.composite
def archives(draw):
    """Generate a zip archive of such members, complete or damaged."""
    out = io.BytesIO()
    packing = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
    whole = draw(st.booleans())
    with zipfile.ZipFile(out, "w", packing) as file:
        for name in ["q.npy", "k.npy", "v.npy"] if whole else []:
            file.writestr(name, draw(members()))
        for name in draw(st.lists(st.sampled_from(ARRAYS), max_size=2 if whole else 4)):
            bomb = bytes(draw(st.sampled_from([0, 9, 20_000_000])))
            file.writestr(name, draw(members()) if draw(st.booleans()) else bomb)
    data = bytearray(out.getvalue())
    for place, byte in draw(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3)):
        data[place % len(data)] = byte
    return bytes(data[: draw(st.sampled_from([None, None, None, 1, 30, -1, -22, -60]))])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@generated
@given(archives() | st.binary(max_size=300), st.text(CHARACTERS, max_size=300))
def test_any_file_with_arrays_is_read_or_refused(data, name):
    def read():
        qkv = ac.inputs.UploadSource.of(name, data).load()
        assert qkv.n <= current().matrix_tokens
        assert bool(qkv.q.isfinite().all())

    refused(read)
    refused(from_upload, data, name)


RUN = json.loads(to_json(next(iter(recorded_runs().values()))))
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS, max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def runs(draw):
    """Generate a recorded run with one part changed, cut off or repeated."""
    run = json.loads(json.dumps(RUN))
    run["points"] = run["points"][: draw(st.integers(0, 9))]
    for _ in range(draw(st.integers(1, 4))):
        place = run
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or draw(st.integers(0, 3)) == 0:
                place[key] = draw(JUNK | st.sampled_from([10**30, -1, 0, 1e308, "softmax~", "9" * 99]))
                break
            place = place[key]
    data = json.dumps(run).encode("utf-8", "replace")
    return data[: draw(st.sampled_from([None, None, None, 1, 50, -2]))]


@generated
@given(runs() | JUNK.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=99) | st.just(b"[" * 10**5))
def test_any_file_of_a_run_is_read_or_refused(data):
    def read():
        run = from_json(data)
        assert from_json(to_json(run)).spec == run.spec

    refused(read)


KINDS = {
    **{"ButtonGroup": "button_group", "Slider": "slider", "NumberInput": "number_input", "Selectbox": "selectbox"},
    **{"Checkbox": "checkbox", "TextArea": "text_area", "TextInput": "text_input"},
}
SEEDS = range(40 if FUZZ else 1)


@pytest.mark.parametrize("page", discover())
def test_random_values_of_widgets_cause_no_exception(page, monkeypatch):
    """Set random widgets to random values, sometimes before the page has shown all new widgets."""
    without_a_model(monkeypatch)
    for seed in SEEDS:
        random_ = random.Random(f"{page} {seed}")
        at = open_page(page, {"input": "synthetic", "n": "12", "heads": "2", "d": "4", "h_longest": "128"})
        for _ in range(8):
            known = [each for name in (*CONTROLS, "button_group") for each in at.get(name) if each.key]
            words = {}
            for control in random_.sample(known, min(len(known), random_.choice([1, 1, 2, 5]))):
                pressed = MOVES[KINDS[control.proto.DESCRIPTOR.name]](control.proto, random_)
                words |= {control.key: pressed[1]} if pressed else {}
            send(at, **words)
            assert not at.exception, words
            link = at.session_state[url.LINK]
            assert url.read_link(link.written_query, link.fields)[1] == ()


def as_in_address(word):
    """Return a text as an address can contain it."""
    return word.encode("utf-8", "replace").decode()


@settings(generated, max_examples=30 if FUZZ else 3)
@given(LINKS)
def test_pages_open_on_links(link):
    small = {"input": ["synthetic"], "n": ["12"], "heads": ["2"], "d": ["4"], "h_longest": ["128"]}
    for page in ("matrices", "entropy"):
        at = open_page(
            page, {as_in_address(name): [as_in_address(word) for word in words] for name, words in link.items()} | small
        )
        assert not at.exception
