"""Tests of the sentences of the Learn page, on each side of each branch."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch.nn.functional as F

import attention_core as ac
from app.figures.theme import COLOURS
from app.words.finding import Finding
from attention_core.experiments import learning
from attention_core.experiments.learning import LearnRow
from attention_core.formatting import percent
from attention_core.learning import recorded_runs
from attention_core.learning.defaults import SEEDS, VARIANTS
from attention_core.learning.hidden_answers import accuracy_with_guesses, answer_share, hidden_share
from attention_core.learning.model import Layer
from attention_core.learning.tasks import TASKS
from attention_core.learning.train import Row, evaluate, evaluation_batch, train_until
from attention_core.limits import HOSTED
from pages.learn import (
    attention_words,
    failure_words,
    gaps,
    generalisation_words,
    missing,
    part_words,
    training_words,
    words,
)
from pages.learn.options import max_variants
from pages.learn.outcomes import THRESHOLD, PartOutcome, numbers_stored, outcomes, steepest_rise


def rows_of(word, accuracies, *, seed=0, every=10, loss=1.0):
    """Return the measurements of a variant at steps 0, 10, 20, ... with these accuracies."""
    [spec] = learning.plan([word], seeds=[seed]).specs
    return [
        LearnRow(
            spec=spec,
            row=Row(
                variant=word,
                task="recall",
                seed=seed,
                step=i * every,
                length=32,
                items=4,
                loss=loss,
                accuracy=accuracy,
                seconds=0.5 * i,
                tokens=100 * i,
            ),
        )
        for i, accuracy in enumerate(accuracies)
    ]


def row_of_test(rows, **changes):
    last = rows[-1]
    return LearnRow(spec=last.spec, row=replace(last.row, **changes), is_test=True)


def lines(finding):
    """Return the finding and, on a second line, its explanation, after a check that the finding is bold."""
    assert not finding.text or (finding.text.startswith("**") and finding.text.endswith("**"))
    return "  \n".join(filter(None, (finding.text, finding.explanation)))


def race_text(*args):
    """Return the text of the finding about training, with its explanation on a second line."""
    return lines(words.headline(*args))


def text_of_tests(*args, **options):
    """Return the text of the finding about tests of trained models, with its explanation on a second line."""
    return lines(generalisation_words.headline(*args, **options))


def attention_text(*args):
    """Return the text of the finding about attention matrices, with its explanation on a second line."""
    return lines(attention_words.attention_headline(*args))


def test_a_variant_has_learned_at_the_threshold():
    [outcome] = outcomes(rows_of("softmax", [0.1, THRESHOLD - 1e-9, THRESHOLD, 1.0]))
    assert outcome.learned_at == (20, 1.0)
    assert outcome.accuracy == 1.0
    [outcome] = outcomes(rows_of("softmax", [0.1, THRESHOLD - 1e-9]))
    assert outcome.learned_at is None


def test_a_variant_that_forgets_the_task_has_not_learned_it():
    [outcome] = outcomes(rows_of("softmax", [0.1, 1.0, 0.4]))
    assert outcome.learned_at is None
    assert race_text([outcome]) == "**Softmax has not learned the task so far: 40% of its answers are correct.**"


def test_more_than_half_of_the_seeds_must_have_learned():
    quick, slow, never = [0.1, 1.0, 1.0], [0.1, 0.2, 1.0], [0.1, 0.2, 0.3]
    of = lambda *curves: outcomes([r for s, curve in enumerate(curves) for r in rows_of("softmax", curve, seed=s)])[0]  # noqa: E731
    assert of(quick, slow, never).learned_at == (20, 1.0)
    assert of(quick, never, never).learned_at is None
    assert of(quick, slow).learned_at == (20, 1.0)
    assert of(quick, never).learned_at is None
    assert of(quick, quick, slow, never).learned_at == (20, 1.0)
    assert of(quick, quick, never, never).learned_at is None
    assert race_text([of(quick, never)]) == (
        "**Softmax has not learned the task so far: 65% of its answers are correct.**"
    )
    assert of(quick, quick, slow).learned_at == (10, 0.5)
    assert of(quick, slow, never).accuracy == 1.0
    assert of(quick, slow[:2], never).step == 10


def test_the_headline_orders_those_that_learned_by_steps_and_the_others_by_accuracy():
    rows = [
        *rows_of("softmax", [0.1, 0.2, 1.0]),
        *rows_of("deltanet", [0.1, 0.96, 1.0]),
        *rows_of("linear", [0.1, 0.2, 0.3]),
        *rows_of("gla", [0.1, 0.2, 0.72]),
        *rows_of("local", [0.02]),
    ]
    found = outcomes(rows)
    assert race_text(found) == (
        "**2 of 5 variants shown have learned the task so far: DeltaNet (step 10) and softmax (step 20).**  "
        "\n- Correct answers of the other variants: **Gated linear** (72%) and **Linear** (30%).\n- Not trained yet: "
        "**Local with window 16**."
    )


def test_the_threshold_is_explained():
    text = "A variant has learned the task if at least 95% of its answers are correct."
    assert words.threshold_note(from_sequence=False) == text
    assert words.threshold_note(from_sequence=True) == (
        f"{text} Before training, a model also predicts answers that the sequence does not contain. Its accuracy "
        "therefore starts below the accuracy of guessing an answer from the sequence."
    )


def test_the_label_of_guessing_names_the_choices():
    assert words.guess_label(0.25, from_sequence=True) == "guessing an answer<br>from the sequence = 25%"
    assert words.guess_label(0.5, from_sequence=False) == "guessing = 50%"


def trained(*curves, steps=20):
    """Return the outcomes of variants with these accuracies at steps 0, 10, 20, ... of a training of 20 steps."""
    words_of_all = ("softmax", "linear", "deltanet")
    rows = [row for word, curve in zip(words_of_all, curves, strict=False) for row in rows_of(word, curve)]
    return outcomes([replace(row, spec=replace(row.spec, steps=steps)) for row in rows])


@pytest.mark.parametrize(
    ("curve", "text"),
    [
        ([0.1, 1.0], "**Softmax learns the task after 10 of 20 steps.**"),
        ([0.1, 0.5], "**Softmax has not learned the task so far: 50% of its answers are correct.**"),
        ([0.1], "**Not trained yet: Softmax.**"),
        ([0.1, 1.0, 1.0], "**Softmax learns the task after 10 of 20 steps.**"),
        ([0.1, 0.5, 0.6], "**Softmax does not learn the task within 20 steps: 60% of its answers are correct.**"),
    ],
)
def test_the_headline_of_one_variant(curve, text):
    assert race_text(trained(curve)) == text


GOOD, BAD = [0.1, 1.0, 1.0], [0.1, 0.5, 0.6]
DELTANET_LEARNED = "DeltaNet (step 10)"
BOTH_LEARNED = "Linear (step 10) and softmax (step 10)"


@pytest.mark.parametrize(
    ("curves", "text"),
    [
        (
            [GOOD, GOOD, GOOD],
            f"**Every variant shown learns the task within 20 steps: {DELTANET_LEARNED}, {BOTH_LEARNED}.**",
        ),
        ([GOOD, GOOD], f"**Every variant shown learns the task within 20 steps: {BOTH_LEARNED}.**"),
        (
            [GOOD, GOOD, BAD],
            f"**2 of 3 variants shown learn the task within 20 steps: {BOTH_LEARNED}.**  \n"
            "**DeltaNet** gets 60% right.",
        ),
        (
            [BAD, BAD, GOOD],
            f"**1 of 3 variants shown learns the task within 20 steps: {DELTANET_LEARNED}.**  \n"
            "Correct answers of the other variants: **Linear** (60%) and **softmax** (60%).",
        ),
        (
            [BAD, BAD],
            "**No variant shown learns the task within 20 steps: the highest accuracy is 60%.**  \nCorrect answers: "
            "**Linear** (60%) and **softmax** (60%).",
        ),
        (
            [BAD, BAD, BAD],
            "**No variant shown learns the task within 20 steps: the highest accuracy is 60%.**  \nCorrect answers: "
            "**DeltaNet** (60%), **Linear** (60%) and **softmax** (60%).",
        ),
        (
            [GOOD[:2], BAD],
            "**1 of 2 variants shown has learned the task so far: softmax (step 10).**  \n**Linear** gets 60% right.",
        ),
        ([GOOD[:2], GOOD], f"**Every variant shown has already learned the task: {BOTH_LEARNED}.**"),
        (
            [BAD[:2], BAD],
            "**No variant shown has learned the task so far.**  \n"
            "Correct answers: **Linear** (60%) and **softmax** (50%).",
        ),
        (
            [BAD[:1], BAD[:1], BAD[:1]],
            "**No variant shown has learned the task so far.**  \n"
            "Not trained yet: **softmax**, **Linear** and **DeltaNet**.",
        ),
    ],
)
def test_the_headline_counts_the_variants_that_learned(curves, text):
    assert race_text(trained(*curves)) == text


@pytest.mark.parametrize(
    ("curves", "text"),
    [
        ([[0.1, 1.0]], "**Softmax gets 100% of the answers right.**"),
        ([[0.1]], "**Not trained yet: softmax.**"),
        ([[0.1], [0.1]], "**Not trained yet: softmax and Linear.**"),
        ([[0.1, 0.5], [0.1, 0.6]], "**Linear gets the most answers right (60%), and softmax the fewest (50%).**"),
        (
            [[0.1, 0.5], [0.1, 0.4], [0.1, 0.3]],
            "**Softmax gets the most answers right (50%), and DeltaNet the fewest (30%).**  \n"
            "**Linear** gets 40% right.",
        ),
        (
            [[0.1, 0.5], [0.1], [0.1, 0.3]],
            "**Softmax gets the most answers right (50%), and DeltaNet the fewest (30%).**  \nNot trained yet: Linear.",
        ),
        ([[0.1, 0.5], [0.1, 0.5]], "**Softmax and Linear get 50% of the answers right.**"),
        (
            [[0.1, 0.501], [0.1, 0.499], [0.1, 0.3]],
            "**Softmax and Linear get the most answers right (50%), and DeltaNet the fewest (30%).**",
        ),
        (
            [[0.1, 0.501], [0.1, 0.301], [0.1, 0.299]],
            "**Softmax gets the most answers right (50%), and Linear and DeltaNet the fewest (30%).**",
        ),
    ],
)
def test_no_accuracy_counts_as_learned_on_held_out_examples(curves, text):
    rows = [row for outcome in trained(*curves) for row in outcome.rows]
    held_out = [
        replace(row, spec=replace(row.spec, model=replace(row.spec.model, task="characters", positions="none")))
        for row in rows
    ]
    assert not any(outcome.learned_at for outcome in outcomes(held_out))
    assert race_text(outcomes(held_out)) == text


FIRST, SECOND, NEVER = [0.1, 1.0, 1.0], [0.1, 0.2, 1.0], [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("softmax", "linear", "text"),
    [
        ([FIRST, FIRST], [SECOND, SECOND], ""),
        ([FIRST, FIRST], [FIRST, FIRST], ""),
        ([FIRST, SECOND, FIRST], [SECOND, FIRST, SECOND], "**softmax** (2 of 3 seeds) and **Linear** (1 of 3 seeds)"),
        ([FIRST, SECOND], [FIRST, FIRST], "**Linear** (2 of 2 seeds) and **softmax** (1 of 2 seeds)"),
        ([FIRST, SECOND, NEVER], [SECOND, FIRST, NEVER], "**softmax** (1 of 3 seeds) and **Linear** (1 of 3 seeds)"),
        ([FIRST, NEVER, FIRST], [NEVER, FIRST, NEVER], ""),
        ([FIRST, SECOND], [SECOND, FIRST[:2]], ""),
    ],
)
def test_the_fastest_variant_is_reported_if_seeds_disagree(softmax, linear, text):
    """Check seeds that agree, ties, a seed without success, a single variant that learns, and incomplete training."""
    runs = [
        row
        for word, own in (("softmax", softmax), ("linear", linear))
        for seed, curve in enumerate(own)
        for row in rows_of(word, curve, seed=seed)
    ]
    found = outcomes([replace(row, spec=replace(row.spec, steps=20)) for row in runs])
    expected = (
        "The seed sets the initial weights and the data. The variant that learns the task in the fewest steps differs "
        f"between seeds: {text}."
    )
    assert words.fastest_by_seed(found) == (expected if text else "")


@pytest.mark.parametrize(
    ("softmax", "deltanet", "text"),
    [
        (
            0.95,
            0.9,
            "**Linear learns to recall 4 pairs sooner than softmax. With 16 pairs, only softmax (95%) still gets at "
            "least 95% right; Linear gets 50%.**",
        ),
        (
            0.95,
            0.95,
            "**Linear learns to recall 4 pairs sooner than softmax and DeltaNet. With 16 pairs, only softmax (95%) and "
            "DeltaNet (95%) still get at least 95% right; Linear gets 50%.**",
        ),
    ],
)
def test_a_variant_that_learns_first_and_fails_with_more_pairs_is_the_finding(softmax, deltanet, text):
    curves = {"softmax": SECOND, "linear": FIRST, "deltanet": SECOND, "alibi": SECOND}
    own = {word: rows_of(word, curve) for word, curve in curves.items()}
    shares = {"softmax": softmax, "linear": 0.5, "deltanet": deltanet}

    def headline(*words_of_all, **changes):
        rows = [row for word in words_of_all for row in own[word]]
        tests = [row_of_test(own[each], items=16, accuracy=(shares | changes)[each]) for each in words_of_all]
        return race_text(outcomes([*rows, *tests]))

    assert headline("softmax", "linear", "deltanet") == text
    results = outcomes([*own["softmax"], *own["linear"]])
    assert words.learned_steps(results) == ["Linear (step 10)", "softmax (step 20)"]
    for changes in ({"linear": 0.95}, {"softmax": 0.5, "deltanet": 0.5}):
        found = headline("softmax", "linear", "deltanet", **changes)
        assert found.startswith("**Every variant shown has already learned the task")
        assert "pairs" not in found
    rows = [row for word in ("softmax", "linear") for row in own[word]]
    other = [row_of_test(own["softmax"], items=16, accuracy=1.0), row_of_test(own["linear"], items=8, accuracy=0.5)]
    assert "pairs" not in race_text(outcomes([*rows, *other])), "not tested with the same numbers of pairs"
    same = [row_of_test(own[word], accuracy=share) for word, share in (("softmax", 1.0), ("linear", 0.5))]
    assert "pairs" not in race_text(outcomes([*rows, *same])), "not tested with more pairs"


def gated_linear(curve, steps, **model):
    [spec] = learning.plan(["gla"], **model).specs
    rows = rows_of("gla", curve)
    return outcomes([replace(row, spec=replace(spec, steps=steps)) for row in rows])[0]


def test_the_slow_learning_of_gated_linear_attention_is_explained():
    slow = gated_linear(BAD, 20)
    assert failure_words.cause(slow) == (
        "**Gated linear** gets 60% right. By default, its queries and keys can be negative and are not scaled. With "
        "positive queries and keys, or with both scaled to length 1, it reached 95% within 250 steps in other runs."
    )
    assert race_text([slow]).endswith(f"\n{failure_words.cause(slow)}")
    others = [gated_linear(GOOD, 20), gated_linear(BAD, 30), gated_linear(BAD, 20, layers=1), *trained(BAD)]
    assert not any(map(failure_words.cause, others))


def positive(x):
    return F.elu(x) + 1


def of_length_1(x):
    return F.normalize(x, dim=-1)


@pytest.mark.parametrize(("features", "steps", "seed"), [(positive, 150, SEEDS[0]), (of_length_1, 250, SEEDS[1])])
def test_gated_linear_attention_with_positive_or_unit_queries_and_keys_learns_recall(
    features, steps, seed, monkeypatch
):
    rows = recorded_runs.recorded_rows(learning.plan(["gla"], seeds=[seed]))
    assert max(row.row.accuracy for row in rows if not row.is_test) < 0.5
    qkv = Layer.qkv

    def with_features(layer, x):
        q, k, v = qkv(layer, x)
        return features(q), features(k), v

    monkeypatch.setattr(Layer, "qkv", with_features)
    [spec] = learning.plan(["gla"], seeds=[seed]).specs
    model, _checkpoint = train_until(spec, steps)
    _loss, accuracy = evaluate(model, evaluation_batch(spec, spec.length, spec.items))
    assert accuracy >= THRESHOLD
    [matrix] = model.matrices(evaluation_batch(spec, spec.length, spec.items, sequences=1).inputs)[0]
    assert (matrix[0] >= 0).all() == (features is positive)


def test_the_reasons_come_with_the_results_of_the_variants_that_fail():
    [local] = outcomes(rows_of("local", BAD))
    share = percent(hidden_share(local.rows[0].spec))
    assert failure_words.cause(local) == (
        f"**Local with window 16** gets 60% right. Its mask hides {share} of the answers."
    )
    found = outcomes([*rows_of("local", BAD), *rows_of("linear", BAD), *rows_of("softmax", GOOD)])
    assert race_text(found).endswith(f"\n- {failure_words.cause(local)}\n- **Linear** gets 60% right.")
    assert not failure_words.cause(outcomes(rows_of("local", GOOD))[0])
    assert not failure_words.cause(outcomes(rows_of("local", [0.1]))[0])


@pytest.mark.parametrize(("away", "is_close"), [(-0.06, False), (-0.04, True), (0.04, True), (0.06, False)])
def test_the_accuracy_of_a_window_is_compared_with_guesses_of_the_hidden_answers(away, is_close):
    """Compute the expected accuracy from the number of values that the window hides; one of these is guessed."""
    spec = rows_of("local", [0.1])[0].spec
    rights, guesses = [], []
    for place, answer in queried(spec, spec.length):
        hidden = [value for value in range(1, 2 * spec.items, 2) if place - value > 16]
        rights.append(1 / len(hidden) if answer in hidden else 1.0)
        if answer in hidden:
            guesses.append(rights[-1])
    expected = accuracy_with_guesses(spec)
    assert expected == pytest.approx(np.mean(rights))
    [local] = outcomes(rows_of("local", [0.1, expected + away]))
    hidden = hidden_share(spec)
    for layers in (1, 2):
        model = replace(spec.model, layers=layers)
        found = replace(local, rows=tuple(replace(row, spec=replace(spec, model=model)) for row in local.rows))
        assert expected == pytest.approx(1 - hidden + hidden * np.mean(guesses))
        close = f" A model that guesses these and knows all others would get about as many right ({percent(expected)})."
        passed_on = " Its 2 layers can pass hidden answers on through the tokens in between."
        not_close = passed_on if layers == 2 and away > 0 else ""
        mask = f"right. Its mask hides {percent(hidden)} of the answers."
        assert failure_words.cause(found).endswith(mask + (close if is_close else not_close))
    assert failure_words.guess_accuracy(local) == (expected if is_close else None)
    assert failure_words.guess_accuracy(outcomes(rows_of("local", [expected]))[0]) is None, "not trained"
    assert failure_words.guess_accuracy(outcomes(rows_of("linear", [0.1, expected]))[0]) is None, "no mask"


def test_tokens_in_between_can_show_what_one_layer_hides():
    spec = learning.plan(["local~window~8"]).specs[0]
    shares = [hidden_share(spec, layers=layers) for layers in (1, 2, 3, 4)]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0] > shares[1] > shares[2], shares[3]) == (True, 0)


def test_hidden_answers_are_guessed_among_the_different_answers_of_the_sequence():
    of = lambda word, task: accuracy_with_guesses(learning.plan([word], task=task).specs[0])  # noqa: E731
    # The sequence is 16 symbols, twice. The answer, 15 tokens back, is the only one that a window of 14 hides. A window
    # of 13 hides the next answer too, except for the last query, so 14 of 15 queries choose between two.
    assert of("local~window~14", "induction") == 1.0
    assert of("local~window~13", "induction") == pytest.approx((14 / 2 + 1) / 15)


@pytest.mark.parametrize(
    ("seeds", "text"),
    [(1, "Each line is 1 training run."), (2, "Each line is the median of 2 training runs with different seeds.")],
)
def test_the_note_on_medians_depends_on_the_number_of_seeds(seeds, text):
    assert words.medians_note(seeds) == text


def test_the_note_on_a_band_says_what_it_shows():
    band = "Point at a line or tap it to see the range of its runs."
    assert [words.reading_note(seeds) for seeds in (1, 2, 3)] == ["", band, band]
    assert words.reading_note(4) == "Point at a line or tap it to see the middle half of its runs."


def test_a_mask_that_hides_answers_is_reported_with_their_share():
    local, softmax = outcomes(rows_of("local", [0.1, 0.5]) + rows_of("softmax", [0.1, 0.5]))
    hidden = partial(generalisation_words.hidden_answers, items=4, by="length")
    assert hidden([softmax], 32) == ""
    own, longer = hidden([softmax, local], 32), hidden([local], 256)
    shares = [
        float(np.mean([step - place > 16 for step, place in queried(local.rows[0].spec, length)]))
        for length in (32, 256)
    ]
    text = "At {}, the mask of Local with window 16 hides {} of the answers from the tokens that must predict them."
    assert own == text.format("32 tokens", percent(shares[0]))
    assert longer == text.format("256 tokens", percent(shares[1]))
    guessing = "A guess is one of the answers in the sequence, so a model that cannot see them can do worse"
    for share, is_worse in ((0.24, True), (0.26, False)):
        assert (guessing in hidden([of_a_test("local", share)], 256)) == is_worse
    twice = outcomes(rows_of("local", [0.1]) + rows_of("local~window~8", [0.1]))
    assert hidden(twice, 32).count("At 32 tokens") == 1
    assert "Local with window 8" in hidden(twice, 32)
    assert shares[0] < 0.5 < shares[1]
    [wide] = outcomes(rows_of("local~window~31", [0.1]))
    assert hidden([wide], 32) == ""
    assert hidden([wide], 64) != ""


def queried(spec, length):
    """Yield the position of each query of associative recall, and the position of its answer."""
    batch = evaluation_batch(spec, length, spec.items)
    for inputs in batch.inputs.tolist():
        pairs = dict(zip(inputs[: 2 * spec.items : 2], range(1, 2 * spec.items, 2), strict=True))
        yield from ((i, pairs[key]) for i, key in enumerate(inputs) if i >= 2 * spec.items and key in pairs)


@pytest.mark.parametrize("task", ["parity", "maximum", "digits", "characters"])
def test_a_task_whose_answers_are_not_in_the_sequence_has_no_hidden_answers(task):
    [spec] = learning.plan(["local~window~2"], task=task).specs
    assert hidden_share(spec) == 0.0


def test_a_window_hides_earlier_repetitions():
    share = lambda window: hidden_share(learning.plan([f"local~window~{window}"], task="induction").specs[0])  # noqa: E731
    assert (share(14), share(15)) == (1.0, 0.0)  # The next symbol is 15 tokens back in a sequence of two halves of 16.


@pytest.mark.parametrize(("loss", "fails"), [(math.nan, True), (math.inf, True), (1e30, False)])
def test_a_loss_that_is_not_finite_is_reported(loss, fails):
    text = words.diverged_note(outcomes(rows_of("softmax", [0.1, 0.0], loss=loss)))
    assert text == ("The loss of softmax is no longer finite, so training has failed." if fails else "")


def test_the_largest_rise_is_between_two_measured_steps():
    rows = rows_of("softmax", [0.1, 0.3, 0.9, 1.0]) + rows_of("linear", [0.1, 0.1, 0.05])
    assert list(map(attention_words.rise_text, outcomes(rows))) == ["largest rise: from step 10 to 20", ""]
    assert not attention_words.rise_text(*outcomes(rows_of("linear", [0.1])))


def test_the_headline_reports_tests_at_the_largest_length_or_number_of_items():
    own, other = rows_of("softmax", [0.1, 1.0]), rows_of("linear", [0.1, 0.95])
    rows = [*own, *other]
    rows += [row_of_test(own, length=64, accuracy=0.9), row_of_test(own, length=256, accuracy=0.7)]
    rows += [row_of_test(other, length=64, accuracy=0.8), row_of_test(other, length=256, accuracy=0.2)]
    rows += [row_of_test(own, items=8, accuracy=0.99), row_of_test(own, length=64, items=16, accuracy=0.95)]
    found = outcomes(rows)
    assert text_of_tests(found, by="length", trained_at=32) == (
        "**At 256 tokens, no variant reaches an accuracy of 95%. Accuracy by variant: softmax (70%) and Linear (20%).**"
    )
    able = "**After training with 4 pairs, at least 95% of the answers with 16 pairs are correct with softmax."
    assert text_of_tests(found, by="items", trained_at=4) == f"{able}**"
    rows += [row_of_test(other, length=64, items=16, accuracy=0.91)]
    both = "**2 variants learn 4 pairs, but only softmax still gets at least 95% right with 16 pairs."
    assert text_of_tests(outcomes(rows), by="items", trained_at=4) == (f"{both}**  \n**Linear** gets 91% right."), (
        "it has not lost more than 5 percentage points"
    )
    rows[-1] = row_of_test(other, length=64, items=16, accuracy=0.84)
    assert text_of_tests(outcomes(rows), by="items", trained_at=4) == f"{both} Accuracy falls to 84% for Linear.**"
    rows[-2] = row_of_test(own, length=64, items=16, accuracy=0.94)
    assert text_of_tests(outcomes(rows), by="items", trained_at=4) == (
        "**With 16 pairs, no variant reaches an accuracy of 95%. Accuracy by variant: softmax (94%) and Linear (84%).**"
    )
    rows += [row_of_test(own, length=512, accuracy=0.999)]
    assert text_of_tests(outcomes(rows), by="length", trained_at=32) == (
        "**After training on 32 tokens, at least 99% of the answers on 512 tokens are correct with softmax.**"
    )
    rows[-1] = row_of_test(own, length=512, accuracy=1.0)
    assert text_of_tests(outcomes(rows), by="length", trained_at=32) == (
        "**After training on 32 tokens, all answers on 512 tokens are correct with softmax.**"
    )
    assert found[0].test_points("length") == [(64, 0.9), (256, 0.7)]
    assert found[0].test_points("items") == [(8, 0.99), (16, 0.95)]
    assert not text_of_tests(outcomes(own), by="length", trained_at=32)


def with_tests(shares):
    """Return the outcomes of variants that learned the task, with these accuracies in a test with 24 pairs."""
    results = []
    for word, share in shares.items():
        rows = rows_of(word, [0.1, 1.0])
        results += outcomes([*rows, row_of_test(rows, length=128, items=24, accuracy=share)])
    return results


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        (
            [0.987, 0.994, 0.856],
            "at least 98% of the answers on 256 tokens are correct with softmax (median of 3 runs)",
        ),
        ([0.987, 0.994, 0.981], "at least 98% of the answers on 256 tokens are correct with softmax"),
        ([1.0, 1.0, 0.99], "all answers on 256 tokens are correct with softmax (median of 3 runs)"),
        ([1.0, 1.0, 1.0], "all answers on 256 tokens are correct with softmax"),
        ([0.9, 1.0], "at least 95% of the answers on 256 tokens are correct with softmax (median of 2 runs)"),
        ([0.86, 1.0], ""),
    ],
)
def test_the_headline_of_tests_names_the_median_if_a_run_is_worse(shares, text):
    rows = [row for seed in range(len(shares)) for row in rows_of("softmax", [0.1, 1.0], seed=seed)]
    rows += [row_of_test(rows, length=256, accuracy=share, seed=seed) for seed, share in enumerate(shares)]
    found = text_of_tests(outcomes(rows), by="length", trained_at=32)
    expected = (
        f"After training on 32 tokens, {text}."
        if text
        else ("At 256 tokens, no variant reaches an accuracy of 95%. Accuracy by variant: softmax (93%).")
    )
    assert found == f"**{expected}**"


def test_the_headline_of_tests_names_at_most_three_variants():
    shares = {"softmax": 1.0, "linear": 0.9, "relu2": 0.4, "cosine": 0.5}
    assert text_of_tests(with_tests(shares), by="items", trained_at=4) == (
        "**4 variants learn 4 pairs, but only softmax still gets at least 95% right with 24 pairs. "
        "Accuracy falls to 90% for Linear, to 50% for Cosine and to 40% for Squared ReLU.**"
    )
    assert "falls to 85% for Gated linear, to 50% for Cosine and to 40% for Squared ReLU.**  \n**Linear** gets" in (
        text_of_tests(with_tests(shares | {"gla": 0.85}), by="items", trained_at=4)
    )
    assert text_of_tests(with_tests(shares | {"softmax": 0.2}), by="items", trained_at=4) == (
        "**With 24 pairs, no variant reaches an accuracy of 95%. Accuracy by variant: Linear (90%), Cosine (50%) and "
        "Squared ReLU (40%).**  \n**Softmax** gets 20% right."
    )
    many = dict.fromkeys(("softmax", "sigmoid", "gla", "deltanet"), 0.98)
    assert text_of_tests(with_tests(many | {"linear": 0.1}), by="items", trained_at=4) == (
        "**5 variants learn 4 pairs, but only 4 still get at least 95% right with 24 pairs. Accuracy falls "
        "to 10% for Linear.**"
    )


@pytest.mark.parametrize(
    ("view", "positions", "text"),
    [
        ("race", "none", ", 4 pairs.** {summary} The models have no position encoding."),
        ("longer", "none", ", 4 pairs.** {summary} The models have no position encoding."),
        ("longer", "rotary", ", 4 pairs.** {summary} The models have rotary positions (RoPE)."),
        ("capacity", "none", "recall.** {summary} The models were trained with 4 pairs, and tested with 4 to 24."),
    ],
)
def test_the_description_of_the_task_says_what_tests_compare(view, positions, text):
    task = TASKS["recall"]
    plain, mixed = (generalisation_words.task_text(task, view, positions, convolution=each) for each in (False, True))
    assert plain.endswith(text.format(summary=task.summary))
    assert mixed == f"{plain} All models have a short convolution."
    assert "convolution" not in generalisation_words.task_text(task, "parts", positions, convolution=True)


def of_a_test(word, accuracy, *, positions="none", seed=0, length=256):
    """Return the measurements of a variant that is tested at one length."""
    rows = rows_of(word, [0.1, 1.0], seed=seed)
    rows.append(row_of_test(rows, length=length, accuracy=accuracy))
    spec = rows[0].spec
    [outcome] = outcomes([replace(r, spec=replace(spec, model=replace(spec.model, positions=positions))) for r in rows])
    return outcome


@pytest.mark.parametrize(
    ("rotary", "plain", "has_text"), [(0.88, 1.0, True), (1.0, 0.5, True), (0.96, 1.0, False), (0.2, 0.6, False)]
)
def test_the_variant_whose_accuracy_changes_most_with_other_positions_is_named(rotary, plain, has_text):
    with_rope, without = of_a_test("softmax", rotary, positions="rotary"), of_a_test("softmax", plain)
    steady, shares = [of_a_test("linear", 1.0), of_a_test("linear", 0.97, positions="rotary")], (rotary, plain)
    high, low = map(percent, shares)
    orders = (
        (
            with_rope,
            without,
            f"On 256 tokens, softmax gets {low} right without position encoding (dashed), instead of {high} with RoPE.",
        ),
        (
            without,
            with_rope,
            f"On 256 tokens, softmax gets {high} right with RoPE (dashed), instead of {low} without position encoding.",
        ),
    )
    for shown, other, text in orders:
        found = text_of_tests([shown, steady[0]], by="length", trained_at=32, counterparts=[steady[1], other])
        assert (text in found) == has_text
        assert has_text or "RoPE" not in found
    assert "RoPE" not in text_of_tests([without], by="length", trained_at=32)


def test_only_variants_that_learned_the_task_are_compared_on_more_pairs():
    failing = rows_of("gla", BAD)
    [other] = outcomes([*failing, row_of_test(failing, length=128, items=24, accuracy=0.05)])
    found = text_of_tests([*with_tests({"softmax": 1.0, "linear": 0.8}), other], by="items", trained_at=4)
    assert found == (
        "**2 variants learn 4 pairs, but only softmax still gets at least 95% right with 24 pairs. Accuracy "
        "falls to 80% for Linear.**  \n**Gated linear** gets 5% right."
    )
    found = text_of_tests([*with_tests({"softmax": 1.0}), other], by="items", trained_at=4)
    assert found == (
        "**After training with 4 pairs, all answers with 24 pairs are correct with softmax.**  \n**Gated linear** gets "
        "5% right."
    )


def test_only_equal_tests_of_a_variant_are_compared():
    one = of_a_test("softmax", 0.9, positions="rotary")
    others = [of_a_test("linear", 0.5), of_a_test("softmax", 0.5, seed=1), of_a_test("softmax", 0.5, length=128)]
    untested, same = outcomes(rows_of("softmax", [0.1, 1.0])), of_a_test("softmax", 0.5)
    assert generalisation_words.matching([one], [*others, *untested, same]) == [(one, same)]
    assert generalisation_words.matching(untested, untested) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ([8.2], "This run trains 1 model. The training time, estimated from recorded runs, is about 9 CPU seconds."),
        (
            [8.2, 20.0],
            "This run trains 2 models. The training time, estimated from recorded runs, is about 29 CPU seconds in "
            "total.",
        ),
        (
            [8.2, None, 20.0],
            "This run trains 3 models. The training time is known from recorded runs for 2 of them: about 29 CPU "
            "seconds in total.",
        ),
        ([None], "This run trains 1 model. No run of this variant is recorded, so its training time is not known."),
        (
            [None, None],
            "This run trains 2 models. No runs of these variants are recorded, so their training time is not known.",
        ),
    ],
)
def test_the_training_time_is_shown_before_training(seconds, text):
    assert training_words.duration(seconds) == text


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_more_heads_shrink_states_but_not_caches(heads):
    of = lambda word: numbers_stored(learning.plan([word], heads=heads).specs[0].model)  # noqa: E731
    assert of("softmax") == (0, 2 * 64)
    assert of("deltanet") == (64 * 64 // heads, 0)
    assert of("linear") == (64 * 64 // heads + 64, 0)  # The second term is the sum of the keys.


def test_variants_without_a_recorded_run_are_named():
    rows = rows_of("softmax", [0.1, 1.0])
    assert not gaps.not_recorded([ac.get("softmax")], rows)
    assert gaps.not_recorded([ac.get("softmax"), ac.get("local"), ac.get("linear")], rows) == (
        "No recorded runs with these settings: Local with window 16 and Linear. Press “Train on this server” to train "
        "them."
    )


def test_variants_beyond_the_profile_are_named(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    chosen = [ac.get(key) for key in ("softmax", "local", "linear", "gla", "deltanet")]
    assert not gaps.variants_left_out(chosen[:4], 5, 5)
    assert gaps.variants_left_out(chosen, 5, 5) == (
        "Too many models for this machine: with 5 seeds, DeltaNet would not be trained. Choose fewer variants or "
        "fewer seeds."
    )
    assert not gaps.variants_left_out(chosen, 1, 1)


@pytest.mark.parametrize(
    ("task", "by", "text"),
    [
        ("recall", "length", ""),
        ("recall", "items", ""),
        ("parity", "length", ""),
        (
            "parity",
            "items",
            "Models trained on the task “Parity” are not tested with more items to remember than in training.",
        ),
        ("digits", "length", "Models of the task “Handwritten digits” are not tested on longer sequences."),
    ],
)
def test_a_task_without_tests_has_a_note(task, by, text):
    assert gaps.no_tests(TASKS[task], by=by) == text


def test_a_hosted_lab_shows_the_recorded_runs_of_all_default_variants(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    assert max_variants(len(SEEDS)) >= HOSTED.compared_variants >= len(VARIANTS)


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("recall", "It trains on 64 new sequences of 32 tokens at each step."),
        ("maximum", "It trains on 64 new sequences of up to 17 tokens at each step."),
        ("characters", "Each step uses 64 random excerpts of 64 characters from the text for training."),
        ("digits", "Each step uses 64 random images of the 1,500 for training."),
    ],
)
def test_the_sequences_of_a_training_step_are_described(task, text):
    [spec] = learning.plan(["softmax"], task=task).specs
    assert training_words.model_and_batches(spec) == (
        f"Each model has 2 layers, 1 head of size 64 per layer, and no feed-forward part. {text}"
    )


def test_the_trained_tensors_are_named_with_their_variants():
    models = [each.model for each in learning.plan(["softmax", "deltanet", "gated_deltanet"], seeds=[0, 1]).specs]
    assert training_words.trained_tensors(models) == (
        "The projections to queries, keys and values are trained, and so are write strengths (DeltaNet and Gated "
        "DeltaNet) and gates (Gated DeltaNet). The other settings of the variants are not trained."
    )


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["softmax", "local"], "{chosen} Softmax 0.01 and Local · window 16 0.003. {same}"),
        (["cosine"], "Learning rates that were not tuned: Cosine 0.003. {same}"),
        (["linear", "cosine"], "{chosen} Linear 0.01. Learning rates that were not tuned: Cosine 0.003. {same}"),
    ],
)
def test_the_learning_rates_are_shown_with_how_they_were_chosen(monkeypatch, keys, text):
    known = {"recall": {"softmax": 0.01, "local": 0.003, "linear": 0.01}}
    monkeypatch.setattr("attention_core.learning.rates.tuned_rates", lambda: known)
    found = outcomes([row for key in keys for row in rows_of(key, [0.1, 1.0])])
    chosen = (
        "For each variant, the learning rates 0.001, 0.003 and 0.01 were tried in runs with another seed. The one with "
        "the lowest loss is used:"
    )
    same = "Recorded runs and runs on this server use the same learning rates."
    assert training_words.learning_rates(found) == text.format(chosen=chosen, same=same)


def test_learning_rates_of_a_changed_model_are_those_of_the_default_model_unless_it_was_tuned(monkeypatch):
    known = {"recall": {"softmax": 0.01, "linear": 0.003, "linear layers=4 heads=4": 0.001}}
    monkeypatch.setattr("attention_core.learning.rates.tuned_rates", lambda: known)
    models = [each for key in ("softmax", "linear", "cosine") for each in rows_of(key, [0.1, 1.0])]
    specs = {each.spec: learning.plan([each.spec.model.word], layers=4, heads=4).specs[0] for each in models}
    found = outcomes([replace(each, spec=specs[each.spec]) for each in models])
    assert training_words.learning_rates(found) == (
        "For each variant, the learning rates 0.001, 0.003 and 0.01 were tried in runs with another seed. The one with "
        "the lowest loss is used: Linear 0.001. These rates were tuned with the default model: Softmax 0.01. Learning "
        "rates that were not tuned: Cosine 0.003. Recorded runs and runs on this server use the same learning rates."
    )


@pytest.mark.parametrize(("word", "fixed"), [("softmax", False), ("deltanet", True), ("gla~gate~constant", False)])
def test_settings_are_unchanged_without_trained_tensors(word, fixed):
    [spec] = learning.plan([word], fixed=fixed).specs
    assert training_words.trained_tensors([spec.model]) == (
        "The projections to queries, keys and values are trained. The settings of the variants are not trained."
    )


def part_outcome(word, whole, **without):
    """Return the measurements of a variant with all parts (accuracy ``whole``) and without each part.

    A model without an accuracy (None) is not trained.
    """
    [outcome] = outcomes(rows_of(word, [0.1, whole]))
    removed = {
        part: outcomes(rows_of(word, [0.1, share, share]))[0] for part, share in without.items() if share is not None
    }
    return PartOutcome(full=outcome, parts=tuple(without), ablations=removed)


def test_the_message_without_models_without_a_part_gives_the_reason():
    whole, no_parts = part_outcome("linear", 0.9, convolution=None), part_outcome("softmax", 0.9)
    assert gaps.no_parts_removed([no_parts], live=True) == "These models have no part that can be removed."
    assert gaps.no_parts_removed([whole, no_parts], live=True) == "No model with a part removed is trained yet."
    assert gaps.no_parts_removed([whole], live=False).startswith("No runs with a part removed are recorded for this")


@pytest.mark.parametrize("colour", range(COLOURS))
def test_the_parts_and_the_variant_have_different_colours(colour):
    every = part_outcome("gla", 1.0, convolution=1.0, gate=1.0, positions=1.0, layer=1.0)
    shown = [replace(every, full=replace(every.full, colour=colour)), part_outcome("softmax", 1.0, layer=1.0)]
    colours = missing.part_colours(shown[:1])
    assert list(colours) == ["convolution", "gate", "positions", "layer"]
    assert len({each % COLOURS for each in colours.values()} - {colour}) == 4
    assert not {each % COLOURS for each in missing.part_colours(shown).values()} & {colour, 0}


STEADY = "With **Linear**, removing the last layer lowers accuracy by at most 5 percentage points."


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            [("linear", 1.0, {"convolution": 0.3, "layer": 0.94})],
            "**Without the short convolution, accuracy falls to 30% for Linear.**",
        ),
        (
            [("gla", 0.9, {"gate": 0.2, "layer": 0.1})],
            "**Without the last layer, accuracy falls to 10% for Gated linear.**",
        ),
        (
            [("linear", 1.0, {"layer": 0.9}), ("softmax", 0.9, {"layer": 0.2})],
            "**Without the last layer, accuracy falls to 20% for softmax and to 90% for Linear.**",
        ),
        (
            [("linear", 1.0, {"convolution": 0.9}), ("softmax", 1.0, {"positions": 0.2})],
            "**Without the position encoding, accuracy falls to 20% for softmax.** "
            "**Without the short convolution, accuracy falls to 90% for Linear.**",
        ),
    ],
)
def test_the_part_that_matters_most_is_named_with_its_loss(found, text):
    results = [part_outcome(word, whole, **parts) for word, whole, parts in found]
    assert part_words.largest_losses(results).text == text


def test_other_clear_effects_of_a_removed_part_are_below_the_largest_loss():
    def others(**without):
        return part_words.largest_losses([part_outcome("linear", 1.0, **without)]).explanation

    assert others(convolution=0.3, layer=0.94) == "Without the last layer, fewer answers are right: **Linear** (94%)."
    assert not others(convolution=0.3, layer=0.96)
    assert not others(convolution=0.3)
    full, slow = part_outcome("gla", 1.0, gate=1.0), rows_of("gla", [0.1] * 5 + [1.0])
    [gate] = outcomes(slow)
    assert gate.learned_at[0] - full.full.learned_at[0] == 40
    found = part_words.largest_losses([replace(full, ablations={"gate": gate})])
    assert (
        found.explanation == "Without the gate, another number of steps is needed: **Gated linear** (50 instead of 10)."
    )


def test_a_loss_of_five_points_is_not_reported():
    assert part_words.largest_losses([part_outcome("linear", 0.9, layer=0.86)]) == Finding(STEADY)
    assert part_words.largest_losses([part_outcome("linear", 0.9, layer=0.84)]) == Finding(
        "**Without the last layer, accuracy falls to 84% for Linear.**"
    )
    two = Finding(STEADY.replace("the last layer", "any one part"))
    assert part_words.largest_losses([part_outcome("linear", 0.9, layer=0.86, convolution=0.9)]) == two
    both = [part_outcome("linear", 0.9, layer=0.95), part_outcome("softmax", 0.9, layer=0.5)]
    assert part_words.largest_losses(both) == Finding(
        "**Without the last layer, accuracy falls to 50% for softmax.**", STEADY
    )
    assert part_words.largest_losses([part_outcome("linear", 0.9)]) == Finding("")
    assert part_words.largest_losses([part_outcome("linear", 0.9, layer=None)]) == Finding("")


def test_a_short_convolution_that_is_removed_is_explained():
    two = [part_outcome(word, 1.0, convolution=1.0, layer=1.0) for word in ("softmax", "linear")]
    assert part_words.convolution_note(two).startswith("The short convolution mixes each query, key and value")
    assert part_words.convolution_note([part_outcome("softmax", 1.0, convolution=None, layer=1.0)]) == ""


def test_a_loss_is_reported_only_if_all_runs_without_the_part_are_worse():
    full = part_outcome("linear", 0.65, gate=0.5)

    def with_runs(*accuracies):
        rows = [row for seed, share in enumerate(accuracies) for row in rows_of("linear", [0.1, share], seed=seed)]
        return outcomes(rows)[0]

    result = replace(full, full=with_runs(0.59, 0.65, 0.68), ablations={"gate": with_runs(0.5, 0.57, 0.58)})
    assert "accuracy falls to 57% for Linear (runs: 50% to 58%; " in part_words.largest_losses([result]).text
    result = replace(result, ablations={"gate": with_runs(0.5, 0.57, 0.6)})
    assert "falls" not in part_words.largest_losses([result]).text


def test_settings_that_are_not_the_budget_are_part_of_a_name():
    assert [each.name_in_sentence for each in outcomes(rows_of("deltanet~strength~2.0", [1.0]))] == [
        "DeltaNet with strength 2.0"
    ]
    assert [each.name_in_sentence for each in outcomes(rows_of("deltanet", [1.0]))] == ["DeltaNet"]


def test_failed_runs_of_a_variant_that_learned_the_task_are_counted():
    runs = [rows_of("softmax", [0.1, share], seed=seed) for seed, share in enumerate((1.0, 0.7, 0.97))]
    rows = [replace(row, spec=replace(row.spec, steps=10)) for each in runs for row in each]
    results = outcomes(rows)
    assert words.learned_steps(results) == ["softmax (step 10, in 2 of 3 runs)"]


def test_a_smaller_number_of_layers_is_enough_if_every_variant_reaches_the_threshold_with_it():
    lost = part_outcome("linear", 1.0, convolution=0.3, layer=0.95)
    text = "**Without the short convolution, accuracy falls to 30% for Linear.**"
    enough = "**A single layer is enough for 95%.**"
    assert part_words.largest_losses([lost]).text == f"{text} {enough}"
    other = partial(part_outcome, "softmax", convolution=1.0)
    assert enough in part_words.largest_losses([lost, other(whole=0.98, layer=0.95)]).text
    assert enough not in part_words.largest_losses([lost, other(whole=0.98, layer=0.94)]).text
    assert enough not in part_words.largest_losses([lost, other(whole=0.94, layer=0.96)]).text
    assert part_words.largest_losses([part_outcome("linear", 1.0, convolution=0.3)]).text == text


@pytest.mark.parametrize(("curve", "rises"), [([0.1, 0.5, 0.6, 0.7, 0.76], True), ([0.1, 0.5, 0.6, 0.7, 0.74], False)])
def test_an_accuracy_is_still_rising_if_the_last_quarter_of_the_steps_adds_five_points(curve, rises):
    full = part_outcome("linear", 1.0, convolution=0.3)
    [ablated] = outcomes(rows_of("linear", curve))
    assert ablated.is_rising == rises
    text = part_words.largest_losses([replace(full, ablations={"convolution": ablated})]).text
    assert ("(still rising at step 40)" in text) == rises


def test_models_that_are_not_trained_without_a_part_are_named():
    full = part_outcome("linear", 1.0, layer=0.9, convolution=0.9)
    none = part_outcome("linear", 1.0, layer=None, convolution=None)
    some = part_outcome("gla", 1.0, layer=0.9, gate=None)
    assert not gaps.not_trained_without([full])
    assert gaps.not_trained_without([full, none, some]) == [
        "No runs with a part removed are recorded for Linear.",
        "No runs without the gate are recorded for Gated linear.",
    ]


def test_missing_tests_are_explained():
    [spec] = learning.plan(["softmax"]).specs
    trained = outcomes(rows_of("softmax", [0.1, 1.0], every=spec.steps))
    assert gaps.missing_tests(trained).startswith("No tests are recorded for these variants and settings.")
    assert gaps.missing_tests(outcomes(rows_of("softmax", [0.1, 1.0]))) == (
        "The trained models are tested when training is complete."
    )


@pytest.mark.parametrize(("line", "place"), [([0.1, 0.2, 0.9, 1.0], 2), ([0.1, 0.1], None), ([0.5], None), ([], None)])
def test_the_steepest_rise_ends_at_a_point(line, place):
    assert steepest_rise(line) == place


def with_matrices(word, weights, *, task="recall", **model):
    """Return the measurements of a variant whose matrices have these shares of weight on answers, by step and layer."""
    [spec] = learning.plan([word], task=task, layers=len(weights[0]), **model).specs
    batch = evaluation_batch(spec, spec.length, spec.items, sequences=1)
    is_answer = batch.inputs[0][None, :] == batch.targets[0][:, None]
    place = is_answer.float().argmax(-1)
    rows = rows_of(word, [0.1] * len(weights))
    found = []
    for row, shares in zip(rows, weights, strict=True):
        matrices = np.zeros((len(shares), spec.length, spec.length))
        for matrix, share in zip(matrices, shares, strict=True):
            matrix[np.arange(spec.length), place] = share
            matrix[np.arange(spec.length), (place + 1) % spec.length] += 1 - abs(share)
        found.append(replace(row, spec=spec, matrices=matrices))
    return found


def test_the_weight_on_the_answer_is_reported_in_the_layer_where_it_is_largest():
    rows = with_matrices("softmax", [[0.04, 0.1], [0.9, 0.2], [0.98, 0.0]])
    rows += with_matrices("linear", [[0.02, 0.3], [0.4, 0.1]])
    found = outcomes(rows)
    text = "**After 20 steps, a repeated key puts most weight on its value in layer 1 of 2: softmax (98%).**"
    assert attention_text(found, 0) == text
    assert attention_text(found, 1) == text.replace(".**", ". Choose layer 1 to see these weights.**")
    linked = attention_text(found, 1, lambda layer: f"#?l_layer={layer}")
    assert linked == text.replace(".**", ". [Choose layer 1](#?l_layer=0) to see these weights.**")
    rows = with_matrices("softmax", [[0.0, 0.5]]) + with_matrices("linear", [[0.0, 0.6]])
    assert attention_text(outcomes(rows), 1).startswith(
        "**After 0 steps, a repeated key puts most weight on its value in layer 2 of 2: Linear (60%) and softmax (50%)."
    )


def test_a_negative_weight_on_the_answer_is_explained_below_its_matrix():
    values = {"name": "A", "share": "50%"}
    assert attention_words.panel_caption(0.0, **values) == "A: 50% correct, 0% of the weight on the answer"
    assert attention_words.panel_caption(-0.084, **values) == (
        "A: 50% correct, weight −8.4% on the answer (subtracts its value)"
    )


def test_no_variant_attends_mostly_to_the_answer_and_a_negative_weight_subtracts():
    found = outcomes(with_matrices("deltanet", [[0.0], [-0.3]]) + with_matrices("softmax", [[0.01], [0.49]]))
    assert attention_text(found, 0) == (
        "**No variant here attends mostly to the answer.**  \nA negative weight (orange) subtracts the value."
    )


@pytest.mark.parametrize("key", sorted(key for key, task in TASKS.items() if task.shows_answers))
def test_every_task_with_answers_in_the_sequence_has_an_attention_sentence(key):
    found = outcomes(with_matrices("softmax", [[1.0]], task=key))
    assert attention_text(found, 0).startswith("**After 0 steps, a ")


def test_the_answer_of_induction_is_the_symbol_that_followed_the_first_time():
    [spec] = learning.plan(["softmax"], task="induction").specs
    half, matrix = spec.length // 2, np.zeros((spec.length, spec.length))
    for query in range(half, spec.length - 1):
        matrix[query, query - half + 1] = 3.0
        matrix[query, 0] = 1.0 if query > half else -1.0
    assert answer_share(spec, matrix) == 0.75
    assert answer_share(spec, np.eye(spec.length)) == 0.0


@pytest.mark.parametrize(("task", "layer"), [("induction", 1), ("recall", 0)])
def test_softmax_learns_to_attend_to_the_answer_while_it_learns_the_task(task, layer):
    rows = recorded_runs.recorded_rows(learning.plan(["softmax"], task=task, seeds=[0]))
    weights = {row.row.step: answer_share(row.spec, row.matrices[layer]) for row in rows if row.matrices is not None}
    assert weights[min(weights)] < 0.1
    assert weights[max(weights)] > 0.9
