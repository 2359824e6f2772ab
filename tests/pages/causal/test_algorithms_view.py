"""Tests of the Algorithms view: equal results, costs over length, and times measured on request."""

import json

import pytest
from driver import points, read_number, spoken, table

import attention_core as ac
from app.jobs.runs import Run
from attention_core.experiments import causal_modes
from attention_core.experiments.causal_modes import MATRIX, ROUNDS, AgreementRow, CostRow, CostTask, TimeRow
from pages.causal.algorithms import notes, progress, sentence, whole_rounds

RUN = "causal.run"


def test_three_algorithms_one_answer_and_a_crossing_at_d_squared(open_view):
    at = open_view("algorithms")
    memory, work = points(at, -2), points(at)
    told = "On these 24 tokens, repeated to 160 so that chunks of 64 follow one another, every algorithm gives **one"
    assert told in spoken(at)
    assert any("×\N{NO-BREAK SPACE}10⁻" in each.value for each in at.markdown)
    [pays] = [name for name in memory if name.startswith("cumsum pays from n ≈ ")]
    [n] = memory[pays]
    assert n == pytest.approx(64, rel=0.2)
    assert f"from **{pays.rpartition('cumsum pays from ')[2]}** on, where d² = 64" in spoken(at)
    assert set(work) >= {"chunked", "recurrent", "cumsum", "explicit matrix"}
    [row] = causal_modes.run(CostTask(word="linear", way=MATRIX, n=128, d=8))
    assert memory["explicit matrix"][128] == pytest.approx(row.peak_bytes / 2**20)
    assert work["explicit matrix"][128] == 2 * 128 * 128 * 8
    upright = json.loads(at.get("plotly_chart")[-2].proto.spec)["layout"]["shapes"][0]
    assert upright["x0"] == 64


def test_the_table_says_who_lacks_cumsum(open_view):
    at = open_view("algorithms")
    found = table(at)
    assert set(found.index) == {"Cosine", "Linear", "Performer · features 64", "Retention", "Second-order Taylor"}
    lacking = found.index[found["chunked − cumsum"] == "—"]
    assert set(lacking) == {"Performer · features 64", "Retention", "Second-order Taylor"}
    note = next(c.value for c in at.caption if "no cumsum form" in c.value)
    assert all(f"**{name}**" in note for name in lacking)
    single, double = map(read_number, found.loc["Linear", "chunked − recurrent"].split(" · "))
    assert 1e-9 < single < 5e-6
    assert double < 1e-14


def test_the_head_size_moves_the_crossing_and_the_chosen_settings_count(open_view):
    at = open_view(
        "algorithms", c_size=16, c_form="cosine", variants=(ac.get("softmax"), ac.get("performer", features=8))
    )
    assert "d² = 256" in spoken(at)
    assert "**Cosine**" in spoken(at)
    assert "Performer · features 8" in table(at).index
    [pays] = [found for name, found in points(at, -2).items() if name.startswith("cumsum pays")]
    assert next(iter(pays)) == pytest.approx(16 * 17, rel=0.2)


def test_times_are_measured_on_a_button_and_kept(open_view):
    at = open_view("algorithms", c_cost="time")
    assert len(at.get("plotly_chart")) == 1
    assert any("Press “Measure times”" in i.value for i in at.info)
    at.button(key="causal.measure").click().run()
    assert not at.exception
    clock = points(at)
    assert set(clock) >= {"chunked", "recurrent", "cumsum", "explicit matrix"}
    assert clock["recurrent"][512] > clock["chunked"][512] > 0
    assert at.button(key="causal.measure").label == "Measure times"
    at.session_state["c_size"] = 16
    assert any("Press “Measure times”" in i.value for i in at.run().info)


def linear_tasks(d):
    source = ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(n=4))
    return causal_modes.tasks(source, (), head=None, word="linear", d=d)  # only the costs of the forms


def test_another_question_ends_a_measurement_and_keeps_what_it_has(open_view):
    begun = Run(linear_tasks(8), [TimeRow(way="chunked", n=n, round=0, ms=1.0) for n in (16, 32)])
    at = open_view("algorithms", c_cost="time", c_size=16, **{RUN: begun})
    assert not at.session_state[RUN].is_running
    assert any("Press “Measure times”" in i.value for i in at.info)
    at.session_state["c_size"] = 8
    assert points(at.run()) == {"chunked": {16: 1.0, 32: 1.0}}


def sampled(tasks, count):
    """Return the first samples of a measurement, each of one millisecond."""
    rows = [TimeRow(way=t.way, n=t.n, round=i, ms=1.0) for i in range(ROUNDS) for t in tasks]
    return rows[:count]


def test_a_stopped_measurement_says_what_is_missing_and_goes_on_where_it_was(open_view):
    tasks = linear_tasks(8)
    # Changing another control ends it.
    at = open_view(
        "algorithms", c_cost="time", c_size=16, **{RUN: Run(tasks, sampled(tasks, len(tasks) + 1), len(tasks) + 1)}
    )
    assert not [b for b in at.button if b.label == "Continue"]
    at.session_state["c_size"] = 8
    missing = f"The times are not complete: 1 of {ROUNDS} rounds are there."
    assert missing in spoken(at.run())
    next(b for b in at.button if b.label == "Continue").click().run()
    assert not at.exception
    assert "not complete" not in spoken(at)
    assert not [b for b in at.button if b.label == "Continue"]
    rows = at.session_state[RUN].rows
    assert rows[: len(tasks) + 1] == sampled(tasks, len(tasks) + 1)
    assert len(rows) == ROUNDS * len(tasks)


def test_a_script_that_takes_over_goes_on_with_the_measurement(open_view):
    tasks = linear_tasks(8)
    all_but_one = sampled(tasks, ROUNDS * len(tasks) - 1)
    at = open_view("algorithms", c_cost="time", **{RUN: Run(tasks, list(all_but_one))})
    assert not at.exception
    assert points(at)["chunked"] == {task.n: 1.0 for task in tasks if task.way == "chunked"}
    rows = at.session_state[RUN].rows
    assert rows[:-1] == all_but_one
    assert rows[-1].ms != 1.0
    assert at.button(key="causal.measure").label == "Measure times"


def test_a_hosted_page_offers_no_head_size_beyond_its_lengths(open_view, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    at = open_view("algorithms", c_size=32)
    assert not at.exception
    [sizes] = [g.options for g in at.button_group if g.key == "c_size"]
    assert [o.content if hasattr(o, "content") else str(o) for o in sizes] == ["8", "16", "32"]


AGREED = [
    AgreementRow(variant=word, dtype=dtype, a="chunked", b=MATRIX, difference=difference)
    for word, dtype, difference in (
        ("linear", "float32", 2e-7),
        ("cosine", "float32", 4e-7),
        ("linear", "float64", 3e-16),
        ("cosine", "float64", 1e-16),
    )
]


def counts(*pairs):
    """Return the memory of cumsum and the matrix at 16, 32 … tokens."""
    return [
        CostRow(variant="linear", way=way, n=16 * 2**i, d=8, multiply_adds=1, peak_bytes=held)
        for i, pair in enumerate(pairs)
        for way, held in zip(("cumsum", MATRIX), pair, strict=True)
    ]


def clock(*pairs):
    """Return the same numbers as milliseconds, with one sample of cumsum delayed a hundredfold."""
    return [
        TimeRow(way=way, n=16 * 2**i, round=r, ms=ms * (100 if (way, r) == ("cumsum", 0) else 1))
        for i, pair in enumerate(pairs)
        for r in range(3)
        for way, ms in zip(("cumsum", MATRIX), pair, strict=True)
    ]


PAYS, NEVER = ((200, 100), (200, 200), (200, 400)), ((200, 100), (200, 150))


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (159, "On these 159 tokens, repeated to 160 so that chunks of 64 follow one another, every algorithm gives"),
        (160, "On these 160 tokens every algorithm gives"),
        (300, "On these 256 tokens every algorithm gives"),
    ],
)
def test_the_sentence_says_on_how_many_tokens_answers_agree_and_how_well(n, words):
    told = sentence(n, AGREED, [], [], "Linear").replace("\N{NO-BREAK SPACE}", " ")
    assert told.startswith(words)
    assert "no two differ by more than 4 × 10⁻⁷ of the largest output in float32, 3 × 10⁻¹⁶ in float64." in told
    assert told.endswith("float64.")


def test_the_sentence_says_from_where_cumsum_holds_less_or_that_it_never_does():
    pays = sentence(24, AGREED, counts(*PAYS), [], "Linear_2")
    assert "All states of **Linear\\_2** at once (cumsum) hold less than the explicit matrix from **n ≈ 32** on" in pays
    assert pays.endswith("where d² = 64.")
    assert sentence(24, AGREED, counts(*NEVER), [], "Linear").endswith(
        "All states of **Linear** at once (cumsum) still hold more than the explicit matrix at n = 32: d² is 64."
    )


def test_the_sentence_says_from_where_cumsum_is_faster_by_the_medians_and_what_is_missing():
    faster = "On this machine it is faster, too, from n ≈ 32 on."
    told = sentence(24, AGREED, counts(*PAYS), clock((20, 10), (20, 20), (20, 40)), "Linear", rounds=ROUNDS)
    assert told.endswith(faster)
    slower = sentence(24, AGREED, counts(*PAYS), clock((20, 10), (20, 15)), "Linear", rounds=2)
    assert "faster" not in slower
    assert slower.endswith(f"The times are not complete: 2 of {ROUNDS} rounds are there.")
    assert "complete" not in sentence(24, AGREED, counts(*PAYS), [], "Linear", rounds=0)


def test_a_round_is_whole_once_every_form_was_sampled_at_every_length():
    tasks = [CostTask(word="linear", way=way, n=16, d=8) for way in ("cumsum", MATRIX)]
    rows = [TimeRow(way=way, n=16, round=i, ms=1.0) for i in (0, 1) for way in ("cumsum", MATRIX)]
    assert [whole_rounds(rows[:count], tasks) for count in range(5)] == [0, 0, 1, 1, 2]


def test_progress_is_told_from_before_the_first_sample_to_the_last():
    tasks = linear_tasks(8)
    every = sampled(tasks, ROUNDS * len(tasks))
    told = [progress(tasks, Run(tasks, every[:count])) for count in range(len(every) + 1)]
    shares = [share for share, _words in told]
    assert (shares[0], shares[-1]) == (0, pytest.approx(1))
    assert shares == sorted(shares)
    assert told[0][1] == told[1][1] == f"Round 1 of {ROUNDS}"
    assert told[-1][1] == f"Round {ROUNDS} of {ROUNDS}"


@pytest.mark.parametrize(("n", "cut"), [(256, False), (257, True)])
def test_the_notes_say_what_is_compared(n, cut):
    told = notes(n, ["Retention"])
    assert (told[0] == f"Differences are taken on the first 256 of {n} tokens.") == cut
    assert "— **Retention**: no cumsum form" in told[cut]


def test_what_is_taken_away_has_a_column_for_all_that_is_compared_counted_and_timed(open_view, monkeypatch):
    files = {}
    monkeypatch.setattr("app.ui.export.download", lambda label, data, name: files.update({name: data}))
    tasks = linear_tasks(8)
    open_view("algorithms", c_cost="time", **{RUN: Run(tasks, sampled(tasks, 3), is_running=False)})
    header, first, *_rest, last = files["causal-algorithms.csv"]().decode("utf-8-sig").splitlines()
    assert header == "variant,dtype,a,b,difference,way,n,d,multiply_adds,peak_bytes,round,ms"
    assert first.startswith("cosine,float32,chunked,recurrent,")
    assert last == ",,,,,cumsum,16,,,,0,1.0"
