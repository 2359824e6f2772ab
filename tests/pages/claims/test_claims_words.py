"""Tests of every sentence of the Claims page, on each side of each branch."""

import csv
import io
import re
from dataclasses import fields, replace

import pytest

from app.ui.input_panel import ChosenInput
from app.words.i18n import escape_markdown
from attention_core import claims
from attention_core.claims import Outcome, UntestableError, Verdict
from attention_core.claims.checks.linear import cosine_closest, drowning
from attention_core.claims.checks.linear.linear_sparsity import SparsityRow
from attention_core.claims.checks.sparse import two_layers
from attention_core.claims.conditions import MEASURED_UNMASKED
from attention_core.claims.landmark_errors import LandmarkRow
from attention_core.claims.rule import Condition, Measured
from attention_core.claims.trained_models import TrainedRow
from attention_core.inputs import ImageSource, SyntheticSource, SyntheticSpec, TextSource, TrainedSource, UploadSource
from attention_core.variant import Paper
from pages.claims import board, board_words, claim, condition_words, longer_input, words

HOLDS, PARTLY, FAILS, UNTESTABLE = Verdict
EVERY = claims.all_claims()
ALL = len(EVERY)
OTHERS = "claims with the same verdict on every input"
FIXED = sum(bool(each.theorem) for each in EVERY)
NBSP = "\N{NO-BREAK SPACE}"
SYNTHETIC, TEXT, FILE = SyntheticSource(SyntheticSpec(n=40, d=4)), TextSource("a b"), UploadSource.of("a.npz", b"")
TRAINED = TrainedSource.of("parity", "softmax")
SHORT = UntestableError("At least {needs} tokens are needed, but this input has {n}.", needs=16, n=3)
FOUND = Outcome(
    key="two_layers",
    verdict=HOLDS,
    numbers={"two": 100.0, "one": 12.34, "local": 40.0, "atrous": 50.0, "keys": 30.0},
    rows=(two_layers.ReachRow(stack="local layers", layers=1, head=0, share=12.5, keys=30.0),),
)
MET, UNMET = ":green[:material/check:]", ":red[:material/close:]"
MEASURED = "Measured (required):"
BOTH_LAYERS = "share of token pairs connected by a local layer and an atrous layer"
GROWTH = "growth exponent p of squared ReLU's row sums (nᵖ for n tokens), median over heads"
CORRELATION = "rank correlation of output error and lost gain from copying repeated tokens"
UNJUDGED = Outcome(key="two_layers", verdict=UNTESTABLE, untestable_reason=SHORT)


def outcomes(*verdicts):
    """Return outcomes with these verdicts for the first claims in order."""
    return [Outcome(key=each.key, verdict=verdict) for each, verdict in zip(EVERY, verdicts, strict=False)]


def chosen(n=40, heads=2, head=None):
    source = SyntheticSource(SyntheticSpec(n=n, d=2, heads=heads))
    return ChosenInput(source, source.load(), head)


def csv_rows(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


def claim_links(*numbers):
    """Return the links to the claims with these numbers."""
    return [f'[{n}](#?claim={(known := EVERY[n - 1]).key} "{n}: {known.short}")' for n in numbers]


def filters(*texts, chosen="all"):
    """Return the links that choose a verdict, by their texts; the first shows all claims."""
    icons = {
        "holds": ":green-badge[:material/check_circle:",
        "partly": ":orange-badge[:material/contrast:",
        "fails": ":red-badge[:material/cancel:",
        "untestable": ":blue-badge[:material/help:",
        "unchecked": ":gray-badge[:material/remove:",
    }
    links = {"all": f"[:gray-badge[All {len(claims.all_claims())}]](#?verdict=all)"}
    links |= {word: f"[{icons[word]} {text}]](#?verdict={word})" for word, text in texts}
    return " ".join(f"**{link}**" if word == chosen else link for word, link in links.items())


@pytest.mark.parametrize(
    ("verdicts", "held", "texts"),
    [
        (
            [HOLDS] * 3 + [PARTLY] * 2 + [FAILS] * (ALL - 5),
            f"**2 of {ALL - FIXED} tested claims that depend on your input hold.** 1 of {FIXED} {OTHERS} holds. ",
            [("holds", "3 hold"), ("partly", "2 partly hold"), ("fails", f"{ALL - 5} do not hold")],
        ),
        (
            [HOLDS] + [PARTLY] + [FAILS] + [UNTESTABLE] * (ALL - 4),
            f"**1 of 2 tested claims that depend on your input holds.** 0 of 1 {OTHERS} hold. ",
            [
                ("holds", "1 holds"),
                ("partly", "1 partly holds"),
                ("fails", "1 does not hold"),
                ("untestable", f"{ALL - 4} untestable"),
                ("unchecked", "1 not run"),
            ],
        ),
        (
            [FAILS] * (ALL - 1),
            f"**0 of {ALL - 1 - FIXED} tested claims that depend on your input hold.** 0 of {FIXED} {OTHERS} hold. ",
            [("fails", f"{ALL - 1} do not hold"), ("unchecked", "1 not run")],
        ),
        (
            [UNTESTABLE],
            "**No claim that depends on your input is tested.** ",
            [("untestable", "1 untestable"), ("unchecked", f"{ALL - 1} not run")],
        ),
        (
            [HOLDS] * 2 + [UNTESTABLE] * (ALL - 2),
            "**2 of 2 tested claims that depend on your input hold.** ",
            [("holds", "2 hold"), ("untestable", f"{ALL - 2} untestable")],
        ),
        (
            [FAILS],
            "**0 of 1 tested claims that depend on your input hold.** ",
            [("fails", "1 does not hold"), ("unchecked", f"{ALL - 1} not run")],
        ),
        ([], "", [("unchecked", f"{ALL} not run")]),
    ],
)
def test_the_summary_counts_the_verdicts_and_links_to_their_claims(verdicts, held, texts):
    assert board_words.summary(outcomes(*verdicts), "all") == held + filters(*texts)


def test_the_claims_with_one_verdict_are_counted_apart_once_all_checks_are_done():
    found = [Outcome(key=each.key, verdict=HOLDS) for each in EVERY if each.theorem][:2]
    alone = "**No claim that depends on your input is tested.** "
    assert board_words.summary(found, "all", 2).startswith(f"{alone}2 of 2 {OTHERS} hold. **[:gray-badge[All ")
    assert board_words.summary(found, "all", 3).startswith(f"{alone}**[:gray-badge[All ")


def test_a_claim_holds_if_all_conditions_of_its_rule_are_met():
    for each in claims.discover().values():
        assert isinstance(each.verdict.holds, Condition) or each.verdict.holds.combine is all


def test_the_first_claims_depend_on_the_input():
    assert not any(claims.claim(key).theorem for key in board_words.FIRST_KEYS)


def test_the_chosen_verdict_is_bold_and_shown_without_claims():
    text = board_words.summary(outcomes(*[HOLDS] * ALL), "fails")
    assert text.endswith(filters(("holds", f"{ALL} hold"), ("fails", "0 do not hold"), chosen="fails"))


def test_each_verdict_has_its_icon_and_colour_in_the_strip():
    verdicts = (HOLDS, PARTLY, FAILS, UNTESTABLE, None)
    badges = [
        ":gray-badge[:green[:material/check_circle:] 1] :small[A Taylor series of softmax beats one of exp]",
        ":gray-badge[:orange[:material/contrast:] 2] :small[A log n factor keeps entropy constant]",
        ":gray-badge[:red[:material/cancel:] 3] :small[Doubling tokens quadruples score memory]",
        ":gray-badge[:blue[:material/help:] 4] :small[Squared ReLU's sums grow more slowly than n]",
        ":gray-badge[:gray[:material/remove:] 5] :small[Atrous and local attention compute less]",
    ]
    for each, verdict, badge in zip(EVERY, verdicts, badges, strict=False):
        name = f"{each.number}: {each.short} ({words.verdict_name(verdict) if verdict else 'not run'})"
        if each.theorem:
            name, badge = f"{name[:-1]}; on every input)", badge[:-1] + " :gray[(on every input)]]"
        assert board_words.tile(each, verdict) == f'[{badge}](#?claim={each.key} "{escape_markdown(name)}")'
    assert ":gray[(on every input)]" in board_words.tile(EVERY[2], PARTLY)
    assert "(holds; on every input)" in board_words.tile(EVERY[2], HOLDS)
    assert "every input" not in board_words.tile(EVERY[2], UNTESTABLE) + board_words.tile(EVERY[1], HOLDS)


def test_every_claim_has_a_short_name_of_its_own():
    short = [claim.short for claim in (*EVERY, *claims.trained_claims())]
    assert len(set(short)) == len(short)
    assert all(len(name.split()) >= 3 and len(name) <= 44 for name in short), "a title fits in one line of a card"
    first = EVERY[0]
    assert words.title(first) == f"**1. {first.short[0].upper()}{first.short[1:]}**"


def test_the_strip_names_a_subject_and_marks_the_opened_claim():
    first, *others, second = (claim for claim in EVERY if claim.subject == "delta")
    tiles = board_words.tiles("delta", {first.key: HOLDS}, second.key)
    links = [board_words.tile(first, HOLDS), *(board_words.tile(each, None) for each in others)]
    links = " ".join([*links, f"**{board_words.tile(second, None)}**"])
    assert tiles == f"**Delta rule**\n\n{links}"


def unmet(outcome):
    """Return the lines of a card about unmet conditions."""
    return condition_words.unmet_conditions(outcome).replace(r"\:", ":").split("  \n")


def changed_outcome(key, /, measured_heads=0, **changed):
    """Return the outcome of a claim with these numbers; its other numbers are 1."""
    known = claims.claim(key)
    numbers = dict.fromkeys((each.name for each in known.quantities), 1.0) | changed
    row = cosine_closest.KernelRow(kernel=cosine_closest.COSINE, of=cosine_closest.MATRIX, head=None, error=0.5)
    rows = tuple(replace(row, head=head) for head in (*range(measured_heads), None))
    return Outcome(key=key, verdict=known.verdict(numbers, known.bounds), numbers=numbers, rows=rows)


@pytest.mark.parametrize(
    ("key", "changed", "expected"),
    [
        ("landmark_inverse", {"iterated_wins": 80.0, "exact_wins": 8.0}, "The claim needs at least 75%"),
        # On each side of a value, the nearer bound is needed.
        (
            "sparse_costs",
            {"saving": 3.0, "local": 1.0},
            "Cost of full attention ÷ cost of atrous attention: 3 (the claim needs at least 3.8)",
        ),
        (
            "sparse_costs",
            {"saving": 5.0, "local": 1.0},
            "Cost of full attention ÷ cost of atrous attention: 5 (the claim needs at most 4.2)",
        ),
        (
            "maximum_disperses",
            {"softmax_falls": 4.0, "softmax_log_n_falls": 1.0, "sigmoid_falls": 9.0, "relu2_falls": 9.0},
            "Drop in softmax's accuracy in finding the largest number, from the fewest to the most numbers: "
            f"4{NBSP}percentage points (the claim needs more than 5)",
        ),
        (
            "cosine_closest",
            {"heads": 60.0, "cosine": 0.6, "uniform": 0.5},
            "Matrix error of the kernel 1 + cos(q, k): 60% (the claim needs less than 50%)",
        ),
    ],
)
def test_a_card_names_an_unmet_condition_and_what_the_claim_needs(key, changed, expected):
    assert unmet(changed_outcome(key, **changed))[-1] == f"{UNMET} {expected}"


@pytest.mark.parametrize(
    ("key", "changed", "heads", "expected"),
    [
        ("cosine_closest", {"heads": 100 / 12, "cosine": 0.5}, 12, ["The claim needs at least 6"]),
        ("cosine_closest", {"heads": 0.0, "cosine": 0.5}, 1, []),  # as the finding says
        (
            "cosine_closest",
            {"heads": 100.0, "cosine": 2.0},
            1,
            ["Matrix error of the kernel 1 + cos(q, k): 200% (the claim needs less than 100%)"],
        ),
        (
            "landmark_inverse",
            {"iterated_wins": 0.0, "exact_wins": 100.0},
            2,
            [
                "Heads in which inverting Nyström's landmark matrix in six iterations lowers the matrix error: 0 of 2 "
                "(the claim needs 2)"
            ],
        ),
        (
            "landmark_inverse",
            {"iterated_wins": 0.0, "exact_wins": 100.0},
            0,
            [
                "Heads in which inverting Nyström's landmark matrix in six iterations lowers the matrix error: 0% "
                "(the claim needs at least 75%)"
            ],
        ),
    ],
)
def test_an_unmet_share_of_heads_is_a_number_of_heads(key, changed, heads, expected):
    outcome = changed_outcome(key, measured_heads=heads, **changed)
    assert outcome.heads == heads
    assert unmet(outcome)[1:] == [f"{UNMET} {text}" for text in expected]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (12, "in 3 of 12 heads. The exact inverse lowers this error in all 12 heads."),
        (1, "in no head. The exact inverse lowers this error in this head."),
        (0, "in 25% of the heads. The exact inverse lowers this error in 100% of the heads."),
    ],
)
def test_a_finding_counts_heads_if_their_number_is_known(heads, expected):
    known = claims.claim("landmark_inverse")
    numbers = dict.fromkeys((each.name for each in known.quantities), 1.0)
    numbers |= {"iterated_wins": 0.0 if heads == 1 else 25.0, "exact_wins": 100.0}
    row = cosine_closest.KernelRow(kernel=cosine_closest.COSINE, of=cosine_closest.MATRIX, head=None, error=0.5)
    rows = tuple(replace(row, head=head) for head in range(heads))
    outcome = Outcome(key=known.key, verdict=PARTLY, numbers=numbers, rows=rows)
    assert words.finding(outcome, brief=True).endswith(
        f"lowers the matrix error (difference from softmax's matrix) {expected}"
    )
    assert expected in words.plain_finding(outcome)


@pytest.mark.parametrize(
    ("share", "heads", "expected"),
    [
        ("3% 的头", "这个头", "见于这个头。"),
        ("3% 的头", "0 个头", "见于 0 个头。"),
        ("3% of the heads", "this head", "见于 this head。"),
    ],
)
def test_a_chinese_word_that_replaces_a_number_has_no_space_before_it(share, heads, expected):
    assert words._with_words(f"见于 {share}。", share, heads) == expected


def test_findings_about_several_methods_or_quartiles_are_true_for_one_head():
    """Check a head in which softmax is sparser than two of three methods, and a quartile over a single head."""

    def brief(key, row, **numbers):
        known = claims.claim(key)
        values = dict.fromkeys((each.name for each in known.quantities), 1.0) | numbers
        return words.finding(Outcome(key=key, verdict=PARTLY, numbers=values, rows=(row,)), brief=True)

    sparsest = brief("linear_sparsity", SparsityRow(variant="Softmax", head=0, sparsity=0.5), less=0.0)
    end = "In no head, softmax has sparser rows than all three: linear attention, Hedgehog and cosFormer."
    assert sparsest.replace(r"\:", ":").endswith(end)
    row = LandmarkRow(share=4, landmarks=10, future=0.0, form="equal weights", head=0, error=0.5)
    assert brief("segment_means", row, most=1.25).endswith(
        "Averaging neighbours gives at most 1.25× the matrix error (difference from softmax's matrix) of k-means."
    )


def test_the_row_of_the_claim_s_subject_is_bold_and_only_the_error_that_decides_is_shown():
    row = cosine_closest.KernelRow(kernel=cosine_closest.COSINE, of=cosine_closest.MATRIX, head=0, error=0.5)
    rows = tuple(replace(row, kernel=kernel) for kernel in (*cosine_closest.KERNELS, cosine_closest.UNIFORM))
    other = replace(row, of=cosine_closest.OUTPUT, error=0.25)
    chart = board.picture(Outcome(key="cosine_closest", verdict=PARTLY, rows=(*rows, other)))
    assert ">50%<" in chart
    assert ">matrix error (%) <" in chart
    assert "25%" not in chart
    assert re.findall(r"font-weight:bold\">([^<]+)", chart) == ["1 + cos(q, k)"]
    assert chart.count("bold") == 2


@pytest.mark.parametrize(("lowest", "start"), [(90.0, "90"), (89.0, "0")])
def test_the_axis_of_accuracies_begins_at_zero_unless_all_are_high(lowest, start):
    row = TrainedRow(model="softmax", seed=0, step=400, length=32, items=4, accuracy=100.0)
    rows = (row, replace(row, length=256, accuracy=lowest))
    chart = board.picture(Outcome(key="relu2_longer", verdict=PARTLY, rows=rows))
    assert f"<small>{start}</small>" in chart


def test_a_small_figure_has_only_the_lines_that_its_sentence_names():
    rows = [
        drowning.ShareRow(attention="", of=of, n=n, head=0, share=5.0, kept=None)
        for of in (*drowning.EARLY.values(), *drowning.LATE.values())
        for n in (16, 32)
    ]
    shown = board.series(Outcome(key="drowning", verdict=PARTLY, rows=tuple(rows)))
    assert list(shown) == [drowning.EARLY[drowning.PLAIN], drowning.EARLY[drowning.SOFTMAX]]


@pytest.mark.parametrize("heads", [1, 3])
def test_points_of_a_single_head_have_a_row_each(heads):
    rows = [SparsityRow(variant=name, head=i, sparsity=0.5) for i in range(heads) for name in ("Softmax", "Linear")]
    chart = board.picture(Outcome(key="linear_sparsity", verdict=PARTLY, rows=tuple(rows)))
    assert ('class="chart bars"' in chart) == (heads == 1)
    assert chart.count(">0.500<") == (2 if heads == 1 else 0)


def test_a_condition_on_more_heads_than_a_share_needs_the_next_whole_number():
    known = claims.claim("cosine_closest")
    numbers = {"heads": 25.0, "duels": 0.0, "cosine": 0.5, "best": 0.4, "uniform": 0.9}
    row = cosine_closest.KernelRow(kernel=cosine_closest.COSINE, of=cosine_closest.MATRIX, head=0, error=0.5)
    outcome = Outcome(
        key=known.key, verdict=PARTLY, numbers=numbers, rows=tuple(replace(row, head=i) for i in range(12))
    )
    assert condition_words.conditions(outcome).replace(r"\:", ":") == (
        f"{MEASURED}  \n{MET} matrix error of the kernel 1 + cos(q, k), median over heads: 50% (less than 90%)  \n"
        f"{UNMET} heads in which the kernel 1 + cos(q, k) is closest to softmax: 3 of 12 (at least 6)"
    )


NEAR = {"mass": 45.9, "even": 13.0, "error": 96.3, "mass_rest": 20.0, "even_rest": 13.0, "error_rest": 9.0}


def test_the_conditions_that_are_met_come_before_those_that_are_not():
    def listed(key, **changed):
        return condition_words.conditions(changed_outcome(key, **changed)).replace(r"\:", ":").split("  \n")

    equal, median = "at least 26%, 2 times what equal weights give", "median over heads"
    assert listed("near_diagonal", **NEAR) == [
        MEASURED,
        f"{MET} attention within the window, {median}: 45.9% ({equal})",
        f"{MET} output error without the first token, {median}: 9% (at most 25%)",
        f"{UNMET} output error of local attention, {median}: 96.3% (at most 25%)",
        f"{UNMET} attention within the window without the first token, {median}: 20% ({equal})",
    ]
    held = listed("near_diagonal", **NEAR | {"error": 9.0, "mass_rest": 45.9})
    assert [line.split(" ")[0] for line in held] == ["Measured", *[MET] * 4]
    failed = listed("near_diagonal", **NEAR | {"mass": 20.0, "error_rest": 96.3})
    assert [line.split(" ")[0] for line in failed] == ["Measured", *[UNMET] * 4]
    assert listed("two_layers", two=95.0) == [MEASURED, f"{UNMET} {BOTH_LAYERS}: 95% (100%)"]


def test_a_card_shows_the_unmet_conditions_and_the_number_of_those_that_are_met():
    error = "Output error of local attention: 96% (the claim needs at most 25%)"
    mass = "Attention within the window{}: 20% (the claim needs at least 26%, 2 times what equal weights give)"
    assert unmet(changed_outcome("near_diagonal", **NEAR)) == [
        ":orange[:material/contrast:] 2 of 4 conditions are met",
        f"{UNMET} {error}",
        f"{UNMET} {mass.format(' without the first token')}",
    ]
    assert unmet(changed_outcome("near_diagonal", **NEAR | {"error": 9.0, "mass_rest": 45.9})) == [""]
    failed = unmet(changed_outcome("near_diagonal", **NEAR | {"mass": 20.0, "error_rest": 96.3}))
    assert failed[:2] == [":red[:material/cancel:] 0 of 4 conditions are met", f"{UNMET} {mass.format('')}"]
    assert len(failed) == 5
    assert unmet(changed_outcome("two_layers", two=95.0)) == [f"{UNMET} The claim needs 100%"]
    assert unmet(changed_outcome("two_layers", two=80.0)) == [f"{UNMET} The claim needs 100%"]
    leaks = {"leaking": 6.0, "pooled": 6.0, "moved": 0.0, "left": 1.0}
    assert unmet(changed_outcome("pooling_leaks", **leaks)) == [
        ":orange[:material/contrast:] 2 of 3 conditions are met",
        f"{UNMET} Variants with pools that leak even if each pool is hidden from queries before its last token: 1 of 6 "
        "(the claim needs 6)",
    ]
    assert unmet(changed_outcome("pooling_leaks", **leaks | {"leaking": 5.0}))[0].endswith("1 of 3 conditions are met")
    closest = changed_outcome("cosine_closest", heads=8.0, cosine=0.5)
    assert unmet(closest) == [
        ":red[:material/cancel:] 1 of 2 conditions are met; to hold partly, this claim needs more",
        f"{UNMET} The claim needs at least 50%",
    ]


@pytest.mark.parametrize(
    ("mass", "error", "expected"),
    [
        (45.9, 96.3, "gives 46% of its weight|would give 13%"),
        (9.34, 96.3, "gives 9.34% of its weight"),
        (26.4, 96.3, "gives 26.4% of its weight"),  # 26% would look like the threshold.
        (99.7, 96.3, "gives 99.7% of its weight"),  # 100% would look like the whole.
        (45.9, 25.4, "gives 45.9% of its weight"),  # 25% would look like the threshold of the error.
    ],
)
def test_a_card_has_whole_per_cents_unless_they_hide_a_difference(mass, error, expected):
    text = words.finding(changed_outcome("near_diagonal", **NEAR | {"error": error, "mass": mass}), brief=True)
    assert all(part in text for part in expected.split("|"))


def test_a_measured_threshold_with_a_factor_comes_from_equal_weights():
    for each_claim in EVERY:
        labels = {each.name: each.label for each in each_claim.quantities}
        for condition in each_claim.verdict:
            if isinstance(condition.threshold, Measured) and condition.threshold.factor:
                assert "equal weights" in labels[condition.threshold.quantity]


def test_a_badge_has_the_icon_and_the_colour_of_its_verdict():
    assert words.badge(FAILS) == ":red-badge[:material/cancel: does not hold here]"


def test_a_card_marks_a_verdict_that_is_the_same_on_every_input_and_shows_the_figure():
    card = board.card(FOUND)
    article = board_words.origin(FOUND.claim)
    assert card.startswith(f':green-badge[:material/check_circle: holds] {article}\n\n<span class="claim">')
    assert article == f"{words.article(FOUND.claim.source)} :small[·{NBSP}Sparse{NBSP}attention]"
    [recorded, *_rest] = claims.trained_claims()
    assert board_words.origin(recorded) == words.article(recorded.source), "it has no subject"
    details = (
        f'[Details →](#?claim=two_layers "Details → {FOUND.claim.number}: local and atrous layers connect all tokens")'
    )
    assert card.endswith(f"</span>\n{words.finding(FOUND, brief=True)}\n\n{details}")
    assert condition_words.unmet_conditions(FOUND) == condition_words.unmet_conditions(UNJUDGED) == ""
    assert "</i>local layers</span>" in card
    assert f'alt="{words.figure_description(FOUND.claim)}"'.replace(":", "&#58;") in card
    badge = f":blue-badge[:material/help: {UNTESTABLE.value}]"
    assert board.card(UNJUDGED).startswith(f"{badge} {article}\n\n{words.finding(UNJUDGED)}\n\n[Details →]")
    nothing = replace(FOUND, rows=(replace(FOUND.rows[0], share=float("nan")),))
    assert "<img" not in board.card(nothing)
    rows = claims.claim("nystrom_all_landmarks")
    assert words.badges(Outcome(key=rows.key, verdict=HOLDS)).endswith(":gray-badge[on every input]")
    theorem = Outcome(key=rows.key, verdict=UNTESTABLE, untestable_reason=SHORT)
    assert "every input" not in board.card(theorem)


def test_claims_on_request_have_a_reason():
    model_task, timed = sorted(claims.tasks(TEXT, keys=["sparse_time", "four_sinks"]), key=lambda task: task.timed)
    assert words.on_request_reason(timed) == "Checked only on request, because the check measures computing times:"
    assert (
        words.on_request_reason(model_task)
        == "Checked only on request, because SmolLM2 must process the text a dozen times:"
    )
    assert (board_words.request_label(1), board_words.request_label(2)) == ("Run 1 more check", "Run 2 more checks")


def test_findings_have_numbers_or_a_reason():
    assert words.plain_finding(FOUND).startswith(
        "The atrous layer reaches keys in steps of about √n tokens, and the local layer fills the gaps. Together, "
        "they connect all pairs of tokens. A layer of local attention alone connects "
        "12.3% of the pairs of tokens, two such layers connect 40%"
    )
    assert "12.3%" in words.finding(FOUND)
    assert words.finding(FOUND, brief=True).endswith("they connect all pairs of tokens.")
    assert words.plain_finding(UNJUDGED) == "At least 16 tokens are needed, but this input has 3."


def test_a_note_follows_if_a_causal_model_was_measured_without_its_mask():
    def finding_of(future):
        numbers = dict.fromkeys(("residual", "error", "later"), 0.1) | {"future": future}
        return words.plain_finding(Outcome(key="six_iterations", verdict=HOLDS, numbers=numbers))

    assert finding_of(8.25) == f"{finding_of(0)} {MEASURED_UNMASKED.format(future=8.25)}"


def test_texts_of_claims_are_no_markup():
    odd = replace(claims.claim("landmark_inverse"), rule="a*b_c [x](y) 4% ± {most}", theorem="x_y")
    threshold = odd.thresholds()["most"]
    assert words.rule_text(odd) == rf"a\*b\_c \[x\](y) 4% ± {threshold} In all other cases, the claim does not hold."
    assert words.theorem_note(odd) == r"**The same on every input.** x\_y"
    assert words.theorem_note(replace(odd, theorem="")) == ""
    why = UntestableError("{x} is none", x="[a](b)")
    assert words.finding(Outcome(key="drowning", verdict=UNTESTABLE, untestable_reason=why)) == r"\[a\](b) is none"


@pytest.mark.parametrize(
    ("options", "longest", "key", "expected"),
    [
        ({}, 40, "two_layers", "The check uses all 2 heads and 40 tokens."),
        ({"head": 1}, 40, "two_layers", "The check uses head 1 of 2 and 40 tokens."),
        ({"head": 0}, 40, "two_layers", "The check uses head 0 of 2 and 40 tokens."),
        ({"heads": 1, "head": 0}, 40, "two_layers", "The check uses one head and 40 tokens."),
        ({"n": 1}, 1, "two_layers", "The check uses all 2 heads and 1 token."),
        ({}, 41, "memory_quadruples", "The check uses all 2 heads and lengths up to 41 tokens."),
        ({}, 40, "memory_quadruples", "The check uses all 2 heads and 40 tokens."),
        ({}, 41, "two_layers", "The check uses all 2 heads and 40 tokens."),
        ({"n": 512}, 512, "two_layers", "The check uses all 2 heads and 512 tokens."),
        ({"n": 513}, 512, "two_layers", "The check uses all 2 heads and the first 512 of 513 tokens."),
        (
            {"n": 513, "head": 1},
            512,
            "memory_quadruples",
            "The check uses head 1 of 2 and the first 512 of 513 tokens.",
        ),
    ],
)
def test_the_scope_names_the_input_and_the_heads_of_the_checks(options, longest, key, expected):
    assert words.scope(chosen(**options), longest, claims.claim(key)) == expected


def test_the_scope_of_a_claim_about_smollm2_names_the_model():
    text = words.scope(chosen(), 40, claims.claim("four_sinks"))
    assert text == (
        "This claim is checked with the language model SmolLM2. The verdict does not depend on the chosen model, layer "
        "and heads."
    )


def test_the_scope_of_a_claim_about_images_names_the_image():
    source = ImageSource(size=24)
    image = ChosenInput(source, source.load(), None)
    assert words.scope(image, 512, claims.claim("square_window")) == "The check uses the whole image."
    assert words.scope(image, 512, claims.claim("mean_output")).endswith(" tokens.")


def test_the_footnote_explains_failed_claims_as_results():
    note = "Attention Lab chose the limits of all conditions."
    assert board_words.footnote(outcomes(HOLDS, PARTLY, UNTESTABLE)) == board_words.footnote([]) == note
    assert board_words.footnote(outcomes(HOLDS, FAILS)) == (
        f"{note} “Does not hold here” is a result on this input, not an error. The sources make their claims about "
        "other models, lengths and tasks."
    )


def test_claims_without_a_result_are_listed_below_their_reasons():
    first, second, third = EVERY[:3]
    found = {third.key: Outcome(key=third.key, verdict=UNTESTABLE)}
    assert board_words.unjudged({first.key: "a", third.key: "b", second.key: "a"}, found) == (
        f"a\n\n{board_words.tile(first, None)} {board_words.tile(second, None)}\n\nb\n\n"
        f"{board_words.tile(third, UNTESTABLE)}"
    )


def test_the_claims_about_trained_models_are_counted_without_those_not_recorded():
    found = outcomes(HOLDS, HOLDS, PARTLY, FAILS)
    verdicts = f"1 partly holds. **1 does not hold:** number {claim_links(4)[0]}."
    where = (
        "The claims are judged on recorded training runs of small models, not on your input. Recall means that a model "
        "reads pairs of a key and a value, and gives the value when a key appears again."
    )
    assert board_words.trained_summary(found, 4) == f"**2 of 4 tested claims hold.** {verdicts} {where}"
    missing = "3 are not tested, because their training runs are not recorded."
    assert board_words.trained_summary(found, 7) == f"**2 of 4 tested claims hold.** {verdicts} {missing} {where}"
    assert "1 is not tested, because its training runs are not recorded." in board_words.trained_summary(found, 5)
    assert board_words.trained_summary([], 7).startswith("**No claim is tested yet.** 7 are not tested")


def test_a_claim_about_trained_models_is_judged_regardless_of_the_input():
    [first, *_rest] = claims.trained_claims()
    text = (
        "This claim is judged on recorded training runs with three random seeds. The verdict does not depend on the "
        "input."
    )
    assert words.scope(chosen(), 40, first) == words.scope(chosen(heads=1), 512, first) == text


def test_a_claim_has_a_headline_and_a_source():
    odd = replace(EVERY[1], statement="a_b", source=Paper("On [x]", 2020, "https://example.org/a_b", authors="Su"))
    assert words.headline(odd) == r"## 2. a\_b"
    assert words.article(odd.source) == f':small[[Su,{NBSP}2020](https://example.org/a_b "On \\[x\\]")]'
    assert (
        words.figure_description(odd) == f"Vertical axis: {odd.figure.y.title}. Horizontal axis: {odd.figure.x.title}."
    )
    assert words.source_text(odd.source) == r"Source: [Su, On \[x\]](https://example.org/a_b), 2020"


def test_the_longer_input_depends_on_the_source():
    assert longer_input.button_label(SYNTHETIC, 128) == "Use n = 128"
    assert longer_input.button_label(TEXT, 150) == "Use the long preset (150 tokens)"
    assert longer_input.instructions(TEXT, 400) == "Write or paste a text of at least 400 tokens."
    assert longer_input.instructions(FILE, 16) == "Upload a sequence of at least 16 tokens."
    assert longer_input.instructions(TRAINED, 48) == "Choose another input, with at least 48 tokens."


def test_the_table_of_all_claims_has_numbers_with_units():
    [header, found, unjudged] = csv_rows(board.table([FOUND, UNJUDGED]))
    assert header == ["number", "claim", "verdict", "finding", "numbers", "rule", "source"]
    known = claims.claim("two_layers")
    assert found[:3] == [str(known.number), known.statement, "holds"]
    assert found[3] == words.plain_finding(FOUND)
    assert found[4].startswith(f"{BOTH_LAYERS}: 100%; share of token pairs connected by a local layer alone: 12.3%; ")
    assert found[5:] == [
        "Two tokens are connected if a path of weights above zero leads from one to the other through the layers. The "
        "claim holds if a layer of local attention (nearby keys) and a layer of atrous attention (regularly spaced "
        "keys) together connect 100% of all pairs of tokens (mean over heads). It partly holds if they connect "
        "at least 90%.",
        f"{known.source.heading}, Su, 2019, {known.source.url}",
    ]
    assert unjudged[2:5] == ["not testable on this input", "At least 16 tokens are needed, but this input has 3.", ""]
    linear = {each.name: 2.0 for each in claims.claim("linear_cost").quantities}
    [_, row] = csv_rows(board.table([Outcome(key="linear_cost", verdict=HOLDS, numbers=linear)]))
    assert row[4].endswith(f"multiply-adds of linear attention: 2; longest measured length: 2{NBSP}tokens")


def test_the_rows_of_a_claim_are_a_table_with_its_name():
    names = [field.name for field in fields(FOUND.rows[0])]
    assert csv_rows(claim.table(FOUND)) == [["claim", *names], ["two_layers", "local layers", "1", "0", "12.5", "30.0"]]
    missing = replace(FOUND, rows=(replace(FOUND.rows[0], keys=None),))
    assert csv_rows(claim.table(missing))[1][-1] == ""
