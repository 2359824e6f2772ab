"""Tests of every sentence of the Claims page, on each side of each branch."""

import csv
import io
from dataclasses import fields, replace

import pytest

from app.ui.input_panel import ChosenInput
from attention_core import claims
from attention_core.claims import Outcome, UntestableError, Verdict
from attention_core.claims.checks.sparse import two_layers
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource
from attention_core.variant import Paper
from pages.claims import board, claim, longer_input, words

HOLDS, PARTLY, FAILS, UNTESTABLE = Verdict
EVERY = claims.all_claims()
ALL = len(EVERY)
NBSP = "\N{NO-BREAK SPACE}"
SYNTHETIC, TEXT, FILE = SyntheticSource(SyntheticSpec(n=40, d=4)), TextSource("a b"), UploadSource.of("a.npz", b"")
SHORT = UntestableError("Needs at least {needs} tokens; this input has {n}.", needs=16, n=3)
FOUND = Outcome(
    key="two_layers",
    verdict=HOLDS,
    numbers={"two": 100.0, "one": 12.34, "local": 40.0, "atrous": 50.0, "keys": 30.0},
    rows=(two_layers.ReachRow(stack="local twice", layers=1, head=0, share=12.5, keys=30.0),),
)
UNJUDGED = Outcome(key="two_layers", verdict=UNTESTABLE, untestable_reason=SHORT)


def outcomes(*verdicts):
    """Return outcomes with these verdicts for the first claims in order."""
    return [Outcome(key=each.key, verdict=verdict) for each, verdict in zip(EVERY, verdicts, strict=False)]


def chosen(n=40, heads=2, head=None):
    source = SyntheticSource(SyntheticSpec(n=n, d=2, heads=heads))
    return ChosenInput(source, source.load(), head)


def read(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (
            [HOLDS] * 3 + [PARTLY] * 2 + [FAILS] * (ALL - 5),
            f"**3 of {ALL}** claims hold, **2** partly and **{ALL - 5}** not.",
        ),
        (
            [HOLDS] * (ALL - 4) + [PARTLY] + [UNTESTABLE] * 3,
            f"**{ALL - 4} of {ALL}** claims hold, **1** partly and **0** not. Not testable on it: **3**.",
        ),
        ([FAILS] * 4, f"**0 of 4** claims hold, **0** partly and **4** not. Not checked: {ALL - 4}."),
        (
            [UNTESTABLE],
            f"**0 of 1** claims hold, **0** partly and **0** not. Not testable on it: **1**. Not checked: {ALL - 1}.",
        ),
    ],
)
def test_how_the_claims_came_out(verdicts, said):
    assert words.overall(outcomes(*verdicts)) == f"On this input {said}"


def test_each_verdict_has_its_icon_and_colour_in_the_strip():
    assert words.strip(outcomes(HOLDS, PARTLY, FAILS, UNTESTABLE)) == (
        ":green-badge[:material/check_circle: 1] :orange-badge[:material/contrast: 2] "
        ":gray-badge[:material/radio_button_unchecked: 3] :blue-badge[:material/help: 4]"
    )


def test_a_badge_tells_the_verdict():
    assert words.badge(FAILS) == ":gray-badge[:material/radio_button_unchecked: does not hold here]"


def test_a_card_tells_of_a_theorem_and_shows_what_can_be_drawn():
    card = board.card(FOUND)
    assert card.startswith('<img class="claim" alt="')
    assert card.endswith(f":green-badge[:material/check_circle: holds]\n\n{words.finding(FOUND)}")
    assert board.card(UNJUDGED) == f":blue-badge[:material/help: {UNTESTABLE.value}]\n\n{words.finding(UNJUDGED)}"
    nothing = replace(FOUND, rows=(replace(FOUND.rows[0], share=float("nan")),))
    assert "<img" not in board.card(nothing)
    rows = claims.claim("nystrom_all_landmarks")
    theorem = Outcome(key=rows.key, verdict=UNTESTABLE, untestable_reason=SHORT)
    assert board.card(theorem).startswith(
        ":blue-badge[:material/help: not testable on this input] :gray-badge[a theorem]"
    )


def test_a_claim_of_time_says_why_it_waits():
    assert words.on_time().startswith("It measures time, for which it has the machine to itself")
    assert words.on_reading().startswith("SmolLM2 reads the text a dozen times for these claims")


def test_what_was_found_is_told_with_its_numbers_or_why_nothing_was():
    assert words.told(FOUND).startswith("One layer connects 12.3% of all pairs, two connect 100% (two local ones 40%")
    assert "12.3%" in words.finding(FOUND)
    assert words.told(UNJUDGED) == "Needs at least 16 tokens; this input has 3."


def test_what_is_noted_follows_the_finding():
    def said(causal):
        numbers = {"performer": 30.0, "nystrom": 0.0, "runs": 5, "causal": causal}
        return words.told(Outcome(key="nystrom_deterministic", verdict=HOLDS, numbers=numbers))

    assert said(causal=1) == f"{said(causal=0)} {claims.claim('nystrom_deterministic').notes[0].finding}"


def test_words_of_claims_are_no_markup():
    odd = replace(EVERY[0], rule="a*b_c [x](y) 4% ± {holds}", theorem="x_y")
    assert words.rule(odd) == rf"a\*b\_c \[x\](y) 4% ± {odd.thresholds()['holds']}"
    assert words.theorem(odd) == r"**A theorem.** x\_y"
    assert words.theorem(replace(odd, theorem="")) == ""
    why = UntestableError("{x} is none", x="[a](b)")
    assert words.finding(Outcome(key="drowning", verdict=UNTESTABLE, untestable_reason=why)) == r"\[a\](b) is none"


def test_the_table_tells_numbers_with_their_units():
    lines = words.numbers(FOUND).split("\n")
    assert lines[:3] == ["| Measured | Value |", "| :-- | --: |", "| pairs connected after two layers | **100**% |"]
    assert len(lines) == 2 + len(FOUND.claim.quantities)
    numbers = {each.name: 1.0 for each in claims.claim("linear_cost").quantities}
    last = words.numbers(Outcome(key="linear_cost", verdict=HOLDS, numbers=numbers)).split("\n")[-2:]
    assert last == ["| full work over linear work | **1** |", f"| longest input | **1**{NBSP}tokens |"]


@pytest.mark.parametrize(
    ("given", "longest", "key", "said"),
    [
        ({}, 40, "two_layers", "Checked on 40 tokens, all 2 heads."),
        ({"head": 1}, 40, "two_layers", "Checked on 40 tokens, head 1 of 2."),
        ({"head": 0}, 40, "two_layers", "Checked on 40 tokens, head 0 of 2."),
        ({"heads": 1, "head": 0}, 40, "two_layers", "Checked on 40 tokens, one head."),
        ({"n": 1}, 1, "two_layers", "Checked on 1 token, all 2 heads."),
        ({}, 41, "memory_quadruples", "Checked at lengths up to 41 tokens, all 2 heads."),
        ({}, 40, "memory_quadruples", "Checked on 40 tokens, all 2 heads."),
        ({}, 41, "two_layers", "Checked on 40 tokens, all 2 heads."),
        ({}, 41, "", "Checked on 40 tokens, all 2 heads. Growth is followed up to 41."),
        ({}, 40, "", "Checked on 40 tokens, all 2 heads."),
        ({"n": 512}, 512, "", "Checked on 512 tokens, all 2 heads."),
        ({"n": 513}, 512, "", "Checked on the first 512 of 513 tokens, all 2 heads."),
        ({"n": 513, "head": 1}, 512, "memory_quadruples", "Checked on the first 512 of 513 tokens, head 1 of 2."),
    ],
)
def test_what_was_looked_at(given, longest, key, said):
    assert words.looked_at(chosen(**given), longest, claims.claim(key) if key else None) == said


def test_what_smollm2_made_of_a_text_was_looked_at():
    said = words.looked_at(chosen(), 40, claims.claim("four_sinks"))
    assert said == "Checked on what SmolLM2 makes of the text, whatever model, layer and heads are chosen."


def test_a_claim_that_does_not_hold_is_no_alarm():
    assert words.no_alarm(outcomes(HOLDS, FAILS)).startswith("“Does not hold here” is a finding, not an error")
    assert words.no_alarm(outcomes(HOLDS, PARTLY, UNTESTABLE)) == words.no_alarm([]) == ""


def test_what_is_claimed_and_where():
    odd = replace(EVERY[1], statement="a_b", source=Paper("On [x]", 2020, "https://example.org/a_b"))
    assert words.headline(odd) == r"## 2. a\_b"
    assert words.article(odd.source) == r"[On \[x\]](https://example.org/a_b), 2020"
    assert words.drawn(odd) == f"{odd.figure.y_title} against {odd.figure.x_title}"
    assert words.claimed_in(odd.source) == r"Claimed in [On \[x\]](https://example.org/a_b), 2020"


def test_what_is_offered_for_a_longer_input_depends_on_where_it_comes_from():
    assert longer_input.offer(SYNTHETIC, 128) == "Check it with n = 128"
    assert longer_input.offer(TEXT, 150) == "Check it on the long preset, 150 tokens"
    assert longer_input.missing(TEXT, 400) == "Write or paste a text of 400 tokens or more to check it."
    assert longer_input.missing(FILE, 16) == "Upload a sequence of 16 tokens or more to check it."


def test_the_table_of_all_claims_holds_numbers_with_their_units():
    [header, found, unjudged] = read(board.table([FOUND, UNJUDGED]))
    assert header == ["number", "claim", "verdict", "finding", "numbers", "rule", "source"]
    known = claims.claim("two_layers")
    assert found[:3] == ["15", known.statement, "holds"]
    assert found[3] == words.told(FOUND)
    assert found[4].startswith("pairs connected after two layers: 100%; after the local layer alone: 12.3%; ")
    assert found[5:] == [
        "Holds where two layers connect 100% of all pairs, partly where they connect 90%.",
        f"{known.source.heading}, 2019, {known.source.url}",
    ]
    assert unjudged[2:5] == ["not testable on this input", "Needs at least 16 tokens; this input has 3.", ""]
    linear = {each.name: 2.0 for each in claims.claim("linear_cost").quantities}
    [_, row] = read(board.table([Outcome(key="linear_cost", verdict=HOLDS, numbers=linear)]))
    assert row[4].endswith(f"full work over linear work: 2; longest input: 2{NBSP}tokens")


def test_the_rows_of_a_claim_are_a_table_that_names_it():
    names = [field.name for field in fields(FOUND.rows[0])]
    assert read(claim.table(FOUND)) == [["claim", *names], ["two_layers", "local twice", "1", "0", "12.5", "30.0"]]
    missing = replace(FOUND, rows=(replace(FOUND.rows[0], keys=None),))
    assert read(claim.table(missing))[1][-1] == ""
