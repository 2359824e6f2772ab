import io
import struct
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attention_core.errors import InputError
from attention_core.inputs import SyntheticSpec, example_npz, from_synthetic, from_upload, to_npz
from attention_core.inputs.labels import readable_token
from attention_core.limits import current


def save(compressed=False, **arrays):
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def triple(*shape, dtype=np.float32):
    return dict(zip("qkv", np.random.default_rng(0).normal(size=(3, *shape)).astype(dtype), strict=True))


def npy(descr="<f4", shape="(4, 3)", body=b"\0" * 48, header=None):
    """Return a hand-written .npy member with any header."""
    words = (header or f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}").encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words + body


def zipped(q=None, method=zipfile.ZIP_STORED, **members):
    """Return a zip of raw members; k and v are valid, and the test provides q."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in {"q": q or npy(), "k": npy(), "v": npy(), **members}.items():
            archive.writestr(name + ".npy", content)
    return file.getvalue()


def refusal(data, name="mine.npz"):
    """Return the message with which a file is rejected."""
    with pytest.raises(InputError) as error:
        from_upload(data, name)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", ")"))
    assert len(sentence) < 300
    return sentence


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4", ">f8"])
@pytest.mark.parametrize("compressed", [False, True])
def test_uploaded_numbers_equal_the_saved_numbers(dtype, compressed):
    arrays = triple(3, 5, 4, dtype=dtype)
    qkv = from_upload(save(compressed, **arrays), "mine.npz")
    for name in "qkv":
        assert getattr(qkv, name).dtype == torch.float32
        np.testing.assert_array_equal(getattr(qkv, name).numpy(), arrays[name].astype(np.float32))
    assert qkv.tokens == ("t0", "t1", "t2", "t3", "t4")
    assert (qkv.causal, qkv.origin, qkv.total_tokens, qkv.scale) == (False, "mine.npz", 5, 0.5)
    assert qkv.notices == ()


@pytest.mark.parametrize(("shape", "heads"), [((6, 4), 1), ((2, 6, 4), 2), ((1, 2, 6, 4), 2)])
def test_arrays_with_two_three_or_four_axes_are_accepted(shape, heads):
    arrays = triple(*shape)
    qkv = from_upload(save(**arrays), "x")
    np.testing.assert_array_equal(qkv.k.numpy(), arrays["k"].reshape(heads, 6, 4))


def test_column_major_arrays_keep_their_rows():
    arrays = {name: np.asfortranarray(array) for name, array in triple(2, 5, 3).items()}
    qkv = from_upload(save(**arrays), "x")
    np.testing.assert_array_equal(qkv.q.numpy(), arrays["q"])


def test_layouts_may_be_mixed_and_values_have_their_own_size():
    arrays = triple(1, 1, 6, 4) | {"k": np.ones((6, 4), "f4"), "v": np.ones((1, 6, 9), "f8")}
    qkv = from_upload(save(**arrays), "x")
    assert (qkv.q.shape, qkv.k.shape, qkv.v.shape) == ((1, 6, 4), (1, 6, 4), (1, 6, 9))


def test_labels_and_causal_are_read_and_extra_arrays_reported():
    extras = {"words": np.ones(3), "layer": np.array([{"a": 1}], dtype=object)}
    qkv = from_upload(save(**triple(3, 4), tokens=np.array(["the", "猫", "🐈"]), causal=np.array(True), **extras), "x")
    assert qkv.tokens == ("the", "猫", "🐈")
    assert qkv.causal is True
    assert [str(notice) for notice in qkv.notices] == ["These arrays in the file are not used: layer and words."]


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 20),
    heads=st.integers(1, 3),
    d=st.integers(1, 9),
    causal=st.booleans(),
    labels=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
        .map(readable_token)
        .filter(lambda label: readable_token(label) == label),
        min_size=20,
    ),
)
def test_an_exported_record_is_read_back_unchanged(n, heads, d, causal, labels):
    spec = SyntheticSpec(kind="gaussian", n=n, heads=heads, d=d, causal=causal)
    made = from_synthetic(spec)
    object.__setattr__(made, "tokens", tuple(labels[:n]))
    back = from_upload(to_npz(made), "x")
    assert all(torch.equal(getattr(made, name), getattr(back, name)) for name in "qkv")
    assert (back.tokens, back.causal, back.scale) == (made.tokens, made.causal, made.scale)


@pytest.mark.parametrize(
    ("saved", "shown"),
    [
        ("", "∅"),
        ("  ", "␣␣"),
        ("\u200b", "U+200B"),
        ("\u3164", "U+3164"),
        ("Ġthe", "the"),
        ("ĠĠ", "␣␣"),
        ("Ċ", "↵"),
        ("▁the", "the"),
        ("##ing", "ing"),
        ("##", "##"),
        ("a\u202eb", "ab"),
        ("\x01", "␁"),
        ("(2)", "(2)"),
    ],
)
def test_every_label_is_visible_and_formatted_like_a_text_token(saved, shown):
    assert from_upload(save(**triple(2, 4), tokens=np.array([saved, "b"])), "x").tokens == (shown, "b")


@pytest.mark.parametrize("name", ["mask", "attention_mask"])
@pytest.mark.parametrize("kind", [bool, np.int64, np.float32])
def test_padding_is_removed(name, kind):
    arrays, mask = triple(2, 5, 4), np.array([[1, 1, 0, 1, 0]], kind)
    qkv = from_upload(save(**arrays, tokens=np.array(list("abcde")), **{name: mask}), "x")
    assert (qkv.tokens, qkv.n, len(qkv.special), len(qkv.groups)) == (("a", "b", "d"), 3, 3, 3)
    for array in "qkv":
        np.testing.assert_array_equal(getattr(qkv, array).numpy(), arrays[array][:, [0, 1, 3]])
    assert [str(notice) for notice in qkv.notices] == [
        "The mask marks 2 of 5 positions as padding. The padding is removed."
    ]


def test_a_mask_without_padding_changes_nothing():
    assert from_upload(save(**triple(5, 4), mask=np.ones(5)), "x").notices == ()


def test_the_suggested_conversion_of_bfloat16_works():
    arrays = triple(6, 4)
    saved = {name: (array.view(np.uint32) >> 16).astype(np.uint16).view("V2") for name, array in arrays.items()}
    message = refusal(save(**saved))
    assert "Array q has the type |V2, which means bfloat16" in message
    conversion = message[message.index("((q.view") : message.rindex(".")]
    read = from_upload(save(**{name: eval(conversion, {"np": np, "q": array}) for name, array in saved.items()}), "x")
    np.testing.assert_allclose(read.q[0].numpy(), arrays["q"], rtol=2**-7)


def test_a_label_too_long_for_an_upload_is_shortened_on_export():
    made = from_synthetic(SyntheticSpec(n=2, heads=1))
    object.__setattr__(made, "tokens", ("a" * 300, "b"))
    assert from_upload(to_npz(made), "x").tokens == ("a" * 255 + "…", "b")


def test_the_example_file_is_small_and_valid():
    data = example_npz()
    qkv = from_upload(data, "example.npz")
    assert (qkv.heads, qkv.n, qkv.notices) == (2, 24, ())
    assert len(data) < 20_000
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        assert sorted(arrays) == ["causal", "k", "q", "tokens", "v"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not an .npz file"),
        (b"hello, world", "is not an .npz file"),
        (npy(), "is not an .npz file"),
        (b"PK\x03\x04" + b"\0" * 40, "damaged or incomplete"),
        (example_npz()[:-30], "damaged or incomplete"),
        (example_npz()[:2000], "damaged or incomplete"),
        (save(), "has no array q, only: -"),
    ],
)
def test_files_in_other_formats_or_damaged_are_refused(data, words):
    assert words in refusal(data)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"arr_0": 0, "arr_1": 0}, "no array q, only: arr_0 and arr_1. Save the file with np.savez(file, q=q"),
        ({"Q": 0, "k": 0, "v": 0}, "no array q, only: Q, k and v."),
        ({"q": 0, "keys": 0, "v": 0}, "no array k, only: q, keys and v."),
        ({"q": 0, "k": 0, "values": 0}, "no array v, only: "),
        ({"x\n" * 50: 0}, "x?x?"),
        ({f"a{i}": 0 for i in range(30)}, "a6, a7 and 22 more."),
    ],
)
def test_the_error_for_a_missing_array_lists_the_arrays_found(arrays, words):
    assert words in refusal(save(**{name: np.zeros((4, 3), "f4") for name in arrays}))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"q": np.ones((6, 4), int)},
            "Array q has the type int64. Convert it to real numbers with q.astype(np.float32)",
        ),
        ({"q": np.ones((6, 4), bool)}, "Array q has the type bool"),
        ({"k": np.ones((6, 4), complex)}, "Array k has the type complex128"),
        ({"v": np.full((6, 4), "x")}, "Array v has the type <U1"),
        ({"v": np.full((6, 4), b"x")}, "Array v has the type |S1"),
        ({"q": np.ones((6, 4), np.longdouble)}, "Array q has the type float128"),
        ({"q": np.ones((6, 4), [("a", "f4"), ("b", "f4")])}, "Array q has the type [('a', '<f4')"),
        ({"q": np.ones((6, 4), object)}, "pickled Python objects, which the lab does not load"),
        ({"q": np.ones(6, "f4")}, "Array q has the shape [6]. Use [n, d], [H, n, d] or [1, H, n, d]"),
        ({"q": np.array(1.0)}, "Array q has the shape []"),
        ({"q": np.ones((2, 1, 6, 4))}, "Array q has the shape [2, 1, 6, 4]"),
        ({"q": np.ones((1, 1, 1, 6, 4))}, "Array q has the shape [1, 1, 1, 6, 4]"),
        ({"q": np.ones((0, 4))}, "For tokens, use a number from 1 to 1024 instead of 0"),
        ({"q": np.ones((6, 0))}, "For head size, use a number from 1 to 256 instead of 0"),
        ({"q": np.ones((0, 6, 4))}, "For heads, use a number from 1 to 32 instead of 0"),
        ({"q": np.ones((1025, 4))}, "For tokens, use a number from 1 to 1024 instead of 1025"),
        ({"q": np.ones((6, 257))}, "For head size, use a number from 1 to 256 instead of 257"),
        ({"q": np.ones((33, 6, 4))}, "For heads, use a number from 1 to 32 instead of 33"),
        ({"k": np.ones((6, 5))}, "The shapes of q [1, 6, 4], k [1, 6, 5] and v [1, 6, 4] do not match"),
        ({"k": np.ones((7, 4))}, "do not match"),
        ({"v": np.ones((7, 4))}, "do not match"),
        ({"q": np.ones((4, 6, 4))}, "Repeat keys and values that several heads share"),
        ({"q": np.full((6, 4), np.nan)}, "Array q has 24 values that are NaN or infinite"),
        ({"v": np.array([[1, np.inf, -np.inf, 0]] * 6)}, "Array v has 12 values"),
        ({"k": np.full((6, 4), 1e30)}, "Array k has values up to 1e+30"),
        (
            {"tokens": np.array(["a"] * 5)},
            "Array tokens has the shape [5], but there are 6 positions. Save one label per position",
        ),
        ({"tokens": np.array([["a"] * 6])}, "Array tokens has the shape [1, 6]"),
        ({"tokens": np.array([b"a"] * 6)}, "Array tokens has the type |S1. Save labels"),
        ({"tokens": np.arange(6)}, "Array tokens has the type int64. Save labels"),
        ({"tokens": np.array(["a"] * 6, object)}, "Array tokens contains pickled"),
        ({"tokens": np.array(["a" * 300] * 6)}, "at most 256 characters"),
        ({"tokens": np.array(["\ud800"] * 6)}, "not valid Unicode"),
        ({"mask": np.ones((6, 6))}, "Array mask must have one number per position"),
        ({"mask": np.tri(6, dtype=bool)}, "For a causal mask, save causal=True instead"),
        ({"attention_mask": np.ones(5)}, "Array attention_mask must have one number per position"),
        ({"mask": np.where(np.arange(6) < 4, 0, -np.inf)}, "1 for a token, 0 for padding"),
        ({"mask": np.array(["a"] * 6)}, "Array mask must have"),
        ({"mask": np.zeros(6)}, "marks all 6 positions as padding"),
        ({"causal": np.array(1)}, "Array causal has the type int64 and the shape []. Save a single True or False"),
        ({"causal": np.array([True, False])}, "Array causal has the type bool and the shape [2]"),
    ],
)
def test_arrays_of_wrong_types_shapes_and_values_are_refused(changed, words):
    assert words in refusal(save(**triple(6, 4) | changed))


@pytest.mark.parametrize("order", "<>")
def test_labels_are_read_in_either_byte_order(order):
    def tokens(point):
        return zipped(tokens=npy(f"{order}U1", "(4,)", struct.pack(f"{order}4I", *[point] * 4)))

    assert from_upload(tokens(0x732B), "x").tokens == ("猫",) * 4
    for point in (0x110000, 0xD800, 2**32 - 1):
        assert "not valid Unicode" in refusal(tokens(point))


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=32, max_size=32))
def test_random_labels_are_read_or_refused(body):
    is_accepted(zipped(tokens=npy("<U2", "(4,)", body)))


@pytest.mark.parametrize(
    ("q", "words"),
    [
        (npy(shape="(-4, -3)"), "does not match its shape [-4, -3]"),
        (npy(shape="(-12,)"), "does not match its shape [-12]"),
        (npy(shape="(16384, 16384)"), "has 48 bytes, which does not match its shape [16384, 16384]"),
        (npy(shape=f"({2**62}, {2**62})"), "has 48 bytes, which does not match"),
        (npy(shape="(4, 2)"), "has 48 bytes, which does not match"),
        (npy(shape="(4.0, 3)"), "cannot be read. Save the file with np.savez"),
        (npy(shape="12"), "cannot be read. Save the file with np.savez"),
        (npy(descr="banana"), "cannot be read. Save the file with np.savez"),
        (npy(descr="|O"), "pickled"),
        (npy(header="{[]: 1}"), "cannot be read. Save the file with np.savez"),
        (npy(header="{'descr': '<f4'}"), "cannot be read. Save the file with np.savez"),
        (npy(header="(" * 900), "cannot be read. Save the file with np.savez"),
        (npy(header="{'x': '''"), "cannot be read. Save the file with np.savez"),
        (npy(header="__import__('os').system('false')"), "cannot be read. Save the file with np.savez"),
        (npy(header="{" + "-" * 900 + "1}"), "cannot be read. Save the file with np.savez"),
        (npy(header="1" * 60_000), "cannot be read. Save the file with np.savez"),
        (npy().replace(b"NUMPY\x01", b"NUMPY\x03"), "cannot be read. Save the file with np.savez"),
        (npy()[:9], "cannot be read. Save the file with np.savez"),
        (b"no array at all", "cannot be read. Save the file with np.savez"),
    ],
)
def test_hostile_array_headers_are_refused(q, words):
    assert words in refusal(zipped(q))


def test_a_zip_bomb_is_refused_without_being_opened(monkeypatch):
    # 1 GiB of zeros that deflates to 1 MiB; the zip's directory states the true size.
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("q.npy", "w", force_zip64=True) as member:
            member.write(npy(shape=f"({2**14}, {2**14})", body=b""))
            for _ in range(256):
                member.write(bytes(2**22))
        for name in ("k.npy", "v.npy"):
            archive.writestr(name, npy())
    data = file.getvalue()
    assert len(data) < 8 * 2**20
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("the bomb was opened"))
    assert ". Reduce them to at most 67,108,864 bytes, for example" in refusal(data)


def test_a_zip_bomb_with_a_false_size_is_refused():
    # The directory states 300 bytes, but the deflated stream holds 16 MiB.
    q = npy(shape="(2, 16, 2)", body=bytes(2**24))
    data = bytearray(zipped(q, zipfile.ZIP_DEFLATED))
    size = struct.pack("<I", len(q))
    assert data.count(size) == 2
    honest = len(npy(shape="(2, 16, 2)", body=bytes(256)))
    assert "damaged" in refusal(bytes(data).replace(size, struct.pack("<I", honest)))


def test_a_stream_that_ends_early_is_refused_despite_its_valid_checksum():
    short = npy(body=b"\0" * 40)
    data = zipped(short, zipfile.ZIP_DEFLATED)
    entry = data.index(b"PK\x01\x02")
    size = slice(entry + 24, entry + 28)
    assert data[size] == struct.pack("<I", len(short))
    assert "damaged" in refusal(data[: size.start] + struct.pack("<I", len(short) + 8) + data[size.stop :])


def test_a_member_that_starts_beyond_the_file_is_refused():
    data = bytearray(zipped())
    entry, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    far = struct.pack("<HHQ", 1, 8, 2**64 - 1)  # The 64-bit field in which a directory may state where a member starts.
    data[entry + 42 : entry + 46] = b"\xff" * 4
    data[entry + 30 : entry + 32] = struct.pack("<H", len(far))
    (size,) = struct.unpack_from("<I", data, end + 12)
    data[end + 12 : end + 16] = struct.pack("<I", size + len(far))
    data[entry + 51 : entry + 51] = far
    assert "damaged" in refusal(bytes(data))


def test_a_zip_with_too_many_members_is_refused_without_being_opened(monkeypatch):
    data = zipped(**{f"x{i}": b"" for i in range(current().upload_members)})
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("the zip was opened"))
    assert f"contains {current().upload_members + 3} arrays, more than {current().upload_members}." in refusal(data)


def test_a_file_above_the_size_limit_is_refused(monkeypatch):
    assert "has 68,157,442 bytes, but the limit is 67,108,864 bytes. " in refusal(b"PK" + bytes(65 * 2**20))
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert "but the limit is 16,777,216 bytes. " in refusal(b"PK" + bytes(17 * 2**20))
    assert "use a number from 1 to 512" in refusal(save(**triple(600, 2)))


def test_an_encrypted_array_is_refused():
    data = bytearray(zipped())
    entry = data.index(b"PK\x01\x02")
    data[entry + 8] |= 1  # The flag in the directory that q needs a password.
    assert "Array q cannot be read. Save the file with np.savez." in refusal(bytes(data))


def test_compressions_that_numpy_does_not_write_are_refused():
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        assert "Array q cannot be read. Save the file with np.savez." in refusal(zipped(method=method))


def test_changed_numbers_fail_the_checksum():
    data = save(**triple(6, 4))
    at = data.index(b"NUMPY") + 150
    assert "damaged" in refusal(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_file_names_in_messages_are_shortened_and_cleaned():
    assert refusal(b"", "a\x00\x1b[31m" + "b" * 200) == (
        "a??[31m" + "b" * 33 + "… is not an .npz file. Save the three arrays q, k and v with np.savez(file, q=q, k=k, "
        "v=v)."
    )


WHOLE = save(True, **triple(3, 2), tokens=np.array(["a", "b", "c"]), causal=np.array(True))


def is_accepted(data):
    """Return whether hostile bytes are accepted; an exception other than ``InputError`` fails the test."""
    try:
        from_upload(data, "x.npz")
    except InputError:
        return False
    return True


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06"]))
def test_random_bytes_are_refused(data, start):
    assert not is_accepted(start + data)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_changed_bytes_are_read_or_refused(changes):
    data = bytearray(WHOLE)
    for at, byte in changes:
        data[at] = byte
    is_accepted(bytes(data))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_truncated_files_are_refused(length):
    assert is_accepted(WHOLE)
    assert not is_accepted(WHOLE[:length])


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(max_codepoint=255), max_size=120)
    | st.text("{}()[]'\":,<f4 descrshape\n\\L-#0b_", max_size=60)
)
def test_random_headers_are_refused(header):
    assert not is_accepted(zipped(npy(header=header or "?")))


@settings(max_examples=200, deadline=None)
@given(st.text("<>|=fiuUSVOM?,()48 [ns]:*", max_size=8), st.lists(st.integers(-3, 9), max_size=5))
def test_random_types_and_shapes_are_read_or_refused(descr, shape):
    is_accepted(zipped(npy(descr, str(tuple(shape)))))
