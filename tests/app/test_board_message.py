"""Tests of the messages that send matrices to the browser: numbers keep their precision, invalid ones are refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from driver import inside, joined, unpacked
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from app.board_messages import packing
from app.board_messages.packing import pack
from app.matrix_board import Panel, board
from app.matrix_board.thumbnails import pack_thumbnails, shades

LABELS = ["a", "b"]


def decoded(panel: dict, payload: bytes, start: int = 0) -> np.ndarray:
    cells = panel["rows"] * panel["cols"]
    halves = np.frombuffer(payload, "<f2", count=cells, offset=start).astype(np.float64)
    return (halves * 2.0 ** panel["exponent"]).reshape(panel["rows"], panel["cols"])


def send(values, **kwargs) -> tuple[dict, np.ndarray]:
    header, payload = joined(*pack([Panel("p", "P", "", np.asarray(values))], None, None, key="k", **kwargs))
    return header["panels"][0], decoded(header["panels"][0], payload)


@example(np.array([[8.9959320e07, 3.6028797e16]], dtype=np.float32))  # The largest number is a power of two.
@example(np.array([[1 - 2.0**-12, 2.0**-29]], dtype=np.float32))  # A half float rounds the largest number to 1.
@given(
    arrays(
        np.float32,
        array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False),
    )
)
@settings(deadline=None)
def test_numbers_keep_three_digits_over_nine_decades(values):
    panel, found = send(values)
    largest = np.abs(values).max(initial=0)
    visible = np.abs(values) >= largest * 2.0**-29
    np.testing.assert_allclose(found[visible], values[visible], rtol=2.0**-11)
    assert (np.sign(found) == np.sign(values)).all(), "what is above zero stays above zero, and zero stays zero"
    assert np.isfinite(found).all()
    assert max(panel["highest"], -panel["lowest"]) == pytest.approx(largest)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-30, 3e38])
def test_any_magnitude_keeps_its_precision(scale):
    values = np.array([[1.0, 0.5], [0.25, 2.0**-20]]) * scale
    _, found = send(values)
    np.testing.assert_allclose(found, values, rtol=2.0**-11)


@pytest.mark.parametrize("largest", [1.0, 1.999, 1 - 2.0**-12, 0.7])
def test_the_code_of_the_largest_number_has_a_colour(largest):
    _, payload = joined(*pack([Panel("p", "P", "", np.array([[largest]]))], None, None, key="k"))
    script = (Path(board.__file__).parent / "drawing" / "color.js").read_text("utf-8")
    [last] = re.findall(r"LARGEST = (0x\w+);", script)
    assert 0x7800 <= int.from_bytes(payload[:2], "little") <= int(last, 16)


def test_a_weight_of_one_is_sent_exactly():
    _, found = send([[1.0, 0.123], [0.5, 0.0]])
    assert found[0, 0] == 1
    assert found[1, 0] == 0.5
    assert found[1, 1] == 0


def test_masked_cells_have_one_code_that_differs_from_zero():
    nan = np.float32("nan")
    header, payload = joined(*pack([Panel("p", "P", "", np.array([[0, -nan], [nan, 1]]))], None, None, key="k"))
    assert np.frombuffer(payload, "<u2").tolist()[1:3] == [0x7E00, 0x7E00]
    assert header["panels"][0]["masked"] is True
    assert send([[0.0, 1.0]])[0]["masked"] is False


def test_the_header_has_the_numbers_that_colours_need():
    panel, _ = send([[0.0, -0.5], [np.nan, 2e-6]])
    assert panel["signed"] is True
    assert (panel["lowest"], panel["highest"]) == (-0.5, pytest.approx(2e-6))
    assert panel["smallest"] == pytest.approx(2e-6)
    assert send([[0.5]])[0]["signed"] is False
    assert send([[0.5]], diverging=True)[0]["signed"] is True


@pytest.mark.parametrize("values", [[[0.0, 0.0]], [[np.nan, np.nan]]])
def test_a_matrix_without_visible_values_is_still_a_panel(values):
    panel, found = send(values)
    assert [panel[fact] for fact in ("highest", "lowest", "smallest", "exponent")] == [0, 0, 0, 0]
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.array([[np.inf]]), "infinities"),
        (np.array([[-np.inf, 1]]), "infinities"),
        (np.zeros(3), "matrix"),
        (np.zeros((2, 0)), "at least one cell"),
        (np.zeros((1, 2, 2)), "matrix"),
    ],
)
def test_an_invalid_matrix_is_refused(values, word):
    with pytest.raises(ValueError, match=word):
        pack([Panel("p", "P", "", values)], None, None, key="k")


def test_labels_must_fit_unless_a_panel_has_its_own():
    square, wide = np.eye(2), np.ones((2, 3))
    with pytest.raises(ValueError, match="2 labels for 3"):
        pack([Panel("p", "P", "", wide)], LABELS, LABELS, key="k")
    message = pack(
        [Panel("p", "P", "", square), Panel("w", "W", "", wide, col_labels=["x", "y", "z"])], LABELS, LABELS, key="k"
    )
    header, payload = joined(*message)
    assert header["panels"][1]["col_labels"] == ["x", "y", "z"]
    np.testing.assert_array_equal(decoded(header["panels"][1], payload, start=2 * square.size), wide)
    with pytest.raises(ValueError, match="at least one panel"):
        pack([], LABELS, LABELS, key="k")


def test_hostile_labels_are_sent_unchanged():
    labels = ['<img src=x onerror="alert(1)">', "\ud800\u202e\x00"]
    header, _ = joined(*pack([Panel("p", "</script>", "", np.eye(2))], labels, labels, key="k"))
    assert header["row_labels"] == labels
    assert header["panels"][0]["title"] == "</script>"


def test_the_payload_has_two_bytes_per_cell():
    header, payload = joined(*pack([Panel("p", "P", "", np.eye(64))], None, None, key="board"))
    assert len(payload) == 2 * 64 * 64
    assert header["key"] == "board"


def test_the_digest_differs_only_after_a_change():
    def digest(values, title="P"):
        return joined(*pack([Panel("p", title, "", values)], None, None, key="k"))[0]["digest"]

    assert digest(np.eye(3)) == digest(np.eye(3))
    assert len({digest(np.eye(3)), digest(2 * np.eye(3)), digest(np.eye(3)[::-1]), digest(np.eye(3), "Q")}) == 4


def test_thumbnails_have_one_byte_per_cell_on_their_own_square_root_scale():
    images = np.zeros((2, 3, 4, 4), dtype=np.float32)
    images[1, 2] = 0.25
    images[1, 2, 0, 0] = 1e-3
    images[1, 2, 0, 1] = np.nan
    images[0, 0, 3, 3] = 7
    header, payload = unpacked(pack_thumbnails(shades(images), key="k"))
    assert (header["layers"], header["heads"], header["size"]) == (2, 3, 4)
    places = np.frombuffer(payload, np.uint8).reshape(images.shape)
    assert places[1, 2, 1, 1] == places[0, 0, 3, 3] == 254
    assert places[1, 2, 0, 0] == round(254 * (1e-3 / 0.25) ** 0.5)
    assert places[1, 2, 0, 1] == 255
    assert places[0, 1].max() == 0


@pytest.mark.parametrize("images", [np.zeros((2, 2, 3, 4)), np.zeros((2, 3, 3)), np.full((1, 1, 2, 2), -1.0)])
def test_invalid_thumbnails_are_refused(images):
    with pytest.raises(ValueError, match="miniatures"):
        shades(images)


@pytest.mark.parametrize(("n", "travels"), [(100, "with"), (130, "apart")])
def test_small_panels_are_sent_with_their_board_and_large_ones_separately(n, travels):
    matrices = np.random.default_rng(0).random((3, n, n))
    panels = [Panel(key, key.upper(), "", matrix) for key, matrix in zip("abc", matrices, strict=True)]
    message, apart = pack(panels, None, None, key="k")
    assert list(apart) == ([] if travels == "with" else ["a", "b", "c"])
    assert (len(message) < 700) == (travels == "apart")
    header, payload = joined(message, apart)
    assert [panel["key"] for panel in header["panels"]] == ["a", "b", "c"]
    np.testing.assert_allclose(decoded(header["panels"][2], payload, start=4 * n * n), matrices[2], rtol=1e-3)
    again, _ = pack([*panels[:2], Panel("c", "C", "", matrices[0])], None, None, key="k")
    assert again != message


def fixed(values):
    """Return a read-only matrix."""
    values = np.array(values, np.float32)
    values.flags.writeable = False
    return values


def test_a_read_only_matrix_is_encoded_once_until_it_is_deleted(monkeypatch):
    coded, code = [], packing._encode_values
    monkeypatch.setattr(packing, "_encode_values", lambda panel: coded.append(panel.key) or code(panel))
    before, values = len(packing._encoded), fixed([[0.5, 0.25]])
    first, again = (pack([Panel("p", "P", "", values, top=top)], None, None, key="k")[0] for top in (0.0, 2.0))
    assert coded == ["p"]
    np.testing.assert_array_equal(decoded(*inside(*unpacked(first))[0]), values)
    assert [inside(*unpacked(each))[0][0]["highest"] for each in (first, again)] == [0.5, 2.0]
    open_to_all = np.array(values)
    for number in (0.5, 0.75):
        open_to_all[0, 0] = number
        assert (
            decoded(*inside(*unpacked(pack([Panel("o", "O", "", open_to_all)], None, None, key="k")[0]))[0])[0, 0]
            == number
        )
    assert coded == ["p", "o", "o"]
    assert len(packing._encoded) == before + 1
    del values
    assert len(packing._encoded) == before


@given(arrays(np.float16, (2, 3), elements=st.floats(0, 1, width=16)), st.booleans())
@settings(deadline=None)
def test_two_messages_have_one_digest_only_if_they_are_equal(values, written):
    changed = values + np.float16(1)
    one, same, other = (
        unpacked(pack([Panel("p", "P", "", each if written else fixed(each))], None, None, key="k")[0])[0]
        for each in (values, values.copy(), changed)
    )
    assert one == same
    assert one["digest"] != other["digest"]
