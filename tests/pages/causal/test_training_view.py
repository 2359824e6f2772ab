"""Tests of the Training chapter: equal results, costs over length, and the memory and differences of the gradient."""

import re

import pytest
from driver import charts, chosen, full_text, is_chart, points, read_number, spoken

import attention_core as ac
from attention_core.experiments import causal_gradient, causal_modes
from attention_core.experiments.causal_gradient import STATES, SUMS, BytesRow, BytesTask, DifferenceRow
from attention_core.experiments.causal_modes import MATRIX, AgreementRow, CostRow, CostTask
from attention_core.formatting import number
from pages.causal.gradient import gradient_finding
from pages.causal.training import forward_text, notes

GRADIENT, MEMORY, WORK = -3, -2, -1
"""Places of the charts."""
PAYS_FROM = re.compile(r"from (n ≈ \S+) on, storing every state costs less than the explicit matrix")


def test_all_algorithms_give_the_same_output_and_memory_crosses_at_d_squared(open_view):
    at = open_view("algorithms")
    memory, work = points(at, MEMORY), points(at, WORK)
    assert any("×\N{NO-BREAK SPACE}10⁻" in each.value for each in at.caption)
    [crossing] = [found for name in memory if (found := PAYS_FROM.fullmatch(name))]
    assert not any(map(PAYS_FROM.fullmatch, work)), "the text explains the ring in the chart of memory only"
    [n] = memory[crossing[0]]
    assert n == pytest.approx(64, rel=0.2)
    assert f"takes less memory than the explicit matrix above {crossing[1]} tokens (ring)." in spoken(at)
    assert set(work) >= {"chunked", "recurrent", "state after every token", "explicit matrix"}
    [row] = causal_modes.run(CostTask(word="linear", algorithm=MATRIX, n=128, d=8))
    assert memory["explicit matrix"][128] == pytest.approx(row.peak_bytes / 2**20)
    assert work["explicit matrix"][128] == 2 * 128 * 128 * 8


def test_a_note_says_which_variants_do_not_store_every_state(open_view):
    assert not any("Not shown" in c.value for c in open_view("algorithms").caption), "no such variant is selected"
    at = open_view("algorithms", variants=chosen("softmax", "performer", "retention"))
    note = next(c.value for c in at.caption if "Not shown" in c.value)
    names = "**Performer · features 64** and **Retention**"
    assert f"Not shown with a state after every token: {names}. The lab computes their features for a whole" in note
    found = re.search(
        r"at most (\S+ × \S+) of the largest .* at most (\S+ × \S+) in", note.replace("\N{NO-BREAK SPACE}", " ")
    )
    single, double = (read_number(each.replace(" ", "")) for each in found.groups())
    assert 1e-9 < single < 5e-6
    assert double < 1e-14


def test_the_head_size_moves_the_crossing_and_the_chosen_settings_count(open_view):
    at = open_view(
        "algorithms", c_size=16, c_form="cosine", variants=(ac.get("softmax"), ac.get("performer", features=8))
    )
    assert "In the forward pass of Cosine at head size 16, storing every state takes" in spoken(at)
    assert "**Performer · features 8**" in next(c.value for c in at.caption if "Not shown" in c.value)
    headings = {each.value for each in at.markdown}
    assert {"## Forward memory at head size 16", "## Forward multiply-adds at head size 16"} <= headings
    assert "## Gradient memory of Linear at head size 8" in headings, "the head size of the input"
    [pays] = [found for name, found in points(at, MEMORY).items() if PAYS_FROM.fullmatch(name)]
    assert next(iter(pays)) == pytest.approx(16 * 17, rel=0.2)


def test_only_the_chart_of_the_gradient_is_not_folded_up(open_view):
    at = open_view("algorithms")
    [folded] = [each for each in at.expander if each.label == "Forward pass"]
    assert sum(map(is_chart, folded.get("bidi_component"))) == 2
    assert len(charts(at)) == 3
    assert "The recurrent form processes" in folded.caption[0].value


def test_a_link_to_the_gradient_opens_the_same_chapter(open_view):
    at = open_view("gradient")
    assert at.button_group(key="causal.chapter").formatted_values == ["Training"]
    assert [curves["data"][0]["name"] for curves in charts(at)] == ["chunked"] * 3


def test_a_hosted_page_offers_no_head_size_beyond_its_lengths(open_view, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    at = open_view("algorithms", c_size=32)
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
    """Return the memory of cumsum, the matrix and the chunked form (200 bytes) at 16, 32 … tokens."""
    return [
        CostRow(variant="linear", algorithm=algorithm, n=16 * 2**i, d=8, multiply_adds=1, peak_bytes=size)
        for i, pair in enumerate(pairs)
        for algorithm, size in zip(("cumsum", MATRIX, "chunked"), (*pair, 200), strict=True)
    ]


PAYS, NEVER = ((200, 100), (200, 200), (200, 400)), ((200, 100), (200, 150))


def test_the_notes_report_the_agreement():
    assert forward_text(AGREED, "Linear") == ""
    assert (
        notes(300, AGREED, [])
        .replace("\N{NO-BREAK SPACE}", " ")
        .startswith(
            "The outputs of the algorithms differ by at most 4 × 10⁻⁷ of the largest output in float32 and by at most "
            "3 × 10⁻¹⁶ in float64."
        )
    )


def test_the_text_reports_the_memory_crossing():
    text = forward_text([*AGREED, *counts(*PAYS)], "Linear_2").replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith(
        "In the forward pass of Linear\\_2 at head size 8, storing every state takes less memory than the explicit "
        "matrix above n ≈ 32 tokens (ring). The explicit n × n matrix has n² numbers, and each of the n states has a "
        "fixed size."
    )
    assert (
        "storing every state takes more memory than the explicit matrix up to n = 32 tokens. The explicit n × n matrix"
        in forward_text([*AGREED, *counts(*NEVER)], "Linear")
    )
    assert "storing every state takes less memory than the explicit matrix at every length shown. The explicit" in (
        forward_text([*AGREED, *counts((200, 300), (200, 400))], "Linear")
    )
    unknown = [row for row in counts(*PAYS) if row.algorithm != MATRIX]
    assert forward_text([*AGREED, *unknown], "Linear") == ""


@pytest.mark.parametrize(("work", "reason"), [(30, "needs 3 times as many multiply-adds as the recurrent"), (10, "")])
def test_the_reason_for_chunks_is_given_if_the_recurrent_form_needs_less_work(work, reason):
    forms = {"chunked": work, "recurrent": 10}
    more = [
        CostRow(variant="linear", algorithm=form, n=64, d=8, multiply_adds=each, peak_bytes=200)
        for form, each in forms.items()
    ]
    costs = [row for row in counts(*PAYS) if (row.algorithm, row.n) != ("chunked", 64)]
    text = forward_text([*AGREED, *costs, *more], "Linear")
    assert (f"At 64 tokens, the chunked form {reason} form. Training still uses chunks" in text) == bool(reason)
    assert ("Training still uses chunks" in text) == bool(reason)


@pytest.mark.parametrize(("n", "cut"), [(256, False), (300, True)])
def test_the_notes_name_the_cut_and_variants_that_do_not_store_every_state(n, cut):
    shown = notes(n, AGREED, ["Retention", "Performer"])
    assert ("Differences are measured on the first 256 of 300 tokens." in shown) == cut
    assert "Not shown with a state after every token: **Retention** and **Performer**." in shown
    assert "Not shown" not in notes(n, AGREED, [])


def test_the_chart_of_the_gradient_has_the_counted_bytes(open_view):
    at = open_view("gradient")
    counted = points(at, GRADIENT)
    [row] = causal_gradient.run(BytesTask(word="linear", algorithm="chunked", n=256, d=8, d_v=8))
    assert counted["chunked"][256] == pytest.approx(row.peak_bytes / 2**20)
    ratio = number(counted["explicit matrix"][512] / counted["chunked"][512])
    states = number(counted["state after every token"][512] / counted["chunked"][512])
    assert f"the n × n matrix takes {ratio} times as much memory as chunks" in spoken(at)
    assert f"Storing the state after every token takes {states} times as much." in spoken(at)


def test_the_gradient_uses_the_feature_map_of_linear_attention(open_view):
    at = open_view("gradient", variants=(ac.get("softmax"), ac.get("linear", feature_map="exp")))
    found = {}
    for name in ("elu+1", "exp"):
        word = ac.get("linear", feature_map=name).word
        [row] = causal_gradient.run(BytesTask(word=word, algorithm="cumsum", n=1024, d=8, d_v=8))
        found[name] = row.peak_bytes / 2**20
    assert found["exp"] != found["elu+1"]
    assert points(at, GRADIENT)["state after every token"][1024] == pytest.approx(found["exp"])


def gradient_bytes(*lengths):
    return [
        BytesRow(algorithm=algorithm, n=n, peak_bytes=times * n * 2**10)
        for n in lengths
        for algorithm, times in ((SUMS, 2), (STATES, 16), (MATRIX, 6))
    ]


APART = [
    DifferenceRow(dtype=dtype, gradient=letter, algorithm=STATES, difference=difference)
    for dtype, letter, difference in (("float32", "q", 2e-7), ("float32", "k", 3e-6), ("float64", "q", 1e-3))
]
DIFFER = "On the input's first 512 tokens, the gradients differ by at most 3 × 10⁻⁶ times their largest entry."


def gradient_text(rows):
    return full_text(gradient_finding(rows, "Linear_2", 16, 600)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_headline_has_the_gradient_at_the_longest_length_up_to_512():
    assert gradient_text([*gradient_bytes(64, 512, 1024), *APART]) == (
        "**To train Linear\\_2, the n × n matrix takes 3 times as much memory as chunks of tokens (512 tokens, head "
        "size 16). Storing the state after every token takes 8 times as much.** In chunks, the forward and the "
        "backward pass each keep one state. Without chunks, PyTorch's autograd stores the state after every token or, "
        "with the explicit matrix, n × n weights. Memory is counted for one head on random inputs, and includes the "
        f"outputs, which grow with n. {DIFFER}"
    )
    assert "(64 tokens, head size 16)" in gradient_text([*gradient_bytes(64), *APART])


def test_the_headline_reports_what_is_known_so_far():
    assert gradient_text(APART) == gradient_text([*gradient_bytes(64)[:2], *APART]) == DIFFER
    assert "differ" not in gradient_text(gradient_bytes(64))
    assert "On the input's first token" in gradient_finding(APART, "Linear", 16, 1).text
