"""Tests of every claim: its sentences are filled, its rows can be drawn, and its numbers are finite."""

import math
import re
from collections import Counter
from dataclasses import astuple, is_dataclass
from itertools import cycle, groupby, islice
from operator import attrgetter
from string import Formatter

import pytest
import torch

import attention_core as ac
from attention_core import claims
from attention_core.claims import Verdict
from attention_core.claims.checks.delta import softmax_delta_rule
from attention_core.errors import InputError
from attention_core.inputs import ImageSource, SyntheticSpec, TextSource, UploadSource, from_synthetic, to_npz


def saved(**how):
    """Return a synthetic sequence as an uploaded file, because claims about trained models reject synthetic input."""
    return UploadSource.of("arrays.npz", to_npz(from_synthetic(SyntheticSpec(**how))))


LENGTH = 48
ENOUGH = 256
EVERY = [pytest.param(claim, id=claim.key) for claim in claims.all_claims()]
OF_TOKENS = [pytest.param(claim, id=claim.key) for claim in claims.all_claims() if not claim.uses_image]
UNTIMED = [pytest.param(claim, id=claim.key) for claim in claims.all_claims() if not claim.timed]


def words(n):
    """Return a text with n tokens of the language model, for claims about how the model reads it."""
    sentence = islice(cycle(["one", "cat", "sat", "by", "the", "old", "door", "and", "two", "dogs", "slept"]), n)
    return TextSource(" ".join(sentence), "smollm2")


def outcome_of(claim, **how):
    """Return the outcome of the claim on a short input, or on as many tokens as the claim needs."""
    n = max(LENGTH, claim.needs)
    if claim.uses_image:
        source = ImageSource(size=24)
    elif claim.uses_decoder:
        source = words(n)
    else:
        source = saved(kind="locally_correlated", n=n, d=16, heads=2, sharpness=2.0)
    [task] = claims.tasks(source, keys=[claim.key], longest=n, **how)
    [outcome] = claims.run(task)
    return outcome


def heads(outcome):
    """Return the heads that the outcome's rows name."""
    return {getattr(row, "head", None) for row in outcome.rows}


@pytest.fixture(scope="module")
def found():
    """Return a function that returns the outcome of a claim on one input and runs each claim once."""
    known = {}

    def get(claim):
        if claim.key not in known:
            known[claim.key] = outcome_of(claim)
        return known[claim.key]

    return get


def placeholders(text):
    """Return the placeholders of a text; they take finished strings, so format specifications are not allowed."""
    parts = [part for part in Formatter().parse(text) if part[1] is not None]
    assert not any(spec or conversion for _, _, spec, conversion in parts)
    return [name for _, name, _, _ in parts]


def test_claims_are_numbered_from_one_and_grouped_by_subject_and_source():
    assert [claim.number for claim in claims.all_claims()] == list(range(1, len(EVERY) + 1))
    subjects = [claim.subject for claim in claims.all_claims()]
    assert subjects == sorted(subjects, key=claims.SUBJECTS.index), "the claims about a subject follow each other"
    for subject in set(subjects):
        own = [claim.source for claim in claims.all_claims() if claim.subject == subject]
        groups = [(source, len(list(group))) for source, group in groupby(own)]
        assert dict(groups) == Counter(own), "within a subject, the claims of an article follow each other"
        assert [size for _, size in groups] == sorted(Counter(own).values(), reverse=True)
    with pytest.raises(InputError, match="memory_quadruples"):
        claims.claim("memory_quadruple")


@pytest.mark.parametrize("claim", EVERY)
def test_texts_are_complete_and_use_known_placeholders(claim):
    assert set(placeholders(claim.rule)) == set(claim.bounds)
    names = [each.name for each in claim.quantities]
    assert len(set(names)) == len(names)
    findings = (claim.finding, *filter(None, [claim.details]))
    for finding in findings:
        assert set(placeholders(finding)) <= set(names)
    assert placeholders(claim.finding)
    assert not placeholders(claim.statement + claim.experiment + claim.theorem)
    assert len(re.findall(r"[.;?](?= |$)", claim.statement)) <= 2
    for text in (claim.statement, claim.experiment, claim.rule, *findings, claim.theorem or "."):
        assert text.endswith((".", "?"))
        assert "  " not in text
    assert claim.source.url.startswith("https://")
    assert 2010 <= claim.source.year <= 2030
    assert claim.source.title


@pytest.mark.parametrize("claim", EVERY)
def test_a_claim_runs_and_is_judged(claim, found):
    outcome = found(claim)
    assert (outcome.key, outcome.claim, outcome.untestable_reason) == (claim.key, claim, None)
    [kind] = {type(row) for row in outcome.rows}
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    values = [value for row in outcome.rows for value in astuple(row)]
    assert all(isinstance(value, (str, int, float, bool, type(None))) for value in values)
    numbers, verdict = claim.judge(outcome.rows)
    assert (outcome.numbers, outcome.verdict) == (numbers, verdict)
    assert set(numbers) >= {each.name for each in claim.quantities}
    assert all(math.isfinite(value) for value in numbers.values())
    assert isinstance(verdict, Verdict)
    finding = claim.finding.format(**claim.formatted_numbers(numbers))
    assert "{" not in finding + claim.rule.format(**claim.thresholds())


@pytest.mark.parametrize("claim", EVERY)
def test_the_figure_of_a_claim_can_be_drawn(claim, found):
    figure = claim.figure
    rows = list(map(attrgetter(figure.x.attribute, figure.y.attribute, figure.by), found(claim).rows))
    heights = [y for _, y, _ in rows if y is not None]
    assert len(heights) > 1
    assert all(math.isfinite(height) for height in heights)
    if figure.y.log:
        assert sum(height > 0 for height in heights) > len(heights) / 2
    places = {x for x, _, _ in rows}
    # On a busy machine, a timed claim may have to skip lengths.
    assert len(places) > 1 or figure.kind == "bars" or claim.timed
    if figure.kind == "lines":
        assert all(isinstance(place, (int, float)) for place in places)
        assert not figure.x.log or min(places) > 0
    names = [by for _, _, by in rows]
    assert all(isinstance(name, str) for name in names)
    assert len(set(names)) <= 6


@pytest.mark.parametrize("claim", UNTIMED)
def test_the_outcome_depends_only_on_the_task(claim, found):
    state = torch.random.get_rng_state()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    assert outcome_of(claim) == found(claim)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.random.set_rng_state(state)


@pytest.mark.parametrize("claim", OF_TOKENS)
def test_only_the_requested_head_is_used(claim, found):
    outcome = outcome_of(claim, head=1)
    assert outcome.rows
    assert heads(outcome) <= {1, None}
    if 1 in heads(outcome):
        assert heads(found(claim)) >= {0, 1}
    numbers = outcome.numbers
    assert all(math.isfinite(value) for value in numbers.values())


@pytest.mark.parametrize("claim", OF_TOKENS)
def test_a_claim_needs_exactly_its_stated_number_of_tokens(claim):
    assert claim.needs <= claims.LONGEST

    def judged(n):
        [task] = claims.tasks(words(n) if claim.uses_decoder else saved(n=n, d=8, heads=1), keys=[claim.key], longest=n)
        [outcome] = claims.run(task)
        return outcome

    assert claim.lacks_tokens(claim.needs - 1, claim.needs - 1) == (not claim.uses_decoder)
    assert not claim.lacks_tokens(claim.needs, claim.needs)
    assert claim.lacks_tokens(claim.needs - 1, claims.LONGEST) == (
        not claim.uses_decoder and not claim.measures_lengths
    )
    short = judged(claim.needs - 1)
    assert (short.verdict, short.numbers, short.untestable_reason.needs) == (Verdict.UNTESTABLE, {}, claim.needs)
    sentence = " ".join(short.sentences).format(**short.formatted_numbers)
    assert sentence == f"At least {claim.needs} tokens are needed, but this input has {claim.needs - 1}."
    enough = judged(claim.needs)
    assert enough.untestable_reason is None
    assert enough.verdict is not Verdict.UNTESTABLE
    assert all(math.isfinite(value) for value in enough.numbers.values())


@pytest.mark.parametrize("claim", UNTIMED)
@pytest.mark.parametrize("sharpness", [0.0, 1000.0])
def test_extreme_inputs_are_judged_or_reported_as_untestable(claim, sharpness):
    source = saved(n=ENOUGH, d=8, heads=2, sharpness=sharpness)
    [task] = claims.tasks(source, keys=[claim.key])
    [outcome] = claims.run(task)
    assert bool(outcome.numbers) == (outcome.verdict is not Verdict.UNTESTABLE)
    assert " ".join(outcome.sentences).format(**outcome.formatted_numbers).endswith(".")
    assert all(math.isfinite(value) for value in outcome.numbers.values())


@pytest.mark.parametrize("claim", UNTIMED)
def test_a_short_text_in_minilm_is_untestable_only_for_claims_needing_more_tokens(claim):
    text = "The old bridge over the river was closed, so we walked along the bank to the ferry."
    [task] = claims.tasks(TextSource(text, "minilm", 1), head=2, keys=[claim.key])
    [outcome] = claims.run(task)
    assert (outcome.verdict is Verdict.UNTESTABLE) == (claim.needs > 20 or claim.uses_image)
    assert all(math.isfinite(value) for value in outcome.numbers.values())


@pytest.mark.parametrize("claim", UNTIMED)
def test_the_link_to_a_page_names_variants_and_settings(found, claim):
    for numbers in (found(claim).numbers, {}):
        place = claim.place.with_numbers(numbers)
        linked = [*place.variants, *(word for name, word in place.options.items() if name == "inside")]
        assert [ac.from_word(word).word for word in linked] == linked


@pytest.mark.parametrize(
    ("key", "word", "unmeasured"),
    [
        ("landmark_inverse", "nystrom~landmarks~12", "nystrom"),
        ("segment_means", "nystrom~landmarks~12~method~kmeans", "nystrom~method~kmeans"),
        ("near_diagonal", "local~window~3", "local"),
        ("linformer_rank", "linformer~rank~4", "linformer"),
        ("six_iterations", "nystrom~landmarks~64", "nystrom~landmarks~64"),
        ("nystrom_all_landmarks", "nystrom~inverse~exact", "nystrom~inverse~exact"),
        ("sparse_costs", "atrous~stride~4", "atrous~stride~4"),
    ],
)
def test_the_link_to_a_page_has_the_measured_setting(found, key, word, unmeasured):
    claim = claims.claim(key)
    for numbers, expected in ((found(claim).numbers, word), ({}, unmeasured)):
        place = claim.place.with_numbers(numbers)
        assert expected in (*place.variants, place.options.get("inside"))


@pytest.mark.parametrize(("sizes", "log"), [((1.0, 10.0), False), ((1.0, 10.1), True), ((0.0, 0.5), False)])
def test_bars_have_a_logarithmic_axis_only_if_their_sizes_differ_more_than_tenfold(sizes, log):
    rows = tuple(softmax_delta_rule.StepRow(form="a", head=0, error=size, unstable=0) for size in sizes)
    assert claims.Outcome(key="softmax_delta_rule", verdict=Verdict.HOLDS, rows=rows).has_log_values == log
    line = claims.Outcome(key="log_n_scale", verdict=Verdict.HOLDS)
    assert line.has_log_values == line.claim.figure.y.log
