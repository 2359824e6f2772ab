"""Tests of the survey of claims: its counts, its text, and the required contents of docs/claims.md."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from trial import trial, upload

from attention_core import claims
from attention_core.__main__ import main
from attention_core.claims import Verdict, survey
from attention_core.claims.survey import INPUTS, SurveyInput
from attention_core.errors import InputError
from attention_core.inputs import KINDS, SyntheticSource, SyntheticSpec, TextSource

HOLDS, FAILS = Verdict.HOLDS, Verdict.FAILS
WRITTEN = Path(__file__).parents[3] / "docs" / "claims.md"
TINY = (
    SurveyInput(name="tiny", source=SyntheticSource(SyntheticSpec(n=20, d=4, heads=1)), timed=True),
    SurveyInput(
        name="one head of two", source=SyntheticSource(SyntheticSpec(kind="needle", n=16, d=4, heads=2)), head=1
    ),
)
RECORD = f"docs/claims.md lists other claims than the app; run: {survey.COMMAND} --out docs/claims.md"
KEYS = ["memory_quadruples", "two_layers", "cosine_closest", "six_iterations", "sparse_time"]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def counts(written):
    """Return the counts of a survey's text, by the claim's key and the verdict."""
    keys = {survey._row(claim.statement): claim.key for claim in claims.all_claims()}
    header, _, *rows = [cells(line) for line in written.splitlines() if line.startswith("|")]
    assert header[2:-1] == [verdict.value for verdict in Verdict]
    return {
        keys[f"| {row[1]} |"]: Counter(dict(zip(Verdict, map(int, row[2:-1]), strict=True)))
        for row in rows
        if f"| {row[1]} |" in keys
    }


@pytest.fixture(scope="module")
def found():
    return survey.run(TINY, keys=KEYS)


def test_the_survey_has_the_verdict_of_each_claim_on_each_input(found):
    for key in set(KEYS) - {"sparse_time"}:
        expected = []
        for each in TINY:
            own = each.source.spec.n
            [task] = claims.tasks(each.source, head=each.head, keys=[key], longest=own)
            expected.append(claims.run(task)[0].verdict)
        assert found.verdicts[key] == tuple(expected)
    assert found.verdicts["six_iterations"] == (Verdict.UNTESTABLE,) * 2
    assert found.tokens == (20, 16)


def test_timed_claims_run_on_a_few_inputs_only(found):
    assert len(found.verdicts["sparse_time"]) == 1
    timed = sum(each.timed for each in INPUTS)
    assert 3 < timed < len(INPUTS) / 4


def test_single_verdict_returns_a_verdict_only_if_all_testable_inputs_agree():
    holds, fails, untestable = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE
    assert survey.single_verdict([holds, untestable, holds]) is holds
    assert survey.single_verdict([fails]) is fails
    assert survey.single_verdict([holds, fails]) is None
    assert survey.single_verdict([untestable]) is None
    assert survey.single_verdict([]) is None


def test_the_command_reports_progress_and_writes_counts_and_table(tmp_path, capsys, monkeypatch, found):
    monkeypatch.setattr(survey, "INPUTS", TINY)
    out, keys = tmp_path / "claims.md", [key for key in KEYS if key != "sparse_time"]
    assert main(["claims", "--survey", "--only", *keys, "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert output.err.splitlines() == ["1/2 tiny", "2/2 one head of two"]
    number = claims.claim("memory_quadruples").number
    assert f"{number}  holds: 2, holds partly: 0, does not hold here: 0, not testable on this input: 0" in output.out
    written = out.read_text("utf-8")
    chosen = claims.chosen(keys)
    assert counts(written) == {claim.key: Counter(found.verdicts[claim.key]) for claim in chosen}
    assert survey.COMMAND in written
    assert "| tiny | 20 | yes |" in written
    assert "| one head of two | 16 |  |" in written
    for claim in chosen:
        assert claim.statement in written
        assert f"{claim.number}. {claim.rule.format(**claim.thresholds())}" in written
    assert "A theorem: n tokens have n² query–key pairs" in written


def test_a_vertical_bar_in_a_table_cell_is_escaped():
    assert survey._row("a | b", 2) == r"| a \| b | 2 |"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--survey", "--layer", "2"], "--layer"),
        (["--survey", "--tokens", "20"], "--tokens"),
        (["--survey", "--out", "/nowhere/at/all.md"], "folder"),
        (["--survey", "--only", "nothing"], "nothing"),
        (["--out", "claims.md"], "--survey"),
    ],
)
def test_a_survey_command_with_bad_arguments_ends_with_an_error_message(capsys, monkeypatch, arguments, word):
    monkeypatch.setattr(survey, "INPUTS", TINY)
    assert main(["claims", *arguments]) == 2
    output = capsys.readouterr()
    assert word in output.err.splitlines()[-1]
    assert output.out == ""


def test_an_unknown_claim_raises_before_any_input_is_read():
    with pytest.raises(InputError, match="two_layers"):
        survey.run((), keys=["two_layer"])


def test_the_survey_inputs_cover_all_kinds_settings_models_and_many_layers():
    assert len(INPUTS) >= 60
    assert len({(each.source, each.head) for each in INPUTS}) == len({each.name for each in INPUTS}) == len(INPUTS)
    specs = [each.source.spec for each in INPUTS if isinstance(each.source, SyntheticSource)]
    assert {spec.kind for spec in specs} == {kind.key for kind in KINDS}
    for what in ("n", "d", "sharpness", "seed", "rope"):
        assert len({getattr(spec, what) for spec in specs}) > 1
    texts = [each.source for each in INPUTS if isinstance(each.source, TextSource)]
    for model in ("minilm", "smollm2"):
        assert len({text.layer for text in texts if text.model == model}) > 4


# Tests of docs/claims.md; the command in its first lines writes it again.


def test_docs_claims_lists_the_current_claims_rules_and_inputs():
    written = WRITTEN.read_text("utf-8")
    assert f"{survey.COMMAND} --out docs/claims.md" in written
    numbers = [int(row[0]) for row in map(cells, written.splitlines()) if row and row[0].isdecimal()]
    assert list(counts(written)) == [claim.key for claim in claims.all_claims()], RECORD
    assert numbers == [claim.number for claim in claims.all_claims()], RECORD
    for claim in claims.all_claims():
        assert claim.statement in written, claim.key
        assert f"\n{claim.number}. {claim.rule.format(**claim.thresholds())}\n" in written, claim.key
    named = [cells(line)[0] for line in written.partition("## Inputs")[2].splitlines() if line.startswith("|")]
    assert named[2:] == [each.name for each in INPUTS]


@pytest.mark.parametrize("claim", claims.all_claims(), ids=lambda claim: claim.key)
def test_a_theorem_has_one_verdict_in_the_survey(claim):
    count = counts(WRITTEN.read_text("utf-8")).get(claim.key)
    assert count is not None, f"the row of {claim.key} is missing; run: {survey.COMMAND} --out docs/claims.md"
    assert sum(count.values()) >= (1 if claim.timed else 60)
    if claim.theorem:
        assert survey.single_verdict(list(count.elements())) is not None
        assert not claim.counterexample


EXAMPLES = {"nystrom_deterministic": (upload(np.zeros((1, 80, 8), np.float32)), Verdict.HOLDS, Verdict.PARTLY)}
"""For each claim with a remark: the input of the remark, the verdict of the survey, and the verdict on that input."""


def test_every_claim_with_a_counterexample_has_a_tested_example():
    assert {claim.key for claim in claims.all_claims() if claim.counterexample} == set(EXAMPLES)


@pytest.mark.parametrize(("key", "example"), EXAMPLES.items())
def test_the_verdict_differs_on_the_counterexample(key, example):
    source, usual, there = example
    count = counts(WRITTEN.read_text("utf-8"))[key]
    assert survey.single_verdict(list(count.elements())) is usual
    assert trial(key, source).verdict is there


@pytest.mark.parametrize(
    ("verdicts", "remark"),
    [([HOLDS, HOLDS], "Not a theorem: no input of this survey gave another verdict."), ([HOLDS, FAILS], "")],
)
def test_the_remark_without_a_counterexample_depends_on_the_verdicts(verdicts, remark):
    claim = claims.claim("centred_keys")
    assert not claim.counterexample
    made = survey.Survey(inputs=TINY, tokens=(20, 16), verdicts={claim.key: tuple(verdicts)})
    assert survey._remark(made, claim) == remark
