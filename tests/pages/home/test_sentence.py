"""Tests of Home's sentence: the browser receives the computed numbers, and bad input leads to a message."""

from functools import partial
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from driver import board_settings, message, open_page, spoken, visit

import attention_core as ac
from app.live_sentence import SentenceState
from app.live_sentence.sentence import Row, pack
from app.state import presets
from app.state.session import read_text, write_text
from attention_core.analysis.matrix.budgets import compare_budgets
from attention_core.analysis.matrix.compare import compare
from attention_core.inputs.source import TextSource
from pages.home import sentence
from pages.home.options import HomeOptions

SHORT = "the cat saw the dog"
LONG = "The keys were lying on the old piano when the library opened. " * 5


def sent(at):
    """Return the header, each row's matrices and the settings that the browser receives."""
    [numbers] = [c for c in at.get("bidi_component") if c.proto.component_name == "attention_lab_sentence"]
    header, payload = message(numbers)
    n, found = len(header["tokens"]), {}
    for row in header["rows"]:
        size = 2 * len(row["settings"]) * n * n
        found[row["key"]] = np.frombuffer(payload[:size], "<f2").astype(float).reshape(-1, n, n)
        payload = payload[size:]
    assert not payload
    return header, found, board_settings(at, "home.sentence")


def page_and_query(settings):
    """Return the page and the query of the button's link, without the browser's additions."""
    address = urlsplit(settings["link"])
    return address.path, parse_qs(address.query)


@pytest.fixture(scope="module")
def first():
    return sent(open_page("home"))


def test_all_slider_steps_are_sent_in_advance(first):
    header, matrices, _settings = first
    qkv = ac.inputs.from_text(presets.SENTENCE, layer=presets.SENTENCE_LAYER)
    assert list(matrices) == ["softmax", "local", "linear", "nystrom"]
    for row in header["rows"]:
        for word, matrix, error in zip(row["variant_words"], matrices[row["key"]], row["errors"], strict=True):
            alone = compare(qkv, ac.from_word(word), head=presets.SENTENCE_HEAD, causal=False, special=False)
            np.testing.assert_allclose(matrix, alone.weights, atol=1e-3)
            [own] = compare_budgets(qkv, (ac.from_word(word),), head=presets.SENTENCE_HEAD).variants[:1]
            at = own.attentions.index(ac.from_word(word))
            np.testing.assert_allclose(error, own.output_errors[at], atol=1e-4)
    assert [row["settings"] for row in header["rows"]] == [[None], [*range(1, 15)], [None], [*range(1, 16)]]


@pytest.mark.parametrize("text", [presets.SENTENCE, SHORT])
def test_the_texts_explain_the_numbers(text):
    header, _matrices, settings = sent(open_page("home", sentence=text))
    qkv, texts = ac.inputs.from_text(text, layer=presets.SENTENCE_LAYER), settings["texts"]
    for row in header["rows"]:
        for word, growth in zip(row["variant_words"], row["growths"], strict=True):
            costs = [ac.from_word(word).cost(n, qkv.q.shape[-1], heads=qkv.heads) for n in (16_384, 8192)]
            assert growth == pytest.approx(costs[0].multiply_adds / costs[1].multiply_adds)
    assert texts["headings"] == ["output error\nof “{word}”", "cost if the\ntext doubles"]
    head = f"layer {presets.SENTENCE_LAYER}, head {presets.SENTENCE_HEAD}"
    assert texts["caption"] == (
        f"The weights are those of MiniLM-L6, {head}. The model also adds [CLS] at the start and [SEP] at the end."
    )
    error, cost, *_, length = texts["notes"]
    assert error.startswith("The output error of a word is the difference from softmax's output for this word")
    assert "compared at 16,384 and 8,192 tokens" in cost
    assert f"at most {presets.SENTENCE_TOKENS} tokens," in length
    chosen = "This head was chosen because it links “it” to “animal”. Other heads differ."
    assert (chosen in texts["notes"]) == (text == presets.SENTENCE)
    assert [row["title"] for row in header["rows"]] == ["Softmax", "Local", "Linear", "Nyström"]


def test_the_first_visit_sends_little_data(first):
    _header, matrices, _settings = first
    assert sum(each.size for each in matrices.values()) * 2 < 12_000


def test_the_initial_word_attends_to_a_word_that_the_window_cuts_off(first):
    header, matrices, settings = first
    assert header["tokens"][settings["word"]] == "it"
    row = matrices["softmax"][0, settings["word"]]
    assert header["tokens"][int(row.argmax())] == "animal"
    window = matrices["local"][settings["steps"]["local"], settings["word"]]
    assert np.isnan(window[int(row.argmax())]), "there is something to drag the window for"


def test_a_link_sets_sentence_word_and_budgets_for_the_button():
    link = {
        "sentence": write_text(SHORT),
        "word": ["3"],
        "window": ["2"],
        "landmarks": ["5"],
        "n": ["20"],
        "causal": ["1"],
    }
    header, _matrices, settings = sent(visit("home", link))
    assert header["tokens"] == SHORT.split()
    assert (settings["word"], settings["row_parameter"]) == (3, "row")
    steps = {row["key"]: row["variant_words"][settings["steps"][row["key"]]] for row in header["rows"]}
    assert list(steps.values()) == ["softmax", "local~window~2", "linear", "nystrom~landmarks~5"]
    page, query = page_and_query(settings)
    assert page == "matrices"
    assert read_text(query.pop("text")) == SHORT
    place = {"layer": [str(presets.SENTENCE_LAYER)], "head": [str(presets.SENTENCE_HEAD)], "special": ["0"]}
    assert query == place | {"n": ["20"]}, (
        "with what else the visitor has set, but for the variants and the causal switch"
    )


def test_budgets_beyond_a_sentence_become_the_nearest():
    header, _matrices, settings = sent(open_page("home", sentence="two words", window=30, landmarks=40))
    steps = {row["key"]: row["settings"][settings["steps"][row["key"]]] for row in header["rows"]}
    assert steps == {"softmax": None, "local": 3, "linear": None, "nystrom": 4}


def test_a_word_beyond_the_sentence_is_ignored():
    at = visit("home", {"sentence": write_text(SHORT), "word": ["9"]})
    assert "For `word`, the page uses no value" in " ".join(each.value for each in at.warning)
    assert sent(at)[2]["word"] < 5


def test_changes_in_the_browser_update_the_state(monkeypatch):
    found, taken = compare_budgets(ac.inputs.from_text(SHORT), sentence.VARIANTS, head=0), {}
    for name in ("word", "window", "landmarks"):
        monkeypatch.setattr(getattr(HomeOptions, name), "set", partial(taken.__setitem__, name))
    sentence._set_state(found, SentenceState(2, {"softmax": 0, "local": 3, "linear": 0, "nystrom": 6}))
    assert taken == {"word": 2, "window": 4, "landmarks": 7}


@pytest.mark.parametrize(
    ("typed", "expected"), [("", "The text is empty"), (" \t ", "The text is empty"), ("cat", "at least two words")]
)
def test_invalid_sentences_are_reported_and_keep_the_text(typed, expected):
    at = open_page("home", sentence=typed)
    [error] = at.error
    assert expected in error.value
    assert at.text_input(key="sentence").value == typed
    assert "All variants" in spoken(at)
    at = at.button(key="home.example").click().run()
    assert not at.error
    assert at.text_input(key="sentence").value == presets.SENTENCE
    assert sent(at)[2]["word"] == sent(open_page("home"))[2]["word"]


def test_long_texts_are_cut_but_keep_the_typed_text():
    at = open_page("home", sentence=LONG)
    header, _matrices, settings = sent(at)
    assert at.text_input(key="sentence").value == LONG
    assert "Only the beginning of the text" in spoken(at, "caption")
    shown = read_text(page_and_query(settings)[1]["text"])
    assert LONG.startswith(shown)
    assert list(ac.inputs.from_text(shown).tokens[1:-1]) == header["tokens"], "the matrices are of the very same text"
    assert presets.SENTENCE_TOKENS - 5 <= len(header["tokens"]) <= presets.SENTENCE_TOKENS - 2
    assert "Only the beginning of the text" not in spoken(open_page("home", sentence=SHORT), "caption")


def test_a_new_sentence_resets_the_word():
    at = open_page("home", word=2)
    at.text_input(key="sentence").set_value("my sister forgot her old umbrella").run()
    assert at.session_state["word"] is None


def test_unreadable_text_is_reported():
    assert "by the unknown token" in spoken(open_page("home", sentence="图书管理员丢了钥匙"), "caption")


def test_a_second_visitor_with_the_same_sentence_computes_nothing(monkeypatch):
    open_page("home", sentence=SHORT)
    monkeypatch.setattr(TextSource, "load", lambda *_: pytest.fail("the model reads it again"))
    monkeypatch.setattr(ac.Attention, "weights", lambda *_, **__: pytest.fail("a matrix is computed again"))
    assert sent(open_page("home", sentence=SHORT))[0]["tokens"] == SHORT.split()


def test_rows_that_do_not_fit_the_sentence_are_refused():
    row = Row(
        key="softmax",
        title="Softmax",
        knob="",
        note="",
        settings=[None],
        variant_words=["softmax"],
        weights=np.ones((1, 3, 3)),
        errors=[[0.0] * 3],
        growths=[4.0],
    )
    assert pack(["a", "b", "c"], [row], key="k")
    with pytest.raises(ValueError, match="2 tokens"):
        pack(["a", "b"], [row], key="k")
