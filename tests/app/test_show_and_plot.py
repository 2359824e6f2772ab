"""Tests of the matrices and figures in notebooks: their numbers, and their use next to a user's own package ``app``."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from driver import joined

import attention_core as ac

ROOT = Path(__file__).parent.parent.parent
Q, K, V = torch.randn(3, 2, 24, 8, generator=torch.Generator().manual_seed(0))
WORDS = ["softmax", "local~window~2", "nystrom~landmarks~4"]


def matrices(widget):
    """Return the titles, captions and matrices of a widget's message."""
    header, payload = joined(widget.message, {})
    start, found = 0, []
    for panel in header["panels"]:
        cells = panel["rows"] * panel["cols"]
        halves = np.frombuffer(payload, "<f2", count=cells, offset=start).astype(float) * 2.0 ** panel["exponent"]
        found.append((panel["title"], panel["caption"], halves.reshape(panel["rows"], panel["cols"])))
        start += 2 * cells
    return found


@pytest.mark.parametrize("head", [1, None])
def test_a_widget_has_the_matrices_of_a_head_or_their_mean(head):
    found = ac.compare(Q, K, V, WORDS, tokens=[*"abcdefghijklmnopqrstuvwx"])
    drawn = matrices(ac.show(found, head=head))
    assert [each[:2] for each in drawn] == [("Softmax", ""), ("Local", "window = 2"), ("Nyström", "landmarks = 4")]
    for (_, _, values), weights in zip(drawn, found.matrices.values(), strict=True):
        expected = weights.mean(0) if head is None else weights[head]
        seen = ~np.isnan(values)
        np.testing.assert_allclose(values[seen], expected.numpy()[seen], rtol=2e-3, atol=1e-6)
        assert not expected.numpy()[~seen].any()
    assert np.isnan(drawn[1][2]).sum() == 24 * 24 - int(ac.from_word(WORDS[1]).mask(24).sum())


def test_a_widget_accepts_a_record_and_a_causal_mask():
    record = ac.QKV.from_tensors(Q, K, V)
    [(_, _, values), _] = matrices(ac.show(record, WORDS[:2], causal=True))
    assert (np.isnan(values) == ~np.tri(24, dtype=bool)).all()
    with pytest.raises(ac.LabError, match="Choose a head from 0 to 1"):
        ac.show(record, head=2)
    with pytest.raises(ac.LabError, match="cannot be causal"):
        ac.show(record, ["nystrom"], causal=True)


def test_the_figures_show_the_numbers_of_the_sweeps():
    rows = ac.sweep("error", (Q, K, V), ["local", "linear"])
    figure = ac.plot.error(rows, "mass")
    lines = {line.name: line for line in figure.data if line.name}
    assert list(lines) == ["uniform", "local", "linear"]
    widths = sorted({row.value for row in rows if row.variant == "local"})
    assert list(lines["local"].x) == widths
    for x, y in zip(lines["local"].x, lines["local"].y, strict=True):
        assert min(row.mass for row in rows if row.value == x) <= y <= max(row.mass for row in rows if row.value == x)
    assert lines["linear"].x[0] == widths[0]
    assert lines["linear"].x[-1] == widths[-1]
    with pytest.raises(ValueError, match="Choose one of matrix, mass"):
        ac.plot.error(rows, "speed")

    rows = ac.sweep("entropy", (Q, K, V), ["softmax"])
    [line] = (line for line in ac.plot.entropy(rows).data if line.name)
    assert list(line.x) == sorted({row.n for row in rows})
    for drawn in (ac.plot.error, ac.plot.entropy):
        with pytest.raises(ValueError, match="no rows"):
            drawn([])


def test_two_settings_of_one_variant_have_a_line_each():
    words = ["nystrom~iterations~1", "nystrom~iterations~6", "nystrom~landmarks~5~iterations~2"]
    rows = ac.sweep("error", (Q, K, V), words)
    lines = {line.name: line for line in ac.plot.error(rows).data if line.name}
    assert list(lines) == ["uniform", "nystrom~iterations~1", "nystrom", "nystrom~iterations~2"]
    for name, iterations in (("nystrom~iterations~1", 1), ("nystrom~iterations~2", 2), ("nystrom", 6)):
        own = {
            row.value
            for row in rows
            if row.variant == "nystrom" and ac.from_word(row.word).params.iterations == iterations
        }
        assert list(lines[name].x) == sorted(own)


@pytest.mark.parametrize(
    ("weights", "top"),
    [
        (torch.full((2, 2), 0.5, requires_grad=True), 0.5),
        (torch.full((2, 2), 0.5, dtype=torch.bfloat16), 0.5),
        (torch.full((2, 2), np.nan), 1),
        (np.array([[np.nan, 0.25], [0.25, 0.25]]), 0.25),
        (np.eye(2, dtype=int)[::-1], 1),
    ],
)
def test_matrices_of_every_type_are_drawn(weights, top):
    figure = ac.plot.matrix(weights, np.array(["a", "b"]))
    assert figure.data[0].zmax == top
    assert list(figure.layout.xaxis.ticktext) == ["a", "b"]


def test_a_matrix_is_drawn_with_its_labels_and_a_colour_scale_around_zero():
    weights = ac.from_word(WORDS[2]).weights(Q, K)[0]
    heat = ac.plot.matrix(weights, ["<b>", *"bcdefghijklmnopqrstuvwx"], title="<i>").data[0]
    np.testing.assert_array_equal(heat.z, weights.double().numpy())
    assert heat.zmin == -heat.zmax == -float(weights.abs().max())
    figure = ac.plot.matrix(weights.numpy(), ["<b>", *"bcdefghijklmnopqrstuvwx"], title="<i>")
    assert figure.layout.xaxis.ticktext[0] == "&lt;b>"
    assert figure.layout.title.text == "&lt;i>"
    assert ac.plot.matrix(ac.get("softmax").weights(Q, K)[0]).data[0].zmin == 0
    with pytest.raises(ValueError, match=r"shape \(2, 24, 24\)"):
        ac.plot.matrix(ac.get("softmax").weights(Q, K))


OWN_APP = """
import app.words
import torch
import attention_core as ac
q, k, v = torch.randn(3, 8, 4)
assert len(ac.show(ac.compare(q, k, v)).message) > 100
ac.plot.error(ac.sweep("error", (q, k, v), ["local"]))
import app.later
import sys
assert (app.words.WHOSE, app.later.WHOSE) == ("the user", "the user"), sys.modules["app"]
assert "streamlit" not in sys.modules
"""


def test_a_user_keeps_a_package_named_app(tmp_path):
    for name in ("__init__", "words", "later"):
        file = tmp_path / "own" / "app" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("WHOSE = 'the user'\n")
    # The folders are those of an installed wheel: ``app`` is inside ``attention_lab``, and not on Python's path.
    (tmp_path / "attention_core").symlink_to(ROOT / "attention_core")
    (tmp_path / "attention_lab").mkdir()
    for file in [*(ROOT / "attention_lab").glob("*.py"), ROOT / "app"]:
        (tmp_path / "attention_lab" / file.name).symlink_to(file)
    site = sysconfig.get_path("purelib")
    path = ":".join(map(str, [tmp_path / "own", tmp_path, site, *[p for p in sys.path if "site-packages" in p]]))
    ended = subprocess.run(
        [sys.executable, "-c", OWN_APP], cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
