import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import attention_core as ac
from attention_core import claims
from attention_core.__main__ import main
from attention_core.benchmarking.run_file import from_json
from attention_core.experiments import swap
from attention_core.inputs import SyntheticSource, models
from attention_core.model_patching import losses, perplexity, swapped

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
TINY = ["--sizes", "16", "8", "--heads", "1", "--head-size", "4", "--rounds", "2"]


def test_list_names_every_variant_with_family_and_causality(capsys):
    assert main(["list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert set(lines) == {variant.key for variant in ac.all_variants()}
    for variant in ac.all_variants():
        assert variant.family in lines[variant.key]
        assert ("not causal" in lines[variant.key]) == (variant.causal_reason is not None)


def test_the_columns_of_the_list_are_aligned(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    variants = [*ac.all_variants()]
    for start, words in (
        (0, [variant.key for variant in variants]),
        (lines[0].index(variants[0].family), [variant.family for variant in variants]),
        (lines[0].index(variants[0].complexity), [variant.complexity for variant in variants]),
        (
            lines[0].index("causal"),
            ["not causal" if variant.causal_reason is not None else "causal" for variant in variants],
        ),
    ):
        assert [line[start : start + len(word)] for line, word in zip(lines, words, strict=True)] == words
        assert {line[start - 1 : start] for line in lines} <= {"", " "}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),  # argparse itself ignores the broken pipe.
        (["list"], 141),
        (["bench", "--variants", "softmax", *TINY, "--out", "run.json"], 141),
        (["claims", "--tokens", "24", "--only", "two_layers"], 141),
        (["swap", "--variants", "none_such", "--text", "one two"], 141),
    ],
)
def test_a_closed_pipe_ends_a_command_without_a_traceback(tmp_path, monkeypatch, arguments, code):
    """Check a reader that closes the pipe before anything is written, like ``python -m attention_core list | head``."""
    monkeypatch.chdir(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    program = f"import sys; from attention_core.__main__ import main; sys.exit(main({arguments!r}))"
    errors = subprocess.PIPE if "none_such" not in arguments else subprocess.STDOUT
    done = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=errors, text=True, env=ENVIRONMENT)
    os.close(writer)
    assert done.returncode == code
    assert errors == subprocess.STDOUT or "BrokenPipe" not in done.stderr


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
def test_an_invalid_bench_request_prints_an_error_and_writes_no_file(tmp_path, capsys, monkeypatch, arguments, word):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    out = tmp_path / "run.json"
    assert main(["bench", *TINY, "--out", str(out), *arguments]) == 2
    output = capsys.readouterr()
    assert word in output.err
    assert "Traceback" not in output.err
    assert not out.exists()


FEW = ["--only", "two_layers", "memory_quadruples"]


def test_claims_prints_the_number_verdict_and_finding_of_each_claim(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["claims", "--synthetic", "needle", "--tokens", "24", "--head", "1", *FEW]) == 0
    output = capsys.readouterr()
    source = SyntheticSource(ac.inputs.SyntheticSpec(kind="needle", n=24))
    for key, block in zip(reversed(FEW[1:]), output.out.split("\n\n"), strict=False):
        [task] = claims.tasks(source, head=1, keys=[key])
        [found] = claims.run(task)
        first, *lines = block.splitlines()
        assert first == f"{found.claim.number:>2}  {found.verdict}  ({key})"
        finding = " ".join(found.sentences).format(**found.claim.formatted_numbers(found.numbers))
        assert " ".join(line.strip() for line in lines) == f"{found.claim.statement} {finding}"
    assert max(map(len, output.out.splitlines())) <= 60
    last = output.out.split("\n\n")[-1].replace("\n", " ")
    assert last.startswith("On 24 tokens of this input, of 2 claims: holds: ")
    assert output.err.splitlines()[-2:] == ["1/2 memory_quadruples", "2/2 two_layers"]


def test_claims_reads_a_text_a_file_and_an_archive(tmp_path, capsys):
    words = "The old bridge over the river was closed, so we walked along the bank to the ferry."
    (tmp_path / "a.txt").write_text(words)
    qkv = ac.inputs.from_text(words, layer=2)
    (tmp_path / "a.npz").write_bytes(ac.inputs.to_npz(qkv))
    given = (["--text", words, "--layer", "2"], ["--file", str(tmp_path / "a.txt"), "--layer", "2"])
    outputs = []
    for source in (*given, ["--file", str(tmp_path / "a.npz")]):
        assert main(["claims", *source, "--only", "near_diagonal"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert f"On {qkv.n} tokens" in outputs[0]
    assert main(["claims", *given[0], "--tokens", "12", "--only", "near_diagonal"]) == 0
    assert "On 12 tokens" in (fewer := capsys.readouterr().out)
    assert fewer.split("\n\n")[0] != outputs[0].split("\n\n")[0]


def test_claims_reports_and_counts_claims_that_are_not_testable(capsys):
    assert main(["claims", "--tokens", "3", "--only", "near_diagonal", "double_softmax"]) == 0
    out = capsys.readouterr().out
    needs = claims.claim("near_diagonal").needs
    assert f"{claims.claim('near_diagonal').number}  not testable on this input  (near_diagonal)" in out
    assert f"At least {needs} tokens are needed, but this input has 3." in out
    text = " ".join(out.split())
    assert text.endswith("holds: 1, holds partly: 0, does not hold here: 0, not testable on this input: 1")


def test_claims_about_trained_models_are_not_testable_on_a_synthetic_input(capsys):
    assert main(["claims", "--tokens", "24", "--only", "two_layers", "near_diagonal"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not testable on this input (near_diagonal)" in out
    assert "This claim is about the attention of trained models. Choose a text" in out
    assert out.endswith("of 2 claims: holds: 1, holds partly: 0, does not hold here: 0, not testable on this input: 1")


def test_claims_uses_all_heads_by_default(capsys):
    outputs = []
    for head in ([], ["--head", "1"]):
        assert main(["claims", "--tokens", "24", *head, "--only", "cosine_closest"]) == 0
        source = SyntheticSource(ac.inputs.SyntheticSpec(n=24))
        [task] = claims.tasks(source, head=int(head[1]) if head else None, keys=["cosine_closest"])
        [found] = claims.run(task)
        sentence = found.claim.finding.format(**found.claim.formatted_numbers(found.numbers))
        outputs.append(" ".join(line.strip() for line in capsys.readouterr().out.split("\n")))
        assert sentence in outputs[-1]
    assert outputs[0] != outputs[1]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--synthetic", "nothing"], "gaussian"),
        (["--only", "near_diagonals"], "near_diagonal"),
        (["--tokens", "0"], "tokens"),
        (["--tokens", "513"], "512"),
        (["--head", "4"], "head"),
        (["--head", "-1"], "head"),
        (["--text", " "], "empty"),
        (["--text", "words", "--layer", "6"], "layer"),
        (["--text", "words", "--model", "minilmm"], "minilm"),
        (["--file", "/nowhere/at/all.txt"], "cannot be read"),
        (["--file", sys.executable], "UTF-8"),
    ],
)
def test_an_invalid_claims_request_prints_an_error_and_no_output(capsys, arguments, word):
    assert main(["claims", *FEW, *arguments]) == 2
    output = capsys.readouterr()
    assert word in output.err.splitlines()[-1]
    assert output.out == ""


def test_the_command_line_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "attention_core", "list"], capture_output=True, text=True, check=True)
    assert "softmax" in done.stdout


SWAP = ["swap", "--variants", "softmax", "sink~window~4~sinks~1", "--layers", "10-20", "--text", "the cat saw the dog"]


def test_swap_prints_a_row_per_variant_under_named_columns(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(swap, "SEEDS", 1)
    monkeypatch.setattr(swap, "CopyTask", partial(swap.CopyTask, period=12))
    assert main([*SWAP, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in rows] == ["softmax", "sink~window~4~sinks~1"]
    loaded = models.load("smollm2")
    ids = loaded.tokenizer.encode("the cat saw the dog").ids
    for row in rows:
        assert list(row) == ["variant", "layers", "tokens", "perplexity", "copy_loss", "seconds"]
        assert (row["layers"], row["tokens"]) == ("10-20", len(ids))
        with swapped(loaded.model, dict.fromkeys(range(10, 21), ac.from_word(row["variant"]))):
            assert row["perplexity"] == pytest.approx(perplexity(losses(loaded, ids)), rel=1e-4)
    assert rows[1]["copy_loss"] > rows[0]["copy_loss"]
    file = tmp_path / "text.txt"
    file.write_text("the cat saw the dog")
    assert main(["swap", "--variants", "softmax", *SWAP[4:-2], "--file", str(file), "--tokens", "3"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == list(rows[0])
    assert [line.split()[:3] for line in lines] == [["softmax", "10-20", "3"]]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--variants", "nystrom"], "cannot be causal"),
        (["--variants", "locl"], "local"),
        (["--layers", "20-40"], "from 0 to 29"),
        (["--model", "minilm", "--layers", "all"], "next token"),
        (["--text", " "], "empty"),
        (["--tokens", "0"], "too low"),
    ],
)
def test_an_invalid_swap_request_prints_an_error(capsys, arguments, word):
    assert main([*SWAP, *arguments]) == 2
    assert word in capsys.readouterr().err
