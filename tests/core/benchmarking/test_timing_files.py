import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attention_core as ac
from attention_core.benchmarking.device import Stamp
from attention_core.benchmarking.run_file import from_json, recorded_runs, to_json
from attention_core.benchmarking.run_records import LIMIT_REASONS, Run, Sample, Skipped, group_samples
from attention_core.benchmarking.timing import MODES, TimingSpec

STAMP = Stamp(device="A", cpu="B", cores=4, threads=2, torch="2", date="2026-01-31T12:00:00Z")


def sample(variant, n, index, ms, promised=None):
    fields = {"multiply_adds": 10 * n, "promised": promised, "peak_bytes": 4 * n}
    return Sample(variant=variant, n=n, round=index, ms=ms, **fields)


SPEC = TimingSpec(variants=("softmax", "local~window~8", "topk"), sizes=(16, 64), rounds=3)
ROWS = [
    sample("softmax", 16, 0, 1.0),
    sample("local~window~8", 16, 0, 3.0, promised=7),
    Skipped(variant="topk", n=16, reason="Too slow."),
    sample("softmax", 64, 0, 8.0),
    sample("softmax", 16, 1, 4.0),
    sample("softmax", 16, 2, 2.0),
]
RUN = group_samples(SPEC, STAMP, ROWS)
DOCUMENT = json.loads(to_json(RUN))


def test_samples_are_grouped_by_variant_and_length():
    assert [(p.variant, p.n, p.ms) for p in RUN.points] == [
        ("softmax", 16, (1.0, 4.0, 2.0)),
        ("softmax", 64, (8.0,)),
        ("local~window~8", 16, (3.0,)),
    ]
    assert RUN.points[0].quartiles == (1.5, 2.0, 3.0)
    assert [(x.variant, x.reason) for x in RUN.left_out] == [("topk", "Too slow.")]


@given(ms=st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=3), mode=st.sampled_from(MODES), causal=st.booleans())
def test_a_run_is_unchanged_after_writing_and_reading(ms, mode, causal):
    spec = TimingSpec(variants=SPEC.variants, sizes=(16,), rounds=3, mode=mode, causal=causal)
    run = group_samples(spec, STAMP, [sample("softmax", 16, i, value) for i, value in enumerate(ms)])
    again = from_json(to_json(run))
    assert (again.spec, again.stamp, again.left_out) == (run.spec, run.stamp, run.left_out)
    assert again.points[0].ms == pytest.approx(ms, rel=1e-3)
    assert from_json(to_json(again)) == again


def document_paths(item, path=()):
    """Yield every path in a document."""
    yield path
    inner = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for key, value in inner:
        yield from document_paths(value, (*path, key))


def replace_value(document, path, value):
    if not path:
        return value
    document = copy.deepcopy(document)
    item = document
    for key in path[:-1]:
        item = item[key]
    item[path[-1]] = value
    return document


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(path=st.sampled_from(list(document_paths(DOCUMENT))), value=ANYTHING)
def test_any_file_is_read_or_rejected_with_a_message(path, value):
    try:
        run = from_json(json.dumps(replace_value(DOCUMENT, path, value)).encode())
    except ac.errors.InputError:
        return
    assert isinstance(run, Run)
    assert all(point.n in run.spec.sizes and point.variant in run.spec.variants for point in run.points)
    assert all(0 < ms < 2**63 for point in run.points for ms in point.ms)
    assert from_json(to_json(run)).spec == run.spec


@pytest.mark.parametrize("path", [p for p in document_paths(DOCUMENT) if p and isinstance(p[-1], str)], ids=str)
def test_a_field_that_is_missing_or_of_another_type_is_refused(path):
    for wrong in ({}, [[]], "\x00", -1, 1e999):
        with pytest.raises(ac.errors.InputError):
            from_json(json.dumps(replace_value(DOCUMENT, path, wrong)).encode())
    short = copy.deepcopy(DOCUMENT)
    item = short
    for key in path[:-1]:
        item = item[key]
    del item[path[-1]]
    with pytest.raises(ac.errors.InputError):
        from_json(json.dumps(short).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 10_000,
        b"NaN",
        b" " * (2 * 2**20 + 1),
        to_json(RUN).replace(b"1.0", b"NaN"),
        to_json(RUN).replace(b"1.0", b"1e999"),
        to_json(RUN)[:-5],
        to_json(RUN).replace(b'"local~window~8"', b'"__import__"'),
        to_json(RUN).replace(b'"n": 64', b'"n": 16'),
        to_json(RUN).replace(b'"version": 1', b'"version": 0'),
        to_json(RUN).replace(b'"version": 1', b'"version": "1"'),
        to_json(RUN).replace(b'"format": "attention-lab timing"', b'"format": "another"'),
        to_json(RUN).replace(b'"version": 1', b'"later": ' + b"[" * 100_000),
        to_json(RUN).replace(b'"cores": 4', b'"cores": ' + b"9" * 5_000),
        to_json(RUN).replace(b'"cpu": "B"', b'"cpu": "B\\u0007"'),
        to_json(RUN).replace(b'"cpu": "B"', b'"cpu": "\xff"'),
        to_json(RUN).replace(b'"cpu": "B"', b'"cpu": "B", "cpu": 4'),
        to_json(RUN).replace(b'"reason": "Too slow."', b'"reason": "Too\\nslow."'),
        to_json(RUN).replace(b'"n": 64', b'"n": true'),
        to_json(RUN).replace(b"[1.0, 4.0, 2.0]", b"[]"),
        to_json(RUN).replace(b"4.0", b"4.0, 1.0, 1.0"),
        to_json(RUN).replace(b"4.0", b"0.0"),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_invalid_files_are_refused(data):
    with pytest.raises(ac.errors.InputError):
        from_json(data)


@pytest.mark.parametrize("path", [(), ("stamp",), ("spec",), ("points", 0), ("left_out", 0)], ids=str)
@pytest.mark.parametrize("value", [None, "x", [[1.5]], {"deep": {"er": 2**70}}], ids=str)
def test_a_file_of_a_later_version_opens_with_the_known_fields(path, value):
    document = replace_value(DOCUMENT, ("version",), 2)
    if path:
        document = replace_value(document, (*path, "watts"), value)
    else:
        document["watts"] = value
    assert from_json(json.dumps(document).encode()) == RUN


@pytest.mark.parametrize(("reason", "fits"), [(LIMIT_REASONS[1], True), ("{most:>999999999}", False)])
def test_only_a_known_reason_is_formatted_with_its_fields(reason, fits):
    document = replace_value(replace_value(DOCUMENT, ("left_out", 0, "reason"), reason), ("left_out", 0, "most"), 2.0)
    if fits:
        [left] = from_json(json.dumps(document).encode()).left_out
        assert left.reason.format(**left.fields) == "One call would take more than 2 s."
    else:
        with pytest.raises(ac.errors.InputError, match="must be one of the lab's two sentences about these limits"):
            from_json(json.dumps(document).encode())


def test_the_last_of_repeated_keys_is_used_and_a_byte_order_mark_ignored():
    data = to_json(RUN).replace(b'"cpu": "B"', b'"cpu": "A", "cpu": "B"')
    assert from_json(b"\xef\xbb\xbf" + data) == RUN


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ((b'"n": 64', b'"n": "64"'), "points[1].n in the file is not valid: Expected int, got str."),
        ((b'"heads": 8', b'"heads": 0'), "spec.heads in the file is not valid: Expected int >= 1."),
        ((b'"heads": 8, ', b""), "spec in the file is not valid: Object missing required field heads."),
        ((b"[1.0, 4.0, 2.0]", b"[1.0, -4.0, 2.0]"), "points[0].ms[1] in the file is not valid: Expected float > 0.0."),
    ],
    ids=str,
)
def test_an_error_names_the_field_and_the_expected_value(wrong, expected):
    with pytest.raises(ac.errors.InputError) as refused:
        from_json(to_json(RUN).replace(*wrong))
    assert str(refused.value) == f"Entry {expected}"


def test_more_points_than_the_limit_are_refused():
    document = replace_value(DOCUMENT, ("points",), DOCUMENT["points"] * 1000)
    with pytest.raises(ac.errors.InputError, match="but the limit is 2,048"):
        from_json(json.dumps(document).encode())


def test_a_recorded_run_exists_for_every_mode_with_softmax_at_every_length():
    shipped = recorded_runs()
    assert {run.spec.mode for run in shipped.values()} == set(MODES)
    for run in shipped.values():
        base = [point for point in run.points if point.variant == "softmax"]
        assert [point.n for point in base] == list(run.spec.sizes)
