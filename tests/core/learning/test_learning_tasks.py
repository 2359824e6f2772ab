"""Tests of the learning tasks: a hand-written solver finds every target, and guessing reaches the chance level."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_core.errors import InputError
from attention_core.learning.learning_task import IGNORED
from attention_core.learning.tasks import TASKS, characters, digits, maximum, recall, selective_copying, task


def drawn(key, *, sequences=8, length=None, items=None, seed=0, **further):
    wanted = TASKS[key]
    length, items = wanted.length if length is None else length, wanted.items if items is None else items
    wanted.check(length, items)
    return wanted.sample(torch.Generator().manual_seed(seed), sequences, length, items, **further)


def solve_recall(row):
    stored, answers = {}, []
    for before, symbol in zip([None, *row], row, strict=False):
        if symbol >= recall.KEYS and symbol != recall.BLANK:
            stored[before] = symbol
    for i, symbol in enumerate(row):
        answers.append(stored[symbol] if symbol in row[:i] and symbol < recall.KEYS else IGNORED)
    return answers


def solve_copying(row):
    symbols = iter([x for x in row if x < selective_copying.SYMBOLS])
    return [next(symbols) if x == selective_copying.MARK else IGNORED for x in row]


def solve_induction(row):
    half = len(row) // 2
    return [IGNORED] * half + [row[row.index(x) + 1] for x in row[half:-1]] + [IGNORED]


def solve_maximum(row):
    items = row[:-1]
    best = max(items, key=lambda item: item[0])
    assert row[-1] == [0.0] * (maximum.CLASSES + 1) + [1.0]
    return [IGNORED] * len(items) + [best[1:-1].index(1.0)]


def solve_parity(row):
    return [sum(row[: i + 1]) % 2 for i in range(len(row))]


SOLVERS = {
    "recall": solve_recall,
    "copying": solve_copying,
    "induction": solve_induction,
    "maximum": solve_maximum,
    "parity": solve_parity,
}


@settings(max_examples=25, deadline=None)
@given(data=st.data(), key=st.sampled_from(sorted(SOLVERS)), seed=st.integers(0, 10**6))
def test_a_solver_finds_every_target(data, key, seed):
    wanted = TASKS[key]
    length = data.draw(st.integers(wanted.shortest, min(wanted.longest, 70)))
    most = wanted.most_items(length)
    items = data.draw(st.integers(min(1, most), most))
    batch = drawn(key, length=length, items=items, seed=seed)
    for row, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        assert SOLVERS[key](row) == targets
    if key in ("recall", "copying"):
        assert (batch.targets != IGNORED).sum(-1).tolist() == [items] * 8


@pytest.mark.parametrize("key", sorted(TASKS))
def test_inputs_and_targets_are_within_the_sizes_that_the_task_states(key):
    wanted, batch = TASKS[key], drawn(key)
    assert batch.inputs.shape[:2] == batch.targets.shape == (8, wanted.length)
    asked = batch.targets[batch.targets != IGNORED]
    assert asked.min() >= 0
    assert asked.max() < wanted.classes
    assert batch.inputs.shape[2:] == ((wanted.inputs,) if wanted.vectors else ())
    if not wanted.vectors:
        assert batch.inputs.min() >= 0
        assert batch.inputs.max() < wanted.inputs
        assert wanted.label is not None
        assert len({wanted.label(symbol) for symbol in range(wanted.inputs)}) == wanted.inputs


@pytest.mark.parametrize("key", sorted(TASKS))
def test_equal_generators_give_equal_sequences(key):
    assert torch.equal(drawn(key, seed=3).inputs, drawn(key, seed=3).inputs)
    assert not torch.equal(drawn(key, seed=3).inputs, drawn(key, seed=4).inputs)


def guesses(key, batch):
    """Return one guess for each target, drawn from the answers that the sequence allows."""
    generator = torch.Generator().manual_seed(9)
    for row, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        if key == "recall":
            options = [x for x in row if recall.KEYS <= x < recall.BLANK]
        elif key == "induction":
            options = row[: len(row) // 2]
        else:
            options = range(TASKS[key].classes)
        for target in targets:
            if target != IGNORED:
                yield options[int(torch.randint(len(options), (), generator=generator))] == target


@pytest.mark.parametrize("key", ["recall", "copying", "induction", "maximum", "parity", "digits"])
def test_guessing_reaches_the_chance_level(key):
    found = list(guesses(key, drawn(key, sequences=4000)))
    chance = TASKS[key].chance(TASKS[key].length, TASKS[key].items)
    error = (chance * (1 - chance) / len(found)) ** 0.5
    assert sum(found) / len(found) == pytest.approx(chance, abs=4 * error)


def test_the_chance_level_of_characters_is_the_share_of_the_most_frequent():
    batch = drawn("characters", sequences=500, held_out=True)
    space = characters.ALPHABET.index(" ")
    assert (batch.targets == space).float().mean() == pytest.approx(TASKS["characters"].chance(64, 0), abs=0.02)


@pytest.mark.parametrize("key", ["characters", "digits"])
def test_held_out_examples_are_never_trained_on(key):
    train, test = drawn(key, sequences=2000), drawn(key, sequences=50, held_out=True)
    if key == "digits":
        seen = {tuple(row) for row in train.inputs[..., 0].tolist()}
        assert not [row for row in test.inputs[..., 0].tolist() if tuple(row) in seen]
    else:
        first, second = characters.corpus()
        assert len(second) == pytest.approx(0.1 * (len(first) + len(second)), abs=1)
        texts = ["".join(characters.ALPHABET[i] for i in part.tolist()) for part in (first, second)]
        rows = ["".join(characters.ALPHABET[i] for i in row) for row in test.inputs.tolist()]
        assert all(row in texts[1] and row not in texts[0] for row in rows)


def test_digits_are_grey_images_of_ten_classes():
    pixels, classes = digits.images()
    assert pixels.shape == (1797, 64)
    assert pixels.min() == 0
    assert pixels.max() == 1
    assert torch.bincount(classes).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_character_corpus_uses_exactly_its_alphabet():
    first, second = characters.corpus()
    assert set(torch.cat([first, second]).tolist()) == set(range(len(characters.ALPHABET)))


def test_the_error_for_an_unknown_task_suggests_the_most_similar_task():
    with pytest.raises(InputError, match="Did you mean 'recall'"):
        task("recal")


@pytest.mark.parametrize(("length", "items"), [(3, 1), (2000, 4), (32, 0), (32, 11)])
def test_an_impossible_recall_task_is_refused(length, items):
    with pytest.raises(InputError, match="Choose a"):
        TASKS["recall"].check(length, items)


def test_tasks_can_be_sampled_at_their_bounds():
    for wanted in TASKS.values():
        for length in (wanted.shortest, min(wanted.longest, 64), wanted.length):
            most = wanted.most_items(length)
            if most or not wanted.items:
                batch = wanted.sample(torch.Generator().manual_seed(0), 2, length, most)
                assert batch.inputs.shape[0] == 2
