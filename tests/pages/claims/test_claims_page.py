"""Tests of the Claims page without a browser: its automatic results equal those of the core and the command."""

import csv
import html
import io
import re
import threading
from dataclasses import replace
from functools import partial
from urllib.parse import parse_qs

import pytest
from driver import charts, chosen, links, open_page, visit

from app.figures.theme import COLOURS, GREY
from app.jobs import cached, dispatch
from app.state import presets
from app.state.session import AUTOMATIC
from app.ui import palette
from app.ui.input_forms import UPLOAD
from attention_core import claims
from attention_core.__main__ import main
from attention_core.claims import Outcome, Verdict
from attention_core.experiments import swap
from attention_core.inputs import SyntheticSource, SyntheticSpec, TextSource, UploadSource, to_npz
from pages.claims import board, board_words, colours, condition_words, words
from pages.claims.options import VERDICTS_BY_NAME

SMALL = {"input": "synthetic", "n": 40, "d": 8, "heads": 2, "head": -1}
open_claims = partial(open_page, "claims", **SMALL)
SOURCE = SyntheticSource(SyntheticSpec(n=40, d=8, heads=2))
EVERY = claims.all_claims()


def open_verdicts(**options):
    """Return the page with the claims of each verdict, and with those that are not checked yet."""
    return [open_claims(verdict=word, **options) for word in (*VERDICTS_BY_NAME, "unchecked")]


def shown_text(*pages):
    """Return the texts of the pages; Markdown escapes and non-breaking spaces are removed."""
    return plain("\n".join(each.value for at in pages for each in (*at.markdown, *at.caption, *at.info)))


def finding(outcome):
    return plain(with_head_counts(outcome, " ".join(outcome.sentences)).format(**outcome.formatted_numbers))


def on_card(outcome):
    """Return the part of the finding that a card shows."""
    if outcome.untestable_reason:
        return finding(outcome)
    numbers = words.with_whole_percents(outcome).formatted_numbers(outcome.numbers)
    return plain(with_head_counts(outcome, outcome.sentences[0]).format(**numbers))


def with_head_counts(outcome, template):
    """Return a template in which shares of heads are numbers of heads; each must be a whole number."""
    for name in (each.name for each in outcome.claim.quantities if each.of_heads and outcome.heads):
        count = outcome.heads * outcome.numbers.get(name, 0.0) / 100
        assert count == pytest.approx(round(count))
        heads = "no head" if not round(count) else f"{round(count)} of {outcome.heads} heads"
        if round(count) == outcome.heads:
            heads = "this head" if outcome.heads == 1 else f"all {outcome.heads} heads"
        template = template.replace(f"{{{name}}}% of the heads", heads)
    if outcome.heads == 1:
        template = re.sub(
            r" \((medians? over heads|smallest over heads|in about three quarters of the heads)\)"
            r"|, (median|largest) over heads",
            "",
            template,
        )
    return template.replace("{two}% of all pairs", "all pairs") if outcome.numbers.get("two") == 100 else template


def plain(words):
    return re.sub(r"\\(.)", r"\1", words).replace("\N{NO-BREAK SPACE}", " ")


def chips(*pages):
    """Return the verdicts on the cards."""
    text = re.findall(r"-badge\[:material/[a-z_]+: ([a-z ]+)\]", shown_text(*pages))
    named = {words.verdict_name(each): each for each in Verdict}
    return [named[each] for each in text]


def strip(at):
    """Return the tiles of all verdicts, by subject."""
    found = [
        each.value.split("\n\n") for each in at.markdown if each.value.startswith("**") and "#?claim=" in each.value
    ]
    assert [title.strip("*") for title, _tiles in found] == list(board_words.SUBJECTS.values())
    return dict(zip(board_words.SUBJECTS, (tiles for _title, tiles in found), strict=True))


def cards(*pages):
    """Return the keys of the claims with cards."""
    keys = [button.key or "" for at in pages for button in at.button]
    return {key.removeprefix("claims.open.") for key in keys if key.startswith("claims.open.")}


def listed(*pages):
    """Return the keys of the claims that are listed as without a result."""
    lists = [
        each.value for at in pages for each in at.markdown if re.match(r"[^<*]*\[:gray-badge\[:(gray|blue)", each.value)
    ]
    return set(re.findall(r"#\?claim=(\w+) ", "".join(lists)))


def outcomes(source=SOURCE, head=None, **asked):
    return {task.key: claims.run(task)[0] for task in claims.tasks(source, head=head, **asked)}


@pytest.fixture(scope="module")
def expected():
    """Return the outcome of every claim on the small synthetic input."""
    return outcomes()


def test_claims_that_measure_time_run_on_request():
    source = SyntheticSource(SyntheticSpec(n=43, d=8, heads=2))
    [timed] = [task for task in claims.tasks(source) if task.timed]
    dispatch.drop_rows("claims", timed)
    at = open_claims(n=43, verdict="unchecked")
    assert listed(at) == {"sparse_time"}
    assert ": 1 not run]" in shown_text(at)
    assert "Checked only on request, because the check measures computing times:" in shown_text(at)
    assert dispatch.cached_rows("claims", timed) is None
    assert at.button(key="claims.check").label == "Run 1 more check"
    at.button(key="claims.check").click().run()
    assert at.session_state["check"] is True
    assert not listed(at)
    assert "Checked only on request" not in shown_text(at)
    assert not any(button.key == "claims.check" for button in at.button)
    assert dispatch.cached_rows("claims", timed) is not None
    other = open_claims(n=43, claim="sparse_time")
    assert len(charts(other)) == 1, "a cached result is shown to every visitor"


def test_claims_that_run_a_model_run_on_request(monkeypatch):
    text, slow = (
        "The old bridge was closed, so we took the ferry.",
        {claim.key for claim in EVERY if claim.uses_decoder},
    )
    at = open_claims(input="text", layer=0, text=" ".join([text] * 6), verdict="unchecked")
    assert "Checked only on request, because SmolLM2 must process the text a dozen times:" in shown_text(at)
    assert listed(at) == {*slow, "sparse_time"}
    assert ": 6 not run]" in shown_text(at)
    assert at.button(key="claims.check").label == "Run 6 more checks"
    monkeypatch.setattr(claims, "run", lambda task, *, load: (Outcome(key=task.key, verdict=Verdict.UNTESTABLE),))
    at.button(key="claims.check").click().run()
    assert at.session_state["reads"] is at.session_state["check"] is True
    assert "Checked only on request" not in shown_text(at)
    assert ": 0 not run]" in shown_text(at)


def test_a_text_that_is_too_short_for_a_model_is_reported_without_a_request():
    text, slow = (
        "The old bridge was closed, so we took the ferry.",
        {claim.key for claim in EVERY if claim.uses_decoder},
    )
    at = open_claims(input="text", layer=0, text=text, verdict="untestable")
    tokens = len(swap.text_tokens(text).ids)
    assert f"At least 64 tokens are needed, but this input has {tokens}." in shown_text(at)
    assert slow <= listed(at)
    assert at.button(key="claims.check").label == "Run 1 more check"


def test_every_claim_is_checked_and_shows_the_verdict_of_the_library(expected):
    pages = open_verdicts(check=True)
    tiles, shown, timed = strip(open_claims()), shown_text(*pages), {claim.key for claim in EVERY if claim.timed}
    labels = {button.label for each in pages for button in each.button}
    assert {words.title(claim) for claim in EVERY if claim.key not in listed(*pages)} <= labels
    for key, outcome in expected.items():
        if key not in timed:
            assert on_card(outcome) in shown
    assert cards(*pages) | listed(*pages) == set(expected)
    untestable = {key for key, outcome in expected.items() if outcome.verdict is Verdict.UNTESTABLE}
    assert listed(*pages) <= untestable
    assert len(chips(*pages)) == len(cards(*pages))
    measured = {key: dispatch.rows("claims", claims.tasks(SOURCE, keys=[key])[0])[0] for key in timed}
    all_outcomes = (expected | measured).values()
    assert plain(board_words.summary(all_outcomes, "holds")) in shown
    assert ": 0 not run]" in shown  # in the page with the claims that are not checked
    assert "This claim is about the attention of trained models. Choose a text" in shown
    for claim in EVERY:
        assert claim.timed or board_words.tile(claim, expected[claim.key].verdict) in tiles[claim.subject]
    assert ("is a result on this input, not an error" in shown) == (Verdict.FAILS in chips(*pages))


def test_the_checks_follow_the_input():
    at = open_claims(verdict="holds")
    first = shown_text(at)
    at.session_state["n"] = 48
    at.run()
    other = outcomes(SyntheticSource(SyntheticSpec(n=48, d=8, heads=2)), keys=["nystrom_all_landmarks"])[
        "nystrom_all_landmarks"
    ]
    assert on_card(other) in shown_text(at)
    assert on_card(other) not in first


def test_the_filter_shows_one_verdict(expected):
    for word, verdict in VERDICTS_BY_NAME.items():
        at = open_claims(verdict=word)
        assert set(chips(at)) <= {verdict}
        expected_keys = {o.key for o in expected.values() if o.verdict is verdict and not o.claim.timed}
        shown = listed(at) if word == "untestable" else cards(at)
        assert shown - {claim.key for claim in EVERY if claim.timed} == expected_keys


def test_the_page_opens_with_three_claims_and_a_filter_shows_the_others():
    at = open_claims(input="text", layer=0, text="The cat sat on the mat, and the cat slept on the warm mat again.")
    assert cards(at) == set(board_words.FIRST_KEYS)
    headings = [each.value.removeprefix("## ") for each in at.markdown if each.value.startswith("## ")]
    assert headings == ["All claims"]
    pages = open_verdicts(check=True)
    for each in pages:
        order = [claim.key for claim in EVERY if claim.key in cards(each)]
        assert [key for button in each.button if (key := (button.key or "")[len("claims.open.") :]) in order] == order
        assert ("## Without a result" in shown_text(each)) == bool(listed(each))
    subjects = [claim.subject for claim in EVERY]
    assert subjects == sorted(subjects, key=claims.SUBJECTS.index)
    assert "## All claims" not in shown_text(open_claims(verdict="fails"))


def test_each_card_names_its_article():
    without = [key for key, claim in claims.discover().items() if not claim.source.authors]
    assert not without, f"the Paper that each of these claims cites needs authors: {without}"
    pages = open_verdicts(check=True)
    shown, with_cards = shown_text(*pages), cards(*pages)
    for claim in EVERY:
        assert plain(board_words.origin(claim)) in shown or claim.key not in with_cards
        assert board_words.origin(claim).startswith(f"{words.article(claim.source)} :small[·")
        assert f"[{claim.source.authors},\N{NO-BREAK SPACE}{claim.source.year}](" in words.article(claim.source)


def test_a_filter_shows_the_claims_that_are_not_checked_yet():
    source = SyntheticSource(SyntheticSpec(n=44, d=8, heads=2))
    [timed] = [task for task in claims.tasks(source) if task.timed]
    dispatch.drop_rows("claims", timed)
    at = open_claims(n=44, verdict="unchecked")
    assert listed(at) == {timed.key}
    at.button(key="claims.check").click().run()
    assert cards(at) | listed(at) == set()
    assert "No claim matches this filter." in shown_text(at)


def test_a_method_has_the_same_colour_on_every_card():
    iterated, exact = "Nyström, inverse from six iterations", "Nyström, exact inverse"
    first = colours.series_colours(["Nyström, no inverse", iterated, exact, "equal weights"])
    second = colours.series_colours([exact, iterated])
    assert first[exact] == second[exact]
    assert first["Nyström, no inverse"] == palette.index("landmark") % COLOURS
    assert first[iterated] == second[iterated] == palette.index("nystrom")
    assert first["equal weights"] == colours.series_colours(["Equal weights"])["Equal weights"] == GREY
    assert colours.series_colours(["Full attention", "Local", "linear attention"]) == {
        "Full attention": palette.index("softmax"),
        "Local": palette.index("local"),
        "linear attention": palette.index("linear"),
    }
    split = colours.series_colours(["linear attention: first", "softmax, all tokens", "softmax, one removed", "x"])
    assert [*split.values()] == [palette.index("linear"), palette.index("softmax"), 9, 6]
    assert colours.series_colours(["softmax", "x"])["x"] not in {colours.series_colours(["Nyström", "x"])["x"], 10}
    many = [f"series {i}" for i in range(COLOURS)]
    assert sorted(colours.series_colours(many).values()) == list(range(COLOURS))


def titled(title, *, log):
    """Return a title with the scale of its axis: within the brackets of its unit, or in brackets of its own."""
    if not log:
        return title
    return f"{title[:-1]}, log scale)" if title.endswith(")") else f"{title} (log scale)"


def test_each_card_has_a_small_figure(expected):
    shown = [each.value for at in open_verdicts() for each in at.markdown if "<img" in each.value]
    judged = [o for o in expected.values() if not o.untestable_reason and not o.claim.timed]
    assert len(judged) > 8
    for outcome in judged:
        [card] = [each for each in shown if on_card(outcome) in plain(each)]
        assert board.picture(outcome) in card
        shown_words = html.unescape(re.sub("<[^>]+>", "", card.replace("<br>", " ")))
        figure, series = outcome.claim.figure, board.series(outcome)
        named = [] if figure.kind == "bars" and len(series) == 1 else series
        assert all(
            text in shown_words
            for text in (*named, titled(figure.main_title or figure.y.title, log=outcome.has_log_values))
        )
        assert figure.kind == "bars" or titled(figure.x.title, log=figure.x.log) in shown_words


def test_a_link_to_one_claim_opens_its_panel_in_its_place():
    link = {"input": "synthetic", "n": "44", "d": "8", "heads": "2", "head": "-1", "claim": "mean_output"}
    at = open_page("claims", link)
    assert at.session_state["claim"] == "mean_output"
    found = outcomes(SyntheticSource(SyntheticSpec(n=44, d=8, heads=2)), keys=["mean_output"])["mean_output"]
    assert finding(found) in shown_text(at)
    assert "mean_output" not in cards(at)
    assert len(charts(at)) == 1
    at.button(key="claims.back").click().run()
    assert at.session_state["claim"] == ""
    assert on_card(found) in shown_text(at)
    assert finding(found) not in shown_text(at)
    assert "mean_output" in cards(at)
    assert not charts(at)
    at.button(key="claims.open.mean_output").click().run()
    assert at.session_state["claim"] == "mean_output"
    assert len(charts(at)) == 1


def test_an_open_claim_hides_the_cards_of_the_others_and_an_old_link_opens_it():
    at = open_page("claims", {"input": "synthetic", "n": "44", "claim": "sparse_costs", "claim_group": "delta"})
    assert not cards(at) | listed(at)
    assert len(charts(at)) == 1
    at.button(key="claims.back").click().run()
    assert cards(at) | listed(at) == set(board_words.FIRST_KEYS)


@pytest.mark.parametrize("claim", EVERY, ids=lambda claim: claim.key)
def test_each_claim_opens_with_its_figure_its_numbers_and_its_rule(claim, expected):
    at = open_claims(claim=claim.key)
    assert not at.warning
    shown = shown_text(at)
    for sentence in (
        claim.statement,
        claim.experiment,
        claim.rule.format(**claim.thresholds()),
        str(claim.source.year),
    ):
        assert plain(sentence) in shown
    assert claim.source.url in shown
    outcome = expected[claim.key]
    if outcome.untestable_reason:
        assert finding(outcome) in shown
        assert not charts(at)
        return
    if not claim.timed:
        assert finding(outcome) in shown
        assert plain(condition_words.conditions(outcome)) in shown
    axes = charts(at)[0]["layout"]
    figure = claim.figure
    assert axes["xaxis"]["title"]["text"] == titled(figure.x.title, log=figure.x.log)
    assert axes["yaxis"]["title"]["text"] == titled(figure.y.title, log=outcome.has_log_values)


def test_a_claim_about_trained_models_takes_no_synthetic_input():
    at = open_claims(claim="near_diagonal")
    assert "This claim is about the attention of trained models. Choose a text" in shown_text(at)
    assert not charts(at)
    text = "The old bridge was closed, so we took the ferry."
    read = open_claims(claim="near_diagonal", input="text", layer=0, text=text)
    [task] = claims.tasks(TextSource(text), keys=["near_diagonal"])
    [outcome] = claims.run(task)
    assert finding(outcome) in shown_text(read)
    assert len(charts(read)) == (outcome.untestable_reason is None)


def test_all_heads_are_checked_unless_one_is_selected():
    all_heads, one = (outcomes(head=head, keys=["cosine_closest"])["cosine_closest"] for head in (None, 1))
    assert finding(all_heads) != finding(one)
    at = open_claims(head=1, claim="cosine_closest")
    assert finding(all_heads) in shown_text(at)
    assert "The check uses all 2 heads and 40 tokens." in shown_text(at)
    at.button_group(key="claim_heads").set_value("one").run()
    assert finding(one) in shown_text(at)
    assert "The check uses head 1 of 2 and 40 tokens." in shown_text(at)
    at.button(key="claims.back").click().run()
    assert at.session_state["claim_heads"] == "one"
    assert on_card(one) in shown_text(at)
    at.button_group(key="claim_heads").set_value("all").run()
    assert on_card(one) not in shown_text(at)
    assert on_card(all_heads) in shown_text(at)


def test_links_carry_the_head_and_the_average_means_all_heads():
    small = {"input": "synthetic", "n": "40", "d": "8", "claim": "cosine_closest", "claim_heads": "one"}
    assert "uses head 1 of 2 and" in shown_text(open_page("claims", small | {"heads": "2", "head": "1"}))
    assert "uses all 2 heads and" in shown_text(open_page("claims", small | {"heads": "2", "head": "-1"}))
    alone = open_page("claims", small | {"heads": "1", "head": "0"})
    assert "The check uses one head and 40 tokens." in shown_text(alone)
    assert not any(each.key == "claim_heads" for each in alone.get("button_group"))


def test_the_strip_links_to_every_claim_and_marks_the_opened_one():
    at = open_claims()
    for subject, tiles in strip(at).items():
        own = [claim for claim in EVERY if claim.subject == subject]
        assert re.findall(r"\(#\?claim=(\w+) ", tiles) == [claim.key for claim in own]
        assert "**" not in tiles
    opened = strip(open_claims(claim="two_layers"))
    assert re.findall(r"\*\*.*?claim=(\w+).*?\*\*", opened.pop("sparse")) == ["two_layers"]
    assert not any("**" in tiles for tiles in opened.values())


def test_buttons_open_the_previous_and_next_claim():
    order = [claim.key for claim in EVERY]
    at = open_claims(claim=order[0])
    assert at.button(key="claims.step-1").disabled
    at.button(key="claims.step1").click().run()
    assert at.session_state["claim"] == order[1]
    at.button(key="claims.step-1").click().run()
    assert at.session_state["claim"] == order[0]
    assert open_claims(claim=order[-1]).button(key="claims.step1").disabled


def test_the_command_reports_the_same_verdicts(capsys):
    untimed = [claim for claim in EVERY if not claim.timed]
    asked = ["--synthetic", "clustered", "--tokens", "24", "--head", "1"]
    assert main(["claims", *asked, "--only", *(claim.key for claim in untimed)]) == 0
    printed = plain(capsys.readouterr().out).split("\n\n")
    options = {"kind": "clustered", "n": 24, "d": 32, "heads": 4, "head": 1, "claim_heads": "one"}
    pages = open_verdicts(**options)
    shown, tiles = shown_text(*pages), "".join(strip(open_claims(**options)).values())
    spec = SyntheticSpec(kind="clustered", n=24, d=32, heads=4)
    found = outcomes(SyntheticSource(spec), head=1, keys=[claim.key for claim in untimed])
    assert len(printed) == len(untimed) + 1 > 15
    for claim, block in zip(untimed, printed, strict=False):
        first, *lines = block.split("\n")
        assert first == f"{claim.number:>2}  {found[claim.key].verdict}  ({claim.key})"
        assert board_words.tile(claim, found[claim.key].verdict) in tiles
        outcome, printed_words = found[claim.key], " ".join(line.strip() for line in lines)
        text_of_command = " ".join(outcome.sentences).format(**outcome.formatted_numbers)
        assert printed_words == f"{claim.statement} {plain(text_of_command)}"
        assert on_card(outcome) in shown
    assert "24 tokens" in printed[-1]


def test_an_input_that_is_too_short_is_reported():
    pages = open_verdicts(n=3)
    texts = [claim for claim in EVERY if claim.uses_decoder]
    short = [claim for claim in EVERY if claim.needs > 3 and not claim.measures_lengths and claim not in texts]
    assert len(short) > 5
    for claim in short:
        assert f"At least {claim.needs} tokens are needed, but this input has 3." in shown_text(*pages)
    assert listed(*pages) - {"sparse_time", "square_window"} == {claim.key for claim in (*short, *texts)}
    assert "The check needs an image. Choose an image." in shown_text(*pages)
    assert "The check needs a text, which a language model reads. Choose a text." in shown_text(*pages)
    alone = open_claims(n=3, claim=short[0].key)
    assert f"At least {short[0].needs} tokens are needed, but this input has 3." in shown_text(alone)
    assert not charts(alone)


def test_a_button_makes_a_synthetic_input_longer():
    at = open_claims(n=40, sharpness=2.0, seed=3, claim="six_iterations")
    assert "At least 128 tokens are needed, but this input has 40." in shown_text(at)
    assert not charts(at)
    button = at.button(key="claims.longer.six_iterations")
    assert button.label == "Use n = 128"
    button.click().run()
    kept = {"n": 128, "d": 8, "heads": 2, "sharpness": 2.0, "seed": 3, "kind": "locally_correlated"}
    assert {name: at.session_state[name] for name in kept} == kept
    spec = SyntheticSpec(n=128, d=8, heads=2, sharpness=2.0, seed=3)
    found = outcomes(SyntheticSource(spec), keys=["six_iterations"])["six_iterations"]
    assert finding(found) in shown_text(at)
    assert len(charts(at)) == 1
    assert "The check uses all 2 heads and 128 tokens." in shown_text(at)


@pytest.mark.parametrize("model", ["minilm", "smollm2"])
def test_a_button_replaces_a_short_text_by_the_long_preset(model):
    text = "The old bridge was closed, so we took the ferry."
    at = open_claims(input="text", text=text, model=model, layer=1, head=2, row=3, claim="two_layers")
    tokens = TextSource(presets.texts()["long"], model, 1).load().n
    button = at.button(key="claims.longer.two_layers")
    assert button.label == f"Use the long preset ({tokens} tokens)"
    button.click().run()
    kept = {"text": presets.texts()["long"], "model": model, "layer": 1, "head": 2, "row": AUTOMATIC}
    assert {name: at.session_state[name] for name in kept} == kept
    assert f" and {tokens} tokens." in shown_text(at)
    assert len(charts(at)) == 1


def test_a_text_is_requested_if_the_long_preset_is_too_short(monkeypatch):
    known = claims.claim("two_layers")
    monkeypatch.setitem(claims.discover(), "two_layers", replace(known, needs=400))
    at = open_claims(input="text", text="a short text", layer=0, claim="two_layers")
    assert "Write or paste a text of at least 400 tokens." in shown_text(at)
    assert not any(button.key == "claims.longer.two_layers" for button in at.button)


def test_an_upload_that_is_too_short_is_reported():
    file = UploadSource.of("a.npz", to_npz(SyntheticSource(SyntheticSpec(n=12, d=4, heads=1)).load()))
    at = open_claims(**{"input": "upload", UPLOAD: file, "claim": "two_layers"})
    assert "At least 16 tokens are needed, but this input has 12." in shown_text(at)
    assert "Upload a sequence of at least 16 tokens." in shown_text(at)
    assert not any((button.key or "").startswith("claims.longer.") for button in at.button)


def test_no_longer_input_is_offered_if_it_would_not_help():
    at = open_claims(claim="near_diagonal")
    assert not charts(at)
    assert not any(button.key == "claims.longer.near_diagonal" for button in at.button)


def test_a_verdict_that_is_the_same_on_every_input_is_marked_on_its_card_and_panel():
    theorems = [claim for claim in EVERY if claim.theorem]
    assert {"nystrom_all_landmarks"} <= {claim.key for claim in theorems}
    pages, judged = open_verdicts(), outcomes(keys=[claim.key for claim in theorems])
    texts = [each.value for at in pages for each in at.markdown]
    for claim in theorems:
        [card] = [each for each in texts if on_card(judged[claim.key]) in plain(each)]
        assert "gray-badge[on every input]" in card
    assert shown_text(*pages).count("gray-badge[on every input]") == len(theorems)
    assert f"**The same on every input.** {theorems[0].theorem}" in shown_text(open_claims(claim=theorems[0].key))
    assert "**The same on every input.**" not in shown_text(open_claims(claim="drowning"))


def test_claims_measured_beyond_the_input_name_the_length():
    assert "The check uses all 2 heads and lengths up to 512 tokens." in shown_text(
        open_claims(claim="memory_quadruples")
    )
    text = "The old bridge over the river was closed, so we walked along the bank to the ferry."
    read = shown_text(open_claims(input="text", text=text, layer=0, claim="memory_quadruples"))
    assert f"The check uses all 12 heads and {TextSource(text).load().n} tokens." in read


def test_untestable_claims_are_explained_and_the_others_judged():
    found = outcomes(SyntheticSource(SyntheticSpec(n=40, d=8, heads=2, sharpness=0.0)))
    untestable = [outcome for outcome in found.values() if outcome.untestable_reason]
    assert any("have the same weight" in finding(outcome) for outcome in untestable)
    pages = open_verdicts(sharpness=0.0)
    assert all(finding(outcome) in shown_text(*pages) for outcome in untestable)
    assert {outcome.key for outcome in untestable} >= listed(*pages) - {"sparse_time"}


@pytest.mark.parametrize("query", [{"claim": "nothing"}, {"verdict": "maybe"}, {"check": "2"}])
def test_an_invalid_link_opens_the_board_and_is_reported(query):
    at = open_page("claims", query)
    assert next(iter(query)) in at.warning[0].value
    assert cards(at) | listed(at) == set(board_words.FIRST_KEYS)


def test_a_missing_upload_is_requested():
    at = open_claims(input="upload")
    assert any("Upload an .npz" in each.value for each in at.info)


def test_the_table_lists_every_claim_with_its_numbers(expected):
    [header, *rows] = csv.reader(io.StringIO(board.table(list(expected.values())).decode("utf-8-sig")))
    assert header == ["number", "claim", "verdict", "finding", "numbers", "rule", "source"]
    assert [int(row[0]) for row in rows] == [claim.number for claim in EVERY]
    for row, outcome in zip(rows, expected.values(), strict=True):
        claim = outcome.claim
        assert row[1:3] == [claim.statement, outcome.verdict.value]
        assert plain(row[3]) == finding(outcome)
        if outcome.untestable_reason:
            assert row[4] == ""
        else:
            assert all(f"{each.label}: {each.plain(outcome.numbers[each.name])}" in row[4] for each in claim.quantities)
        assert row[5] == claim.rule.format(**claim.thresholds())


def test_every_claim_links_to_a_page_that_accepts_the_link():
    places = {(each.place.page, str(each.place.options)): each for each in EVERY}
    assert len({each.place.page for each in places.values()}) > 5
    for each in places.values():
        at = open_claims(claim=each.key, causal=False, variants=chosen("softmax", "topk"))
        [link] = [link for link in links(at) if link.label.startswith("Open in ")]
        query = parse_qs(link.query_string)
        numbers = dispatch.rows("claims", claims.tasks(SOURCE, keys=[each.key])[0])[0].numbers
        place = each.place.with_numbers(numbers)
        assert link.page == place.page
        assert {name: [word] for name, word in place.options.items()}.items() <= query.items()
        assert query["variants"] == list(place.variants or ("softmax", "topk"))
        linked_page = visit(link.page, query)
        assert not linked_page.exception, each.key
        assert not linked_page.warning, (each.key, [text.value for text in linked_page.warning])
        assert linked_page.session_state["n"] == 40


def test_a_claim_without_a_page_has_no_link(monkeypatch):
    known = claims.discover()
    monkeypatch.setitem(known, "near_diagonal", replace(known["near_diagonal"], place=None))
    at = open_claims(claim="near_diagonal")
    assert not any("Open in" in each.proto.label for each in at.get("page_link"))


def test_times_are_measured_again_on_a_button():
    [task] = claims.tasks(SOURCE, keys=["sparse_time"])
    at = open_claims(claim="sparse_time")
    before = dispatch.rows("claims", task)
    assert dispatch.rows("claims", task) == before
    at.button(key="claims.again").click().run()
    assert dispatch.rows("claims", task) != before
    assert not any(button.key == "claims.again" for button in open_claims(claim="two_layers").button)


def test_a_timed_claim_waits_until_heavy_work_has_ended(monkeypatch):
    ran, go, inside = [], threading.Event(), threading.Event()
    monkeypatch.setattr(claims, "run", lambda task, *, load: (ran.append(task.key), ())[1])

    def heavy():
        with cached.compute_lock().acquired():
            inside.set()
            go.wait(10)

    source = SyntheticSource(SyntheticSpec(n=41, d=8, heads=1))
    timed, untimed = (claims.tasks(source, keys=[key])[0] for key in ("sparse_time", "two_layers"))
    assert (timed.timed, untimed.timed) == (True, False)
    worker, waiting = threading.Thread(target=heavy), threading.Thread(target=dispatch.rows, args=("claims", timed))
    worker.start()
    inside.wait(10)
    try:
        waiting.start()
        waiting.join(0.3)
        assert ran == []
    finally:
        go.set()
        worker.join(10)
        waiting.join(10)
    assert ran == ["sparse_time"]
    dispatch.drop_rows("claims", timed)


def test_the_claims_about_trained_models_have_their_own_view():
    at = open_claims(claims_view="trained")
    found = outcomes(keys=[claim.key for claim in claims.trained_claims()])
    judged = {key: each for key, each in found.items() if not each.untestable_reason}
    assert judged
    assert cards(at) == set(judged)
    assert all(on_card(each) in shown_text(at) for each in judged.values())
    assert sorted(chips(at)) == sorted(each.verdict for each in judged.values())
    assert any("Do published claims hold for trained models?" in each.value for each in at.markdown)
    assert "judged on recorded training runs of small models, not on your input" in shown_text(at)
    assert not cards(open_claims()) & set(judged)


@pytest.mark.parametrize("key", [claim.key for claim in claims.trained_claims()])
def test_a_claim_about_trained_models_opens_only_in_its_own_view(key):
    claim = claims.claim(key)
    [outcome] = outcomes(keys=[key]).values()
    at = open_claims(claims_view="trained", claim=key)
    shown = shown_text(at)
    if outcome.untestable_reason:
        assert not charts(at)
        return
    for text in (claim.statement, claim.experiment, claim.rule.format(**claim.thresholds()), finding(outcome)):
        assert plain(text) in shown
    assert "This claim is judged on recorded training runs with three random seeds." in shown
    assert len(charts(at)) == 1
    [link] = [each for each in at.get("page_link") if each.proto.label == "Open in Learn"]
    assert "learn" in link.proto.page
    elsewhere = open_claims(claim=key)
    assert not charts(elsewhere)
