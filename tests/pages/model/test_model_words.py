"""Tests of the Model page's sentences, on each side of each branch."""

import dataclasses
import math
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace

import pytest

from app.figures.lines.curve import Curve
from app.words.finding import MAX_LINES, Finding, text_above, text_below
from app.words.i18n import paragraph
from attention_core.experiments import swap
from attention_core.experiments.continuation import ContinuationRow
from attention_core.experiments.embedding import EmbeddingRow
from attention_core.experiments.swap import CopyRow, ReadingRow, derived
from attention_core.experiments.swap.derived import CurvePoint, ErrorPoint, Score
from attention_core.formatting import number
from attention_core.model_patching import UNIFORM
from pages.model import budget, continuation, copying, encoder, forecast, layers, reading, sweep, token_details, words
from pages.model.options import display_name, layers_text, tokens_text

AS_IT_IS = Score(name="As it is", perplexity=20.0, copied=1.0, first=11.0)
WORKS = "**Copying still works with A (loss 1 nats, 1 in the original model).**"
TEST = " The copying loss (last column) is the mean loss when the model reads 96 random tokens a second time."


def explained(describe, *args):
    """Return the text of the findings that ``describe`` returns: line by line, each followed by its explanation."""
    found = describe(*args)
    for each in chain(*found):
        assert "**" not in each.explanation, "bold findings are not explanations"
        assert not each.text or each.text.count("**") == 2, "a finding has no explanation in its text"
    return "  \n".join(paragraph(*(paragraph(each.text, each.explanation) for each in line)) for line in found)


def test_explanations_and_findings_without_room_are_below_the_figure():
    lines = [[Finding(f"Finding {i}.", f"Reason {i}."), Finding(f"Also {i}.")] for i in range(MAX_LINES)]
    above = "Finding 0. Also 0.  \nFinding 1. Also 1."
    reasons = "Reason 0. Reason 1."
    assert (text_above(lines), text_below(lines)) == (above, reasons)
    assert text_below(lines, as_list=True) == "- Reason 0.\n- Reason 1."
    assert text_below(lines[:1], as_list=True) == "Reason 0."
    more = [*lines, [Finding("Last.", "Last reason.")]]
    assert (text_above(more), text_below(more)) == (above, f"{reasons} Last. Last reason.")
    assert text_below(more, as_list=True) == "- Reason 0.\n- Reason 1.\n- Last. Last reason."
    assert text_above([[Finding("", "Reason.")]]) == text_below([[Finding("Only.")]]) == text_above([]) == ""


def little(*names, copied="10"):
    """Return the sentence about variants whose loss falls from 11 to ``copied`` nats at a repetition."""
    effects = (f"helps little with {name} (loss 11, then {copied} nats)" for name in names)
    return f" The repetition {', and '.join(effects)}."


def scores(*pairs):
    """Return the scores of variants A, B, … with these perplexities and copying losses."""
    return [Score(name=name, perplexity=p, copied=c, first=11.0) for name, (p, c) in zip("ABCDE", pairs, strict=False)]


@pytest.mark.parametrize(
    ("perplexity", "expected"),
    [
        (20.0, "**On this text, perplexity changes by at most 5% with A.**"),
        (20.9, "**On this text, perplexity changes by at most 5% with A.**"),
        (21.1, "**On this text, perplexity rises with A, from 20 to 21.1.**"),
        (40.0, "**On this text, perplexity rises with A, from 20 to 40.**"),
        (40.04, "**On this text, perplexity rises with A, from 20 to 40.0.**"),
        (40.1, "**On this text, perplexity more than doubles with A, from 20 to 40.1.**"),
        (60.0, "**On this text, perplexity more than doubles with A, from 20 to 60.**"),
        (60.1, "**On this text, perplexity more than triples with A, from 20 to 60.1.**"),
        (200.0, "**On this text, perplexity more than triples with A, from 20 to 200.**"),
        (201.0, "**On this text, perplexity grows more than tenfold with A, from 20 to 201.**"),
        (2000.0, "**On this text, perplexity grows more than tenfold with A, from 20 to 2,000.**"),
        (2010.0, "**On this text, perplexity grows more than a hundredfold with A, from 20 to 2,010.**"),
        (19.1, "**On this text, perplexity changes by at most 5% with A.**"),
        (19.0, "**On this text, perplexity falls with A, from 20 to 19.**"),
        (10.0, "**On this text, perplexity falls with A, from 20 to 10.**"),
    ],
)
def test_the_perplexity_is_described_before_copying(perplexity, expected):
    assert explained(words.describe_effects, AS_IT_IS, scores((perplexity, 1.0))) == f"{expected}  \n{WORKS}{TEST}"


@pytest.mark.parametrize(
    ("copied", "expected"),
    [
        (1.0, "**Copying still works with A (loss 1 nats, 1 in the original model).**"),
        (2.9, "**Copying still works with A (loss 2.90 nats, 1 in the original model).**"),
        (3.1, "**Copying a token from 95 tokens back gets worse with A.**"),
        (8.9, "**Copying a token from 95 tokens back gets worse with A.**"),
        (9.1, "**With A, the model can hardly copy a token from 95 tokens back.**"),
    ],
)
def test_the_effects_on_copying(copied, expected):
    repetition = little("A", copied="9.10") if "hardly" in expected else ""
    assert explained(words.describe_copying, AS_IT_IS, scores((9.0, copied))) == f"{expected}{repetition}"


@pytest.mark.parametrize(
    ("first", "copied", "effect"),
    [
        (11.0, 11.2, "does not help"),
        (11.0, 10.95, "does not help"),
        (11.0, 10.8, "helps little"),
        (12.0, 10.1, "helps little"),
        (12.0, 9.9, "helps only partly"),
    ],
)
def test_the_help_of_a_repetition_depends_on_the_fall_of_the_loss(first, copied, effect):
    """Check both sides of 1% and 20% of the 10 nats by which a repetition lowers the original model's loss."""
    score = Score(name="A", perplexity=9.0, copied=copied, first=first)
    text = explained(words.describe_copying, AS_IT_IS, [score])
    assert f" The repetition {effect} with A (loss {number(first, 3)}, then {number(copied, 3)} nats)." in text


@pytest.mark.parametrize(
    ("copied", "names"), [((10.7, 10.7), ""), ((10.9, 10.7), "A"), ((10.7, 10.9), "B"), ((10.9, 10.9), "both variants")]
)
def test_a_loss_above_that_of_a_uniform_guess_is_explained(copied, names):
    text = explained(words.describe_copying, AS_IT_IS, scores(*((9.0, loss) for loss in copied)))
    expected = (
        f"With {names}, the loss is higher than that of a uniform guess (10.8 nats), because the model is confident in "
        "wrong tokens."
    )
    assert (expected in text) == bool(names)
    assert ("uniform guess" in text) == bool(names)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ((10, 10), f"**With both variants, the model can hardly copy a token from 95 tokens back.**{TEST}"),
        ((10, 10, 10), f"**With all 3 variants, the model can hardly copy a token from 95 tokens back.**{TEST}"),
        (
            (10, 5, 1),
            f"**With A, the model can hardly copy a token from 95 tokens back.**{TEST} **Copying a token "
            "from 95 tokens back gets worse with B.** **Copying still works with C (loss 1 nats, 1 in the original "
            "model).**",
        ),
        (
            (10, 1, 10),
            f"**With A and C, the model can hardly copy a token from 95 tokens back.**{TEST} "
            "**Copying still works with B (loss 1 nats, 1 in the original model).**",
        ),
    ],
)
def test_variants_with_the_same_effect_on_copying_share_a_sentence(losses, expected):
    assert explained(words.describe_effects, AS_IT_IS, scores(*((40, loss) for loss in losses))).endswith(
        f" with {chr(64 + len(losses))}, from 20 to 40.**  \n{expected}"
    )


def test_many_variants_are_summarised_by_the_best_and_the_worst():
    many = scores((40, 10), (20, 10.5), (200, 10.1), (30, 10))
    losses = "The mean loss of a copied token is 10 to 10.5 nats, instead of 1 in the original model."
    assert explained(words.describe_effects, AS_IT_IS, many) == (
        "**On this text, perplexity is lowest with B (20) and highest with C (200).**  \n"
        f"**With all 4 variants, the model can hardly copy a token from 95 tokens back.**{TEST}"
    )
    same = scores(*[(35.1, 10)] * 3, (35.14, 10))
    text = explained(words.describe_effects, AS_IT_IS, same)
    assert "**On this text, perplexity is 35.1 with all 4 variants.**" in text
    loss = "The mean loss of a copied token is 10 nats, instead of 1 in the original model."
    assert loss in explained(words.describe_copying, AS_IT_IS, same)
    assert (
        explained(words.describe_copying, AS_IT_IS, many)
        == f"**With all 4 variants, the model can hardly copy a token from 95 tokens back.** {losses}"
    )
    assert explained(words.describe_effects, AS_IT_IS, many[:3]).startswith(
        "**On this text, perplexity rises with A, from 20 to 40, and changes by at most 5% with B, and "
    )


def test_a_pattern_that_covers_the_whole_text_cannot_change_its_perplexity():
    rows = [reading_row(20.0), reading_row(20.0, layers=(0,)), dataclasses.replace(COPY, word="w", layers=(0,))]
    for tokens, window, covered in ((63, 62, True), (63, 61, False), (1, 1, True)):
        word = f"local~window~{window}"
        own = [dataclasses.replace(row, word=word) for row in rows[1:]]
        own[0] = dataclasses.replace(own[0], tokens=tokens)
        found = derived.score("X", word, (0,), own)
        assert found.covered == (tokens if covered else 0)
        assert ("no token of this text is hidden" in explained(words.describe_effects, AS_IT_IS, [found])) == covered
    both = [replace(found, name=name, covered=n) for name, n in (("A", 1), ("B", 1), ("C", 0))]
    same = "**On this text, perplexity {}does not change with {}, because no token of this text is hidden.**"
    assert same.format("", "both variants") in explained(words.describe_effects, AS_IT_IS, both[:2])
    assert same.format("changes by at most 5% with C, and ", "A and B") in explained(
        words.describe_effects, AS_IT_IS, both
    )
    assert not derived.attends_to_all("linear", 63), "its weights differ from softmax's although it attends to all"
    assert not derived.attends_to_all("uniform", 63)


@pytest.mark.parametrize("n", [5, 40, 300])
@pytest.mark.parametrize(
    ("word", "reach", "sinks"),
    [("local~window~8", 8, 0), ("sink~window~16~sinks~2", 15, 2), ("local~window~128", 128, 0)],
)
def test_hidden_tokens_are_counted(word, reach, sinks, n):
    pairs = [(i, j) for i in range(n) for j in range(i + 1)]
    hidden = [(i, j) for i, j in pairs if i - j > reach and j >= sinks]
    found = derived.hidden_pairs(word, n)
    assert found.share == pytest.approx(len(hidden) / len(pairs))
    assert found.without_first == pytest.approx(sum(j == 0 for _, j in hidden) / n)
    assert found.hides_copied == (reach < swap.PERIOD - 1)
    assert found.layers_to_copy == -(-(swap.PERIOD - 1) // reach)
    assert found.max_keys == min(n, reach + 1 + sinks)
    assert found.window == int(word.split("~")[2])
    assert found.from_token == (1 + hidden[0][0] if hidden else n)
    assert derived.hidden_pairs("linear", n) is derived.hidden_pairs("uniform", n) is None


def test_a_pattern_that_never_connects_the_copies_has_no_relay():
    """Check strides of 2, which reach even distances only, while the token to copy is at an odd distance."""
    found = derived.hidden_pairs("atrous~stride~2", 40)
    assert found.layers_to_copy is found.window is None
    assert found.max_keys == 20


@pytest.mark.parametrize(
    ("word", "perplexity", "expected"),
    [
        ("local~window~8", 9.0, "9"),
        ("local~window~8", math.nan, "…"),
        ("linear", 9.0, "40"),
        (UNIFORM, 9.0, "40"),
        ("topk~k~8", 9.0, "–"),
    ],
)
def test_the_number_of_visible_tokens(word, perplexity, expected):
    found = Score(name="A", perplexity=perplexity, copied=1.0, first=1.0, hidden=derived.hidden_pairs(word, 40))
    assert reading.visible_tokens(word, found, 40) == expected


def test_hidden_tokens_explain_a_perplexity_and_a_lost_copy():
    hidden = derived.HiddenPairs(
        share=0.614, max_keys=65, window=64, without_first=0.8, hides_copied=True, layers_to_copy=2, from_token=66
    )
    blind, sink = (Score(name="A", perplexity=40, copied=9.1, first=11.0, hidden=h, layers=30) for h in (hidden, None))
    sink = dataclasses.replace(sink, name="B", hidden=dataclasses.replace(hidden, without_first=0.0))
    far = dataclasses.replace(sink, hidden=dataclasses.replace(hidden, without_first=0.0, hides_copied=False))
    far_back = " The token to copy lies outside the window of 64."
    cause = f"{far_back} A chain of 2 layers could pass it on, but the model was not trained for this."
    repetition = little("A", "B", copied="9.10")
    assert explained(words.describe_effects, AS_IT_IS, [blind, sink]) == (
        "**On this text, perplexity rises with A, from 20 to 40, and rises with B, from 20 to 40.** With A, 61% of the "
        "query–key pairs are hidden, and 80% of the queries do not see the first token. With B, 61% of the query–key "
        "pairs are hidden, but not the first token.  \n"
        f"**With both variants, the model can hardly copy a token from 95 tokens back.**{TEST}"
    )
    failing = "**With both variants, the model can hardly copy a token from 95 tokens back.**"
    assert explained(words.describe_copying, AS_IT_IS, [blind, sink]) == f"{failing}{repetition}{cause}"
    assert explained(words.describe_copying, AS_IT_IS, [blind, far]) == (
        f"{failing}{repetition} With A, most queries of a replaced layer cannot attend to the token to copy."
    )
    assert explained(words.describe_copying, AS_IT_IS, [far]).endswith(" nats).")
    seen = dataclasses.replace(sink, perplexity=22.0)
    for group in ([blind, seen], [seen, blind]):
        assert explained(words.describe_effects, AS_IT_IS, group) == (
            "**On this text, perplexity rises with a window of 64 tokens, from 20 to 40.**  \n"
            "**If the first token (an attention sink) replaces the farthest one, perplexity rises only to 22.** "
            "Both variants see at most 65 tokens. With A, these are the query's token and the 64 before it. In many "
            "heads, queries without a relevant key put their weight on "
            "the first token. With A, this token is hidden, so the weight goes to other tokens.  \n"
            f"{failing}{TEST}"
        )
    for blind_part, seen_part in (
        ({"window": None}, {"window": None}),
        ({}, {"window": 63}),
        *[({"max_keys": 66},) * 2],
    ):
        pair = [
            dataclasses.replace(each, hidden=dataclasses.replace(each.hidden, **part))
            for each, part in ((blind, blind_part), (seen, seen_part))
        ]
        assert explained(words.describe_effects, AS_IT_IS, pair).startswith(
            "**On this text, perplexity rises with A, from 20 to 40.**  \n"
            "**With B, where queries also see the first token (an attention sink), perplexity rises only to 22.** "
            f"Both variants see at most {pair[0].hidden.max_keys} tokens. In many heads"
        )
    for perplexity, is_remedy in ((40.0, True), (40.1, False)):
        pair = [dataclasses.replace(blind, perplexity=80.0), dataclasses.replace(seen, perplexity=perplexity)]
        assert ("perplexity rises only to" in explained(words.describe_effects, AS_IT_IS, pair)) == is_remedy
    less = dataclasses.replace(hidden, share=0.5, without_first=0.0)
    for other in (
        dataclasses.replace(seen, perplexity=21.0),  # not a rise
        dataclasses.replace(seen, perplexity=50.0),  # a larger rise
        dataclasses.replace(seen, hidden=dataclasses.replace(seen.hidden, without_first=0.01)),
        dataclasses.replace(seen, hidden=hidden),
        dataclasses.replace(seen, hidden=less),
        dataclasses.replace(seen, hidden=dataclasses.replace(seen.hidden, share=0.6141)),  # also rounded to 61%
        dataclasses.replace(seen, hidden=dataclasses.replace(seen.hidden, max_keys=66)),
        dataclasses.replace(seen, hidden=None),
    ):
        assert explained(words.describe_effects, AS_IT_IS, [blind, other]).startswith(
            "**On this text, perplexity rises with A, from 20 to 40, and "
        )
    assert explained(words.describe_effects, AS_IT_IS, [blind, seen, far]).startswith(
        "**On this text, perplexity rises with A, from 20 to 40, and "
    )
    worse = dataclasses.replace(blind, copied=5.0)
    assert explained(words.describe_copying, AS_IT_IS, [worse]) == (
        f"**Copying a token from 95 tokens back gets worse with A.**{cause}"
    )
    never = dataclasses.replace(blind, hidden=dataclasses.replace(hidden, layers_to_copy=None))
    for group in ([never], [never, dataclasses.replace(blind, name="B")]):
        assert explained(words.describe_copying, AS_IT_IS, group).endswith(f" nats).{far_back}")
    wide = dataclasses.replace(never, name="B", hidden=dataclasses.replace(never.hidden, window=32))
    stride = dataclasses.replace(never, hidden=dataclasses.replace(never.hidden, window=None))
    for group in ([never, wide], [stride], [stride, wide]):
        text = explained(words.describe_copying, AS_IT_IS, group)
        assert text.endswith(" nats). Most queries cannot attend to the token to copy.")
    same = dataclasses.replace(blind, perplexity=20.0, copied=1.0)
    assert explained(words.describe_effects, AS_IT_IS, [same]) == (
        f"**On this text, perplexity changes by at most 5% with A.**  \n{WORKS}{TEST}"
    )
    assert reading.uncoloured_note(blind) == (
        "The first 66 tokens have no colour, because the mask hides no token before them."
    )
    one = dataclasses.replace(blind, hidden=dataclasses.replace(hidden, from_token=1))
    assert reading.uncoloured_note(one) == (
        "The first token has no colour, because there is no earlier token from which the model could predict it."
    )
    assert reading.uncoloured_note(AS_IT_IS) == ""


@pytest.mark.parametrize(
    ("replaced", "chain", "window", "expected"),
    [
        (30, 30, 64, "The token to copy lies outside the window of 64. A chain of 30 layers could pass it on, but"),
        (30, 31, 64, "The token to copy lies outside the window of 64."),
        (
            2,
            2,
            64,
            "In the replaced layers, the token to copy lies outside the window of 64. A chain of 2 layers could pass",
        ),
        (1, 2, 64, "In the replaced layer, the token to copy lies outside the window of 64."),
        (30, None, None, "Most queries cannot attend to the token to copy."),
        (2, None, None, "In the replaced layers, most queries cannot attend to the token to copy."),
        (1, None, None, "In the replaced layer, most queries cannot attend to the token to copy."),
    ],
)
def test_a_chain_of_layers_has_at_most_the_replaced_layers(replaced, chain, window, expected):
    hidden = derived.HiddenPairs(
        share=0.6, max_keys=65, window=window, without_first=0.8, hides_copied=True, layers_to_copy=chain, from_token=66
    )
    blind = Score(name="A", perplexity=40, copied=9.1, first=11.0, hidden=hidden, layers=replaced)
    text = explained(words.describe_copying, AS_IT_IS, [blind])
    assert text.startswith(
        f"**With A, the model can hardly copy a token from 95 tokens back.**{little('A', copied='9.10')} {expected}"
    )
    assert ("A chain of" in text) == ("A chain of" in expected)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        (
            {"A": [1.4, 1.78, 1.5], "B": [0.997, 1.01, 1.0]},
            "On 3 other texts, perplexity rises by 40% to 78% with A, and changes by at most 1% with B.",
        ),
        (
            {"A": [1.06], "B": [1.001, 1.004]},
            "On 1 other text, perplexity rises by 6% with A. On 2 other texts, perplexity changes by at most 1% with "
            "B.",
        ),
        ({"A": [], "B": [0.96]}, "On 1 other text, perplexity changes by at most 4% with B."),
        ({"A": [0.8, 0.95]}, "On 2 other texts, perplexity falls by 5% to 20% with A."),
        ({"A": [0.8, 1.01]}, "On 2 other texts, perplexity changes by −20% to +1% with A."),
        ({"A": [1.01, 1.4]}, "On 2 other texts, perplexity rises by 1% to 40% with A."),
        ({"A": [0.96, 1.002]}, "On 2 other texts, perplexity changes by at most 4% with A."),
        ({"A": [1.0, 1.0]}, "On 2 other texts, perplexity changes by at most 1% with A."),
        ({"A": [1.021]}, "On 1 other text, perplexity changes by at most 3% with A."),
        ({"A": [1.01, 3.0]}, "On 2 other texts, perplexity rises by 1% to 200% with A."),
        ({"A": [1.01, 3.1]}, "On 2 other texts, perplexity is 1.01 to 3.10 times the original with A."),
        ({"A": [0.996, 1.18]}, "On 2 other texts, perplexity rises by up to 18% with A."),
        ({"A": [0.994, 1.18]}, "On 2 other texts, perplexity changes by −1% to +18% with A."),
        ({"A": [0.82, 1.004]}, "On 2 other texts, perplexity falls by up to 18% with A."),
    ],
)
def test_a_claim_about_one_text_is_compared_with_other_recorded_texts(ratios, expected):
    assert words.other_texts(ratios) == expected


@pytest.mark.parametrize("ratios", [{}, {"A": []}, {name: [2.0] for name in "ABCD"}])
def test_one_text_is_not_all_texts(ratios):
    assert words.other_texts(ratios) == "These numbers are for one text. Other texts give other numbers."


def test_a_line_over_a_budget_is_not_named_after_one_of_its_values():
    sink, other = "sink~window~64~sinks~1", "sink~window~64~sinks~2"
    assert budget.curve_name("local~window~64", ["local~window~64", sink]) == "Local"
    assert budget.curve_name(sink, ["local~window~64", sink]) == "Attention sinks"
    assert budget.curve_name(sink, ["topk", sink]) == "Attention sinks · window"
    assert budget.curve_name(sink, [other, sink]) == "Attention sinks · sinks 1"
    assert budget.curve_name(sink, ["topk", other, sink]) == "Attention sinks · window · sinks 1"


def test_perplexity_and_copying_are_reported_together():
    question = SimpleNamespace(words=["linear"], layers=(0,))
    assert reading.describe_outcome(question, [], words.describe_effects) == "Reading the text …"
    rows = [dataclasses.replace(reading_row(20.0), word="softmax"), COPY]
    rows.append(dataclasses.replace(reading_row(20.0, layers=(0,)), word="linear"))
    assert reading.describe_outcome(question, rows, words.describe_effects) == "Reading the text …"
    rows.append(dataclasses.replace(COPY, word="linear", layers=(0,)))
    assert explained(reading.describe_outcome, question, rows, words.describe_effects).endswith(
        f"**Copying still works with Linear (loss 1 nats, 1 in the original model).**{TEST}"
    )


def test_a_model_that_gains_nothing_by_copying_loses_nothing():
    assert derived.lost_share(Score(name="", perplexity=1, copied=5.0, first=5.0), AS_IT_IS) == 0.0


def reading_row(value, layers=(), recorded=""):
    return ReadingRow(word="w", layers=layers, tokens=9, total=9, perplexity=value, seconds=1.0, recorded=recorded)


COPY = CopyRow(word="softmax", layers=(), seed=0, period=9, first=11.0, copied=1.0, seconds=1.0)


def test_results_origin():
    assert words.results_origin([reading_row(1)]) == "Computed on this machine."
    recorded = reading_row(1, recorded="2026-01-01, a machine")
    assert words.results_origin([recorded]) == "Recorded on 2026-01-01."
    assert words.results_origin([reading_row(1), recorded]) == (
        "Recorded on 2026-01-01. The other results were computed on this machine."
    )


STAYS = " With every tested number of replaced layers, Linear keeps perplexity at most 1.5 times the original."
EXCEEDS = " With Linear, perplexity first exceeds 1.5 times the original with 4 replaced layers."
REMAINS = "Linear keeps at least half of the ability to copy with every tested number of replaced layers.**"
LOST = "With 4 replaced layers, Linear loses over half of the ability to copy; with 2, 0%.**"
CONTRAST = "With Linear, the highest perplexity is {} times the original. " + LOST


@pytest.mark.parametrize(
    ("perplexity", "copied", "reads", "copies"),
    [
        (30, 6, STAYS, REMAINS),
        (20, 7, "", CONTRAST.format("1.00")),
        (19, 7, "", CONTRAST.format("1.00")),
        (23.62, 7, "", CONTRAST.format("1.18")),
        (31, 2, EXCEEDS, REMAINS),
        (31, 7, EXCEEDS, LOST),
    ],
)
def test_describe_layers_of_several_layers(perplexity, copied, reads, copies):
    pairs = [CurvePoint(x=2, perplexity=20.0, copied=1.0), CurvePoint(x=4, perplexity=perplexity, copied=copied)]
    assert f"**{copies}{reads}" == explained(
        layers.describe_layers, {"linear": pairs}, [reading_row(20), COPY], "bottom"
    )
    assert explained(layers.describe_layers, {"linear": pairs}, [reading_row(20)], "bottom") == ""


@pytest.mark.parametrize(("n", "words_"), [(1, "1 replaced layer"), (2, "2 replaced layers")])
def test_the_first_tested_number_of_layers_has_none_before_it(n, words_):
    pairs = [CurvePoint(x=n, perplexity=20.0, copied=7.0)]
    text = explained(layers.describe_layers, {"linear": pairs}, [reading_row(20), COPY], "bottom")
    assert text.endswith(f"With only {words_}, Linear loses over half of the ability to copy.**")


@pytest.mark.parametrize(("copied", "share"), [(3.5, "25%"), (0.9, "0%")])
def test_the_loss_with_fewer_layers_is_named(copied, share):
    pairs = [CurvePoint(x=8, perplexity=20.0, copied=copied), CurvePoint(x=15, perplexity=31.0, copied=7.0)]
    text = explained(layers.describe_layers, {"linear": pairs}, [reading_row(20), COPY], "bottom")
    assert text.startswith(
        f"**With 15 replaced layers, Linear loses over half of the ability to copy; with 8, {share}."
    )


@pytest.mark.parametrize(("high", "log"), [(200.0, False), (201.0, True), (None, False)])
def test_a_small_range_of_perplexities_has_a_linear_axis(high, log):
    assert sweep.needs_log([Curve("A", [1, 2], [30.0, high]), Curve("B", [1], [20.0])]) == log
    assert not sweep.needs_log([])


@pytest.mark.parametrize(
    ("xs", "log", "ticks"),
    [
        ([32, 64, 96, 128, 192], True, [32, 64, 96, 192]),
        ([32, 64, 95, 128, 190], True, [32, 64, 128]),
        ([1, 2, 4, 30], False, [1, 2, 4, 30]),
        ([1, 2, 4, 50], False, [1, 4, 50]),
        ([1, 2, 3, 4], False, [1, 2, 3, 4]),
        ([7], False, [7]),
    ],
)
def test_each_tick_has_room_after_the_one_drawn_before_it(xs, log, ticks):
    assert sweep.separate_ticks(xs, log=log) == ticks


def test_describe_layers_of_single_layers():
    pairs = [CurvePoint(x=0, perplexity=25.0, copied=2.0), CurvePoint(x=7, perplexity=21.0, copied=6.0)]
    text = explained(layers.describe_layers, {"linear": pairs}, [reading_row(20), COPY], "single")
    assert text == (
        "**With Linear, layer 0 matters most: if it alone is replaced, perplexity is 1.25 times the original.** With "
        "Linear, the copying loss is highest if layer 7 is replaced (6 nats, 1 in the original model)."
    )
    for perplexity, percent in ((21.1, None), (20.9, 5), (20.5, 3), (20.0, 1), (18.0, 1)):
        pairs[1] = replace(pairs[1], perplexity=perplexity)
        pairs[0] = replace(pairs[0], perplexity=20.0)
        text = explained(layers.describe_layers, {"linear": pairs}, [reading_row(20), COPY], "single")
        kept = f"**With Linear, no single replaced layer raises perplexity on this text by more than {percent}%.** With"
        assert text.startswith(kept if percent else "**With Linear, layer 7 matters most")


def test_a_layer_map_is_coloured_by_how_much_is_lost():
    pairs = [CurvePoint(x=0, perplexity=20.0, copied=1.0), CurvePoint(x=2, perplexity=40.0, copied=6.0)]
    read_row = layers.perplexity_row("linear", pairs, reading_row(20))
    copy_row = layers.copying_row("linear", pairs, COPY)
    assert (read_row.title, len(read_row.positions)) == ("Linear", 30)
    assert read_row.positions[[0, 2]].tolist() == [0, 1]  # Twice the perplexity has the last colour.
    assert copy_row.positions[[0, 2]].tolist() == [0, 0.5]  # Copying loss 6 is halfway from 1 to 11 nats.
    assert math.isnan(read_row.positions[1])
    assert read_row.notes[2] == "Linear, layer 2: perplexity 40, 2 times that of the original model"
    assert copy_row.notes[2] == "Linear, layer 2: copying loss 6 nats per token, 1 in the original model"


def test_describe_budgets():
    pairs = [
        CurvePoint(x=x, perplexity=p, copied=c)
        for x, p, c in ((1, 99, 9), (2, 20, 9), (4, 22, 2), (8, 20, 2), (16, 20, 1))
    ]
    assert derived.preserved_from(pairs, "perplexity", 21) == 8
    assert derived.preserved_from(pairs, "copied", 3) == 4
    assert derived.preserved_from(pairs, "perplexity", 10) is None
    text = explained(budget.describe_budgets, {"local~window~64": pairs}, [reading_row(20), COPY])
    assert text == (
        "**With Local, window ≥ 8 is enough to predict this text of 9 tokens about as well as the original model "
        "(perplexity).** To copy repeated text about as well, Local must have window ≥ 4."
    )
    both = {"local~window~64": pairs, "sink~window~64~sinks~1": pairs}
    assert explained(budget.describe_budgets, both, [reading_row(20), COPY]).startswith(
        "**With Local and Attention sinks, window ≥ 8 is enough to predict"
    )
    other = budget.describe_budgets(both | {"local~window~64": pairs[:3]}, [reading_row(20), COPY])
    assert len(other) == 2


@pytest.mark.parametrize(
    ("perplexity", "copied", "expected"),
    [
        (
            99.0,
            9.0,
            "**With Local, no tested window is enough to predict or copy text about as well as the original model.**",
        ),
        (
            99.0,
            1.0,
            "**With Local, window ≥ 2 is enough to copy repeated text about as well as the original model.** With "
            "Local, no tested window is enough to predict this text about as well (perplexity).",
        ),
        (
            20.0,
            9.0,
            "**With Local, window ≥ 2 is enough to predict this text of 9 tokens about as well as the original model "
            "(perplexity).** With Local, no tested window is enough to copy repeated text about as well.",
        ),
        (
            20.0,
            1.0,
            "**With Local, window ≥ 2 is enough to predict this text of 9 tokens and to copy repeated text about as "
            "well as the original model.**",
        ),
    ],
)
def test_preserved_values_of_a_budget(perplexity, copied, expected):
    pairs = [CurvePoint(x=2, perplexity=perplexity, copied=copied)]
    assert explained(budget.describe_budgets, {"local~window~64": pairs}, [reading_row(20), COPY]) == expected
    assert explained(budget.describe_budgets, {"local~window~64": pairs}, [reading_row(20)]) == ""


@pytest.mark.parametrize(
    ("losses", "values"),
    [
        ((1, 1, 9, 9), "stride ≤ 2"),
        ((1, 9, 9, 9), "stride ≤ 1"),
        ((9, 9, 1, 1), "stride ≥ 4"),
        ((1, 9, 9, 1), "stride ≥ 8"),
        ((9, 1, 1, 9), "stride ∈ {2, 4}"),
        ((9, 1, None, 9), "stride ∈ {2}"),
        ((1, 1, 1, 1), "stride ≥ 1"),
        ((9, 9, 9, 9), ""),
    ],
)
def test_the_values_of_a_budget_that_preserve_copying_are_at_either_end_or_listed(losses, values):
    pairs = [CurvePoint(x=2.0**i, perplexity=99.0, copied=loss) for i, loss in enumerate(losses)]
    text = explained(budget.describe_budgets, {"atrous": pairs}, [reading_row(20), COPY])
    assert text.startswith(f"**With Atrous, {values} is enough to copy" if values else "**With Atrous, no tested")
    kept = [dataclasses.replace(pair, perplexity=20.0 if pair.x == 1 else 99.0) for pair in pairs]
    both = explained(budget.describe_budgets, {"atrous": kept}, [reading_row(20), COPY])
    assert both == (
        "**With Atrous, stride ≤ 1 is enough to predict this text of 9 tokens and to copy repeated text about as well "
        "as the original model.**"
        if values == "stride ≤ 1"
        else "**With Atrous, stride ≤ 1 is enough to predict this text of 9 tokens about as well as the original model "
        "(perplexity).** "
        + (
            f"To copy repeated text about as well, Atrous must have {values}."
            if values
            else "With Atrous, no tested stride is enough to copy repeated text about as well."
        )
    )


def cloud(copies):
    return [
        ErrorPoint(word=f"local~window~{i + 1}", output=i or 0.5, perplexity=float(i), copied=copy)
        for i, copy in enumerate(copies)
    ]


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        (
            (0, 1, 2, 3, 4, 5, 6, 7.0),
            "**Settings with a larger output error mostly have a higher copying loss** (Spearman's rank correlation "
            "1 over 8 points).",
        ),
        (
            (3, 2, 1, 0, 4, 5, 6, 7.0),
            "**Settings with a larger output error tend to have a higher copying loss** (Spearman's rank "
            "correlation 0.76 over 8 points).",
        ),
        (
            (3, 2, 1, 0, 4, 5, 7, 6.0),
            "**Settings with a larger output error do not reliably have a higher copying loss** (Spearman's rank "
            "correlation 0.74 over 8 points).",
        ),
        ((7, 6, 5, 4, 3, 2, 1, 0.0), "**Settings with a larger output error do not reliably have a higher copying"),
        ((1.0,) * 8, "Output error and copying loss cannot be compared"),
    ],
)
def test_describe_correlation(copies, expected):
    text = text_above(forecast.describe_correlation(cloud(copies), None))
    assert expected in text
    assert "**Settings with a larger output error mostly have a higher perplexity**" in text
    few = text_above(forecast.describe_correlation(cloud((0, 1, 2, 3, 4, 5, 6)), None))
    assert few == "At least 8 points are needed to compare output error with perplexity."


def test_rounding_errors_are_not_ranked():
    points, rounding = cloud(range(8)), forecast.ROUNDING_ERROR
    exact = [ErrorPoint(word="linear", output=error, perplexity=9.0, copied=9.5) for error in (0.0, rounding)]
    assert forecast.describe_correlation(points + exact, COPY) == forecast.describe_correlation(points, COPY)
    for measurable, equal, few in ((7, 8, True), (7, 7, False), (2, 2, False)):
        given = points[:measurable] + [replace(exact[i % 2], word=f"sink~window~{i + 1}") for i in range(equal)]
        assert text_above(forecast.describe_correlation(given, COPY)) == (
            "On this text, most settings hide no token, so their output errors are only rounding errors."
            if few
            else "At least 8 points are needed to compare output error with perplexity."
        )


@pytest.mark.parametrize(
    ("word", "output", "contrast"), [("linear", 2.5, True), ("linear", 6.5, False), ("local", 2.5, False)]
)
def test_a_variant_that_copies_at_a_larger_error_than_one_that_fails_is_named(word, output, contrast):
    points = [*cloud((1.0,) * 7), ErrorPoint(word=word, output=output, perplexity=9.0, copied=9.5)]
    found = forecast.describe_correlation(points, COPY)
    text = text_above(found)
    assert ("always mean better copying" in text) == contrast
    if contrast:
        assert text.startswith(
            "**A smaller output error does not always mean better copying: at 600%, Local with window 7 copies random "
            "tokens; at 250%, Linear hardly does.**  \n**Settings with a larger output error"
        )
        assert text_below(found) == (
            "Settings with a larger output error do not reliably have a higher copying loss (Spearman's rank "
            "correlation −0.082 over 8 points)."
        )
        more = [replace(points[0], word=f"local~window~{i + 9}", output=7.0 + i, copied=9.6 + i) for i in range(4)]
        assert "tend to have a higher copying loss" in text_below(forecast.describe_correlation([*points, *more], COPY))
    copying = [replace(p, copied=1.0 + p.output / 10) for p in points]
    assert "always mean better copying" not in text_above(forecast.describe_correlation(copying, COPY))


def test_display_name():
    assert display_name("uniform") == "Equal weights"
    assert display_name("sink~window~64~sinks~1") == "Attention sinks · window 64 · sinks 1"
    assert display_name("linear") == "Linear"
    assert layers_text(tuple(range(30)), 30) == "all 30 layers"
    assert layers_text((7,), 30) == "layer 7"
    assert layers_text((3, 4), 30) == "layers 3 to 4"
    assert tokens_text(9, 9) == "9 tokens"
    assert tokens_text(9, 12) == "the first 9 of 12 tokens"


def embedded(word, tau):
    """Return the row of an encoder whose ranking has this rank correlation with the original ranking."""
    return EmbeddingRow(word=word, layers=(0,), before=(0.5, 0.4), after=(0.4, 0.42), drift=0.1234, tau=tau)


@pytest.mark.parametrize(
    ("tau", "expected"),
    [
        (1.0, "**The ranking by similarity does not change with Linear.**"),
        (0.96, "**The ranking by similarity changes little with Linear (rank correlation 0.96).**"),
        (0.94, "**The ranking by similarity changes little with Linear (rank correlation 0.94).**"),
        (0.71, "**The ranking by similarity changes little with Linear (rank correlation 0.71).**"),
        (0.69, "**The ranking by similarity changes clearly with Linear (rank correlation 0.69).**"),
    ],
)
def test_describe_rankings(tau, expected):
    row = embedded("linear", tau)
    assert encoder.describe_drifts([row]) == (
        "On average, the sentences' own embeddings drift by 0.12 with Linear (one minus the cosine similarity before "
        "and after the replacement)."
    )
    assert explained(encoder.describe_rankings, [row]) == expected


def test_variants_with_similar_rankings_share_a_clause():
    rows = [embedded("local", 0.3), embedded("linear", 1.0), embedded("softmax", 0.2)]
    assert explained(encoder.describe_rankings, rows) == (
        "**The ranking by similarity does not change with Linear, and changes clearly with "
        "Local and Softmax (rank correlation 0.30 and 0.20).**"
    )
    assert encoder.describe_rankings([]) == []


@pytest.mark.parametrize(
    ("after", "expected"), [(0.44, ""), (0.46, "(mean similarity of the less similar half: 0.46 instead of 0.40).")]
)
def test_unrelated_sentences_that_become_more_similar_are_reported(after, expected):
    row = dataclasses.replace(embedded("linear", 0.96), after=(0.5, after))
    assert encoder.describe_unrelated([row]).endswith(expected)
    assert bool(encoder.describe_unrelated([row])) == bool(expected)
    assert encoder.describe_unrelated([]) == ""
    first = "**With Linear, unrelated sentences come closer to the query sentence**"
    ranking = "The ranking by similarity changes little with Linear (rank correlation 0.96)."
    found = encoder.describe_rankings([row])
    assert text_above(found).startswith(first) == bool(expected)
    assert text_below(found) == (ranking if expected else "")


def test_ranks_begin_with_the_most_alike():
    assert encoder.ranks([0.1, 0.9, 0.5]).tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("chance", "expected"),
    [(0.14, "14%"), (0.0014, "0.14%"), (9.3e-6, "0.0009%"), (1e-6, "0.0001%"), (9e-7, "under 0.0001%")],
)
def test_a_probability_has_no_power_of_ten(chance, expected):
    assert token_details.format_probability(chance) == expected


@pytest.mark.parametrize(("moved", "changes"), [(0.0, False), (9e-7, False), (2e-6, True), (0.7, True)])
def test_an_unchanged_attention_row_is_reported(moved, changes):
    rows = {"row_before": [0.9, 0.1, 0.0], "row_after": [0.2, 0.2, 0.6], "context": ["c", "d", "a"]}
    row = SimpleNamespace(label="b", probabilities=(0.5, 0.25), layer=3, head=2, moved_weight=moved, **rows)
    text = token_details.describe_token(row, "Local")
    assert text.endswith(" “a” gains most (60%).") == changes
    assert ("“a”. Its attention row changes most in layer 3, head 2. There, " in text) == changes
    same = "The token before the predicted one is “a”. Its attention rows are the same in both models."
    assert text.endswith(same) != changes


@pytest.mark.parametrize(("after", "text"), [([0.1, 0.605], "“d” gains most (0.50%)."), ([0.1, 0.604], "")])
def test_a_token_that_gains_weight_is_named_if_the_gain_is_clear(after, text):
    rows = {"row_before": [0.4, 0.6], "row_after": after, "context": ["c", "d"]}
    row = SimpleNamespace(label="b", probabilities=(0.5, 0.25), layer=3, head=2, moved_weight=0.2, **rows)
    assert token_details.describe_token(row, "Local").endswith(f"moves to other tokens. {text}".strip())


def test_only_increases_that_do_not_round_to_zero_are_listed():
    rows = [
        SimpleNamespace(losses=losses, labels=["a", "b", "c", "d"]) for losses in ([1.0, 1.0, 1.0], [1.04, 1.06, 0.5])
    ]
    assert token_details.increases(*rows, "Local") == [
        {"Token": "c", "Original": "1.0", "Local": "1.1", "Increase": "+0.1"}
    ]


def generated(word, ids, held, layers=(0,)):
    """Return the row of a model that generates these tokens, which are written as letters from "a" on."""
    written = tuple(f" {chr(96 + i)}" for i in ids)
    return ContinuationRow(
        word=word, layers=layers, seed=None, prompt=1, ids=ids, written=written, seconds=0.0, held=held * 1024
    )


@pytest.mark.parametrize(
    ("ids", "n"),
    [
        ((4, 4, 4), 1),
        ((4, 5, 4, 5, 4), 2),
        ((4, 5, 6, 4, 5, 6), 3),
        ((4, 5, 6, 4, 5), 0),
        ((4, 5, 4, 5, 6), 0),
        ((4,), 0),
        ((), 0),
    ],
)
def test_a_text_that_repeats_its_beginning_is_recognised(ids, n):
    assert continuation.repeated_tokens(generated("linear", ids, 1)) == n


def test_a_repeated_phrase_is_named_before_texts_that_differ():
    first = generated("softmax", (1, 2, 1, 2), 8, layers=())
    rows = [first, generated("linear", (4, 5, 4, 5), 8), generated("local", (3, 2, 3, 1), 8)]
    assert explained(continuation.describe_continuations, rows) == (
        "**With Linear, the most likely text repeats “d e” to the end.**  \n"
        "**With Local, the most likely text differs from the first token on.**"
    )
    same = [first, generated("linear", (1, 2, 1, 2), 8)]
    assert "text equals the original model's.**" in explained(continuation.describe_continuations, same)


@pytest.mark.parametrize(("ids", "bold"), [((1, 2, 4), True), ((4, 2, 3), False), ((1, 2, 3), False)])
def test_bold_type_is_explained_only_if_there_is_any(ids, bold):
    rows = [generated("softmax", (1, 2, 3), 1, layers=()), generated("linear", ids, 1)]
    text = continuation.CONTINUATION.notes(SimpleNamespace(layers_text="layer 0"), rows)
    assert ("bold type" in text) == bold


@pytest.mark.parametrize(("prompt", "words"), [(1, "gets 1 token as the prompt"), (2, "gets 2 tokens as the prompt")])
def test_the_note_on_continuations_counts_the_tokens_of_the_prompt(prompt, words):
    row = replace(generated("linear", (1,), 1), prompt=prompt)
    text = continuation.CONTINUATION.notes(SimpleNamespace(layers_text="layer 0"), [row])
    assert f"SmolLM2-135M (4-bit quantised) {words} and generates" in text


@pytest.mark.parametrize(
    ("text", "end"), [(" one\ntwo*", "one ↵ two\\*"), ("a " + 80 * "b", "…" + 80 * "b"), (81 * "é", "…" + 80 * "é")]
)
def test_the_end_of_a_text_begins_with_a_whole_word(text, end):
    assert continuation.end_of_text(text) == end


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([("linear", (4, 2, 3), 8)], "**With Linear, the most likely text differs from the first token on.**"),
        (
            [("linear", (1, 4, 3), 9)],
            "**With Linear, the most likely text equals the original model's up to token 1 of 3.**",
        ),
        (
            [("linear", (1, 4, 3), 9), ("topk", (1, 2, 4), 9), ("local", (1, 5, 3), 9)],
            "**With Top-k, the most likely text equals the original model's up to token 2 of 3.**  \n"
            "**With Linear and Local, the most likely text equals the original model's up to token 1 of 3.**",
        ),
        (
            [("linear", (1, 2, 3), 7)],
            "**With Linear, the most likely text equals the original model's.** With Linear, the cache has 88% of its "
            "original size (7.0 KiB instead of 8.0 KiB).",
        ),
        (
            [("linear", (4, 2, 3), 5), ("softmax", (5, 2, 3), 6)],
            "**With both variants, the most likely text differs from the first token on.** "
            "Among the variants, the smallest cache takes 5.0 KiB. The original model's cache takes 8.0 KiB.",
        ),
    ],
)
def test_generated_texts_are_compared_with_the_text_of_the_original_model(others, expected):
    first = generated("softmax", (1, 2, 3), 8, layers=())
    assert explained(continuation.describe_continuations, [first, *(generated(*each) for each in others)]) == expected
    assert continuation.describe_continuations([first]) == []
    assert continuation.describe_continuations([generated(*others[0])]) == []


@pytest.mark.parametrize(("windows", "least"), [((64, 95, 128), "95"), ((64, 94, 128), "128"), ((64, 94), None)])
def test_the_smallest_window_that_reaches_the_token_to_copy_is_named(windows, least):
    text = "In the copying test, the token to copy is 95 tokens back."
    reaches = f" The smallest tested window that reaches it is {least}." if least else ""
    assert budget.reaching_window(windows) == text + reaches


@pytest.mark.parametrize(
    ("largest", "ticks"),
    [
        (4.9, ["0", "1", "2", "3", "4"]),
        (5.0, ["0", "5"]),
        (10.0, ["0", "5", "10"]),
        (10.9, ["0", "5", "10.8 (uniform guess)"]),
    ],
)
def test_the_loss_of_a_uniform_guess_is_a_tick_if_losses_reach_it(largest, ticks):
    assert [*copying.loss_ticks(largest).values()] == ticks
