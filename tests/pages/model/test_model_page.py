"""Tests of the Model page without a browser: every view, its text and charts, and its options."""

import re
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from driver import board_settings, charts, lines_of, message, numbers, open_page, points, send, spoken, traces, visit
from no_model import made_up, written
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import StopException

from app.reading_board.reading import Reading, pack
from app.state import presets
from attention_core.experiments import continuation, swap
from attention_core.experiments.swap import ReadingTask
from attention_core.inputs.labels import number_repeats
from attention_core.limits import current
from attention_core.runtime import progress
from pages.model.encoder import SENTENCES
from pages.model.options import DEFAULT_WORDS, display_name, name_in_sentence, short_name

open_model = partial(open_page, "model", m_live=True)
VIEWS = ("text", "copying", "layers", "budget", "predicts")


def board(at):
    """Return the header of the board's message, and the board's settings."""
    [sent] = [c for c in at.get("bidi_component") if c.proto.component_name == "attention_lab_reading"]
    header = message(sent)[0]
    return header, board_settings(at, header["key"])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("text", ["long", "repeats", "own"])
def test_every_view_opens_on_every_kind_of_text_and_names_the_origin(view, text):
    at = open_model(m_view=view, m_text=text)
    assert not at.error
    assert any("Computed on this machine." in c.value for c in at.caption)


def test_the_page_opens_with_a_window_and_a_sink():
    at = visit("model")
    header, settings = board(at)
    assert [row["name"] for row in header["rows"]] == [
        "Original model",
        "Local · window 64",
        "Attention sinks · window 64 · sinks 1",
    ]
    assert [row["short"] for row in header["rows"]] == ["Original model", "Local", "Attention sinks"]
    assert header["columns"] == [
        "Visible tokens (at most)",
        "Perplexity (lower is better)",
        "× original",
        "Copying loss (nats)",
    ]
    assert [row["numbers"] for row in header["rows"]] == [
        ["40", "10", "1", "1.0"],
        ["40", "201", "20.1", "11.0"],
        ["40", "24.6", "2.46", "5.5"],
    ]
    assert header["floor"] == ["Uniform guess over the vocabulary", "0", "49,152", "4,915", "10.8"]
    assert (settings["shown"], settings["baseline"]) == (0, 0)
    text = spoken(at, "caption")
    assert "**With Local, the model can hardly copy a token from 95 tokens back.**" in text
    assert "Replace the attention in all 30 layers of **SmolLM2-135M** (4-bit, not retrained) with:" in text
    assert "Text: “Long” (" in text


def test_names_are_short_unless_two_variants_have_the_same_name():
    words = ("local~window~64", "sink~window~64~sinks~1", "local~window~32")
    assert [short_name(word, words) for word in words] == ["Local · window 64", "Attention sinks", "Local · window 32"]
    assert name_in_sentence(words[0], words) == "Local with window 64"
    assert name_in_sentence(words[0], words[:2]) == name_in_sentence(words[0], ()) == "Local"


def test_losses_on_screen_equal_the_rows():
    header, _ = board(open_model(m_text="story"))
    task = ReadingTask(text=presets.texts()["story"], word=DEFAULT_WORDS[0], layers=tuple(range(30)), detail=True)
    assert header["rows"][1]["losses"] == list(made_up(task).losses)
    assert header["tokens"] == list(made_up(task).labels)


def test_a_selected_token_shows_the_predictions_of_both_models():
    at = open_model(m_token=3, m_shown=1)
    assert "” is 50% in the original model and 0.20% with **Attention sinks with window 64 and 1 sink**." in spoken(at)
    assert (
        "Its attention row changes most in layer 0, head 2. There, 70% of the row's weight moves to other tokens."
        in spoken(at)
    )
    assert list(at.table[-1].value["Original"]) == ["one · 50%", "\\<b\\> · 10%"]
    assert charts(at)


def test_the_selection_of_a_token_does_not_move_the_text():
    before, after = ([each.weight for each in open_model(m_token=token).columns] for token in (None, 3))
    assert before == after
    assert len(before) == 2


@pytest.mark.parametrize("token", [None, 0, 39_00])
def test_the_largest_increases_are_listed_if_no_token_is_selected(token):
    at = open_model(m_token=token)
    assert not charts(at)
    header, _ = board(at)
    worse = np.subtract(header["rows"][1]["losses"], header["rows"][0]["losses"])
    found = at.table[0].value
    assert len(found) == 8
    assert found["Token"].iloc[0] == number_repeats(header["tokens"])[1 + int(worse.argmax())]
    assert list(found.columns) == ["Token", "Original", "Local", "Increase"]
    assert list(found["Increase"]) == [f"{each:+.1f}" for each in sorted(worse, reverse=True)[:8]]
    assert float(found["Local"].iloc[0]) > float(found["Original"].iloc[0])
    assert not open_model(m_words=()).table


def test_a_missing_increase_is_reported(monkeypatch):
    monkeypatch.setattr("pages.model.token_details.increases", lambda *_: [])
    at = open_model()
    assert not at.table
    assert "No token's loss is at least 0.05 nats higher than in the original model." in spoken(at, "caption")


def test_copying_has_a_strip_per_model_with_its_mean_and_ranges():
    at = open_model(m_view="copying")
    [chart] = charts(at)
    assert [each["text"] for each in chart["layout"]["annotations"]] == [
        "Original model: mean loss 1.48 nats",
        "Local · window 64: mean loss 11.5 nats",
        "Attention sinks · window 64 · sinks 1: mean loss 5.98 nats",
    ]
    [strips] = chart["data"]
    cells = np.array(numbers(strips["z"]), float)
    assert cells.shape == (6, swap.PERIOD)  # titles occupy every second row
    assert np.isnan(cells[:, 0]).all(), "the first token has no loss"
    assert np.nanmax(cells) == 1
    assert strips["text"][3][1] == "Local · window 64, token 1: loss 11.01 nats (11.00 to 11.02)"
    assert strips["text"][5][2] == "Attention sinks · window 64 · sinks 1, token 2: loss 5.52 nats (5.51 to 5.53)"
    assert strips["colorbar"]["ticktext"] == ["0", "5", "10.8 (uniform guess)"]
    assert strips["colorbar"]["title"]["text"] == "loss of the repeated token (nats)"
    assert "**With Local, the model can hardly copy a token from 95 tokens back.**" in spoken(at)
    assert "The original model reads 96 random tokens twice and can copy them the second time." in spoken(at)
    assert any("the mean over 3 random sequences" in c.value for c in at.caption)


@pytest.mark.parametrize("edge", ["bottom", "middle", "top"])
def test_layers_show_both_numbers_and_the_original_model(edge):
    at = open_model(m_view="layers", m_edge=edge)
    read, copied = charts(at)
    assert read["layout"]["yaxis"]["title"]["text"] == "perplexity (log scale)"
    assert copied["layout"]["yaxis"]["title"]["text"] == "copying loss (nats per token)"
    found = points(at, 0)
    shown = {*map(display_name, DEFAULT_WORDS), "Original model"}
    assert set(found) == shown
    assert set(points(at, 1)) == shown
    assert sorted(found["Local · window 64"]) == list(map(float, swap.layer_counts(30)))
    assert all(each["layout"]["xaxis"]["tickvals"] == [1, 2, 4, 8, 15, 23, 30] for each in (read, copied))
    # With 1, 2, 4, 8 and 15 layers, the perplexity 10 e^(x/10) first exceeds 15 at 8 layers, and the copying loss
    # 1 + x/2 first exceeds 6 at 15 layers.
    text = spoken(at)
    assert "**With 15 replaced layers, Local loses over half of the ability to copy; with 8, 40%.**" in text
    assert "perplexity first exceeds 1.5 times the original with 8 replaced layers." in text


def test_one_layer_at_a_time_is_two_maps_with_a_cell_for_each_variant_and_layer():
    at = open_model(m_view="layers", m_edge="single")
    for (trace,), sentence in zip(
        (each["data"] for each in charts(at)),
        (
            "perplexity 11.1, 1.11 times that of the original model",
            "copying loss 1.50 nats per token, 1 in the original model",
        ),
        strict=True,
    ):
        cells, notes = np.array(numbers(trace["z"]), float), trace["text"]
        assert cells.shape == (4, 30)  # titles occupy every second row
        assert np.isnan(cells[::2]).all()
        assert np.isfinite(cells[1::2]).all()
        assert f"Local · window 64, layer 7: {sentence}" in notes[1][7]
    titles = [each["text"] for each in charts(at)[0]["layout"]["annotations"]]
    assert titles == [*map(display_name, DEFAULT_WORDS)]
    assert "**With Local, layer 0 matters most: if it alone is replaced, perplexity is 1.11 times " in spoken(at)
    assert (
        "**With Attention sinks, no single replaced layer raises perplexity on this text by more than 4%.**"
        in spoken(at)
    )


def test_the_budget_view_has_a_point_per_budget():
    at = open_model(m_view="budget")
    assert len(charts(at)) == 2
    assert sorted(points(at, 0)["Local"]) == [1, 2, 4, 8, 16, 32, 64, 128, 192]
    assert charts(at)[0]["layout"]["xaxis"]["tickvals"] == [1, 2, 4, 8, 16, 32, 64, 128, 192]
    assert (
        "**With Local and Attention sinks, no tested window is enough to predict or copy text about as well as the "
        "original model.**" in spoken(at)
    )
    assert [at.button(key=f"model.chip.{i}").label for i in (0, 1)] == ["Local", "Attention sinks"]
    distance = "In the copying test, the token to copy is 95 tokens back."
    assert distance in spoken(at, "caption")
    other = open_model(m_view="budget", m_words=("topk~k~8",))
    assert distance not in spoken(other, "caption")
    assert not open_model(m_view="budget", m_words=("linear",)).exception


def test_the_forecast_has_a_rank_correlation_and_a_point_per_budget():
    at = open_model(m_view="predicts")
    assert "rank correlation" in spoken(at)
    assert len(charts(at)) == 2
    assert "Add a variant" in " ".join(i.value for i in open_model(m_view="predicts", m_words=("uniform",)).info)


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_without_replacements_says_so(view):
    at = open_model(m_view=view, m_words=())
    assert not at.error
    assert "Reading the text …" not in spoken(at)


def test_added_changed_and_removed_variants_are_in_the_address():
    at = open_model()
    at.button(key="model.add.uniform").click().run()
    assert at.session_state["m_words"] == (*DEFAULT_WORDS, "uniform")
    assert at.query_params["m_words"] == [*DEFAULT_WORDS, "uniform"]
    at.button(key="model.chip.1").click().run()
    at.select_slider(key="model.knob.1.sink.window").set_value(16).run()
    assert at.session_state["m_words"] == (DEFAULT_WORDS[0], "sink~sinks~1", "uniform")
    at.button(key="model.remove").click().run()
    assert at.session_state["m_words"] == (DEFAULT_WORDS[0], "uniform")


def test_a_setting_that_duplicates_a_variant_is_ignored():
    at = open_model(m_words=("local~window~64", "local~window~32"))
    at.button(key="model.chip.0").click().run()
    at.select_slider(key="model.knob.0.local.window").set_value(32).run()
    assert len(set(at.session_state["m_words"])) == 2


@pytest.mark.parametrize("left", [["local~window~64"], ["local~window~64", "topk"], ["local~window~64", "uniform"]])
def test_a_setting_of_a_removed_variant_is_ignored(left):
    at = open_model(m_words=("local~window~64", "sink~window~64~sinks~1"))
    at.button(key="model.chip.1").click().run()
    at.session_state["m_words"] = tuple(left)
    send(at, **{"model.knob.1.sink.window": ["16"]})
    assert at.session_state["m_words"] == tuple(left)


def test_removing_a_variant_twice_removes_only_that_variant():
    at = open_model(m_words=("local~window~64", "sink~window~64~sinks~1", "topk"))
    at.button(key="model.chip.1").click().run()
    at.session_state["m_words"] = ("local~window~64", "topk")
    at.button(key="model.remove").click().run()
    assert at.session_state["m_words"] == ("local~window~64", "topk")


def test_variants_can_be_added_up_to_the_limit(monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_PROFILE", "hosted")
    at = open_model(m_words=(*DEFAULT_WORDS, "linear", "uniform", "topk~k~8"))
    assert not any(button.key and button.key.startswith("model.add") for button in at.button)
    assert any("At most 5 variants." in c.value for c in at.caption)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ({"m_words": ["nystrom"]}, "m_words"),
        ({"m_words": ["locl"]}, "m_words"),
        ({"m_layers": ["3-40"]}, "m_layers"),
        ({"m_layers": ["x"]}, "m_layers"),
        ({"m_text": ["nowhere"]}, "m_text"),
    ],
)
def test_a_link_that_does_not_fit_is_named(link, expected):
    at = visit("model", link)
    assert expected in at.warning[0].value


def test_layers_of_a_link_are_those_replaced():
    at = visit("model", {"m_layers": ["10-20"], "m_live": ["1"]})
    assert "the attention in layers 10 to 20 of **SmolLM2-135M**" in spoken(at, "caption")
    assert "attention in layer 7 of" in spoken(visit("model", {"m_layers": ["7"], "m_live": ["1"]}), "caption")


def test_an_empty_text_is_reported(monkeypatch):
    monkeypatch.undo()
    at = open_model(m_text="own", text="  ")
    assert any("The text is empty" in i.value for i in at.info)
    assert "Reading the text …" not in spoken(at)


def test_typed_text_is_never_markup():
    at = open_model(m_text="own", text="one **zq** [zq](f) $zq$ <a href=x> five six", m_token=3)
    assert not [
        m.value for m in at.markdown if m.value.startswith("P(") and ("**zq" in m.value or "[zq](f)" in m.value)
    ]
    header, _ = board(at)
    assert header["tokens"][1] == "**zq**"  # The browser inserts it as text.


def test_the_board_refuses_losses_of_another_text():
    other = Reading(name="X", short="X", numbers=["1"], losses=[1.0, 2.0])
    with pytest.raises(ValueError, match="2 losses for 5 tokens"):
        pack("abcde", other, [], ["n"], key="k")


def test_the_encoder_has_one_row_per_sentence_and_a_point_per_model():
    at = open_model(m_view="encoder")
    assert "What happens to the sentence model MiniLM-L6 when you replace its attention?" in spoken(at)
    assert set(traces(at)) == {"Original model", "Local · window 2", "Linear", "Nyström · landmarks 8"}
    assert all(trace["showlegend"] for trace in traces(at).values())
    axis = charts(at)[0]["layout"]["yaxis"]
    assert axis["tickvals"] == [-i for i in range(1, 11)]
    assert {each.replace("<br>", " ") for each in axis["ticktext"]} == set(SENTENCES)
    for name, trace in traces(at).items():
        similarities, places = lines_of(at)[name]
        assert places == axis["tickvals"]
        notes = [re.match("(.*)<br>similarity (.*), rank (.*)", each).groups() for each in trace["customdata"]]
        assert [each for each, _, _ in notes] == [each.replace("<br>", " ") for each in axis["ticktext"]]
        by_rank = sorted(range(10), key=lambda i, notes=notes: int(notes[i][2]))
        assert by_rank == sorted(range(10), key=lambda i, values=similarities: -values[i])
    as_it_is = lines_of(at)["Original model"][0]
    assert as_it_is == sorted(as_it_is, reverse=True)
    rings = {name: trace["marker"]["symbol"].endswith("-open") for name, trace in traces(at).items()}
    assert [name for name, is_ring in rings.items() if is_ring] == ["Original model"]
    assert "Kendall's τ" in spoken(at, "caption")
    assert "Replace the attention in all 6 layers of **MiniLM-L6** with:" in spoken(at)
    some = open_model(m_view="encoder", m_encoder_layers=(1, 5))
    assert "in layers 1 to 5 of **MiniLM-L6** with:" in spoken(some, "caption")
    labels = [block.proto.popover.label for each in (at, some) for block in each.get("popover")]
    assert {"All 6 layers", "Layers 1 to 5"} <= set(labels)
    assert any(
        "No replacement for softmax is chosen yet." in i.value for i in open_model(m_view="encoder", m_encoders=()).info
    )


def test_the_encoder_accepts_variants_without_causal_form():
    at = open_model(m_view="encoder", m_query="a key")
    at.selectbox(key="model.any").set_value("landmark").run()
    assert at.session_state["m_encoders"][-1] == "landmark"
    assert "m_words" not in at.query_params
    at = open_model(m_view="encoder", m_query=" ")
    assert any("The text is empty" in i.value for i in at.info)


def test_continuations_are_bold_after_the_divergence():
    at = open_model(m_view="continuation")
    text = spoken(at)
    assert "**With Local, the most likely text equals the original model's up to token 1 of 4.**" in text
    assert "**With Attention sinks, the most likely text equals the original model's.**" in text
    nothing = open_model(m_view="continuation", m_words=())
    assert "No replacement for softmax is chosen yet." in spoken(nothing)
    assert "Softmax is replaced" not in spoken(nothing, "caption")
    found = at.table[0].value.set_index("Model")
    assert "… 1 **4 \\$5\\$ \\[6\\](7)**" in found.loc["Local · window 64", "Most likely tokens"]
    assert "… 1 \\<2\\> \\*\\*3\\*\\* ↵" in found.loc["Original model", "Most likely tokens"]
    assert all(found["Sampled tokens (same seed)"])
    assert found["Cache"].tolist() == ["2.0 KiB"] * 3


@pytest.mark.parametrize(("limit", "shown"), [(8, True), (7, False)])
def test_the_end_of_a_text_is_shown_unless_the_text_may_be_cut(monkeypatch, limit, shown):
    monkeypatch.setattr("pages.model.continuation.current", lambda: replace(current(), swap_tokens=limit))
    at = open_model(m_view="continuation", m_text="own", text="one two three")
    assert ("The text ends: “one two three” Each model continues it." in spoken(at)) == shown


def test_a_continuation_reports_progress_and_resumes_after_stop(monkeypatch):
    sentence, asked, broken = [], [], threading.Event()

    def slowly(task, *, load):
        asked.append(task)
        if len(asked) == 3 and not broken.is_set():
            progress.step(7, 20)
            assert broken.wait(20)  # Wait until the page has shown the progress.
            raise StopException  # raised by Streamlit when the visitor presses a button
        return written(task)

    def draw(self, share, text, **_layout):
        sentence.append((share, text))
        if "step " in text:
            broken.set()

    monkeypatch.setattr(continuation, "run", slowly)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaGenerator, "progress", draw)
        at = open_model(m_view="continuation")
    [(share, texts)] = [each for each in sentence if "step " in each[1]]
    assert share == pytest.approx((2 + 7 / 20) / 6)
    assert texts == "2 of 6 results · step 7 of 20 · about 0 s left"
    at.button(key="model.continuation.switch").click().run()
    assert "Stopped after 2 of 6 results" in [bar.proto.text for bar in at.get("progress")]
    assert len(asked) == 3, "nothing more is asked for"
    at.button(key="model.continuation.switch").click().run()
    assert not at.get("progress")
    assert len(at.table[0].value) == 3
