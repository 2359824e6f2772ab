import subprocess
import sys

import pytest

import attention_core as ac
from attention_core.__main__ import main
from attention_core.measure.run_file import from_json

TINY = ["--sizes", "16", "8", "--heads", "1", "--head-size", "4", "--rounds", "2"]


def test_list_names_every_variant_with_family_and_causality(capsys):
    assert main(["list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {variant.key for variant in ac.all_variants()}
    for variant in ac.all_variants():
        assert variant.family in lines[variant.key]
        assert ("not causal" in lines[variant.key]) == (variant.causal_reason is not None)


@pytest.mark.parametrize("mode", ["forward", "backward", "decode"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bench_writes_a_file_that_the_page_loads(tmp_path, capsys, mode, dtype):
    out = tmp_path / "run.json"
    words = ["softmax", "local~window~4", "linear"]
    assert main(["bench", "--variants", *words, "--mode", mode, "--dtype", dtype, *TINY, "--out", str(out)]) == 0
    run = from_json(out.read_bytes())
    assert (run.spec.variants, run.spec.sizes, run.spec.mode, run.spec.dtype) == (tuple(words), (8, 16), mode, dtype)
    measured = {(point.variant, point.n): len(point.ms) for point in run.points}
    able = [word for word in words if mode != "decode" or word != "local~window~4"]
    assert measured == {(word, n): 2 for word in able for n in (8, 16)}
    assert str(out) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--variants", "sofmax"], "softmax"),
        (["--variants", "local~window~0"], "window"),
        (["--sizes", "0"], "tokens"),
        (["--heads", "-1"], "heads"),
        (["--device", "cuda"], "cuda"),
        (["--out", "/nowhere/at/all.json"], "folder"),
    ],
)
def test_a_request_that_does_not_fit_gets_a_sentence_and_no_file(tmp_path, capsys, monkeypatch, arguments, word):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    out = tmp_path / "run.json"
    assert main(["bench", *TINY, "--out", str(out), *arguments]) == 2
    told = capsys.readouterr()
    assert word in told.err
    assert "Traceback" not in told.err
    assert not out.exists()


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "attention_core", "list"], capture_output=True, text=True, check=True)
    assert "softmax" in done.stdout
