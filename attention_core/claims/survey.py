"""A survey of all claims on a fixed list of inputs, which counts how often each verdict occurs.

If a claim has one verdict on all inputs, it is a theorem, or the survey lacks an input with another verdict. The
survey's table has a remark on each such claim: why it is a theorem, or which input gives another verdict, if known.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version

import torch

from attention_core import claims
from attention_core.claims import Claim, ClaimTask, Verdict
from attention_core.experiments.task import Load, load
from attention_core.inputs import KINDS, Source, SyntheticSource, SyntheticSpec, TextSource

COMMAND = "python -m attention_core claims --survey"

OPENING = """The lighthouse had two keepers and one chair. Whoever was on watch stood, and whoever was off watch sat and
read aloud, so that the one who stood would not fall asleep. In winter they read letters, which were short; in summer
they read the almanac, which never ended."""
MIDDLE = """One night the lamp went out. The keeper who was standing went up with a new wick, and the keeper who was
sitting went on reading, louder, so that the ships would at least hear them. Nobody has ever found out whether it
helped, but the fishermen say that for an hour there was a voice over the water which gave the times of the tides."""
ENDING = """After that they wrote to the harbour office and asked for a second chair. The office answered that the
lighthouse had been built for one keeper, that two had been sent by mistake, and that the mistake had proved so useful
that nobody wished to mend it. The chair came in spring, on the boat that brought the oil. It was green, and a little
too low for the table. From then on both of them sat, and the lamp was watched by a mirror, which hung beside the
window and showed it to whoever looked up from the page. They kept the almanac open at the same day for a year, and when
the day came round again they agreed that it had been well described. The second winter was quieter than the first. The
letters were longer, and so were the answers."""
PROSE = {"a few sentences": OPENING, "two paragraphs": f"{OPENING} {MIDDLE}", "a page": f"{OPENING} {MIDDLE} {ENDING}"}
"""A text written for this survey, cut at three lengths."""
LIST = """One for the salt, two for the rope, three for the lamp, four for the oil. Then again: one for the salt, two
for the rope, three for the lamp, four for the oil. And once more, as every evening: one for the salt, two for the rope,
three for the lamp, four for the oil, and good night."""
"""A text that repeats itself."""
HEADS = 2
"""Number of heads of a synthetic input, each with its own random numbers. With as many heads as in a layer of a
model, these inputs would take most of the survey's time.
"""


@dataclass(frozen=True, kw_only=True)
class SurveyInput:
    """One input of the survey.

    Attributes:
        name: a short description.
        timed: whether claims that measure time are checked on this input; each takes seconds.
    """

    name: str
    source: Source
    head: int | None = None
    timed: bool = False


def _text_inputs() -> Iterator[SurveyInput]:
    """Yield texts in both models at several layers and lengths, then SmolLM2 heads that attend little to the future."""
    layers = {
        "a few sentences": {"minilm": (0, 2, 4), "smollm2": (0, 9, 18, 27)},
        "two paragraphs": {"minilm": (0, 1, 2, 3, 4, 5), "smollm2": (3, 6, 12, 24)},
        "a page": {"minilm": (0, 1, 2, 3, 4, 5), "smollm2": (1, 15)},
    }
    for name, models in layers.items():
        for model, chosen in models.items():
            for layer in chosen:
                yield _text(name, PROSE[name], model, layer, timed=layer == 0)
    for model, layer in (("minilm", 1), ("minilm", 5), ("smollm2", 4), ("smollm2", 21)):
        yield _text("a text that repeats itself", LIST, model, layer)
    for layer, head in ((12, 7), (12, 8), (18, 8)):
        yield _text("a page", PROSE["a page"], "smollm2", layer, head)


def _text(name: str, text: str, model: str, layer: int, head: int | None = None, *, timed: bool = False) -> SurveyInput:
    suffix = "" if head is None else f", head {head}"
    source = TextSource(" ".join(text.split()), model, layer)
    return SurveyInput(name=f"{name}, {model} layer {layer}{suffix}", source=source, head=head, timed=timed)


def _synthetic_inputs() -> Iterator[SurveyInput]:
    """Yield each kind of synthetic sequence with five combinations of settings, then some with extreme settings."""
    plain = SyntheticSpec(heads=HEADS)
    for seed, (n, d, sharpness, rope) in enumerate(
        ((48, 16, 1.0, False), (96, 32, 0.25, True), (128, 16, 4.0, False), (256, 32, 1.0, True), (256, 16, 4.0, False))
    ):
        for kind in KINDS:
            spec = replace(plain, kind=kind.key, n=n, d=d, sharpness=sharpness, seed=seed, rope=rope)
            yield _synthetic_input(spec, timed=kind is KINDS[0])
    for settings in (
        {"n": 10, "d": 8},
        {"n": 20, "d": 8, "kind": "needle"},
        {"n": 64, "d": 64},
        {"n": 64, "sharpness": 0.0},
        {"n": 128, "kind": "gaussian", "sharpness": 16.0},
        {"n": 128, "kind": "clustered", "sharpness": 16.0, "seed": 5},
        {"n": 128, "kind": "gaussian", "sharpness": 64.0},
        {"n": 256, "kind": "low_rank", "sharpness": 0.2},
        {"n": 512, "d": 16, "seed": 7},
    ):
        yield _synthetic_input(replace(plain, **settings))


def _synthetic_input(spec: SyntheticSpec, *, timed: bool = False) -> SurveyInput:
    suffix = ", RoPE" if spec.rope else ""
    name = f"{spec.kind}, d = {spec.d}, sharpness {spec.sharpness:g}, seed {spec.seed}{suffix}"
    return SurveyInput(name=name, source=SyntheticSource(spec), timed=timed)


INPUTS = (*_text_inputs(), *_synthetic_inputs())
"""Every input, fixed and seeded."""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The verdicts of the claims on every input.

    Attributes:
        inputs: the surveyed inputs.
        tokens: the number of tokens of each input.
        verdicts: the verdicts of each claim, by its key; one verdict for each input on which it was checked.
    """

    inputs: tuple[SurveyInput, ...]
    tokens: tuple[int, ...]
    verdicts: Mapping[str, tuple[Verdict, ...]]


def run(
    inputs: Sequence[SurveyInput] = INPUTS,
    *,
    keys: Sequence[str] | None = None,
    on_input: Callable[[int, SurveyInput], None] = lambda number, surveyed: None,
) -> Survey:
    """Check the claims on the inputs, one input after another, and return all verdicts.

    A claim that measures growing lengths measures a synthetic input only up to the length in the input's settings,
    and at most up to ``claims.LONGEST``.

    Args:
        inputs: the inputs to survey.
        keys: the keys of the claims; None for all claims.
        on_input: callback that receives the number (from 1) of every input and the input, before it is measured.

    Raises:
        LabError: if a model is not available, or a key is unknown.
    """
    verdicts_by_key: dict[str, list[Verdict]] = {claim.key: [] for claim in claims.chosen(keys)}
    tokens = []
    for number, surveyed in enumerate(inputs, start=1):
        on_input(number, surveyed)
        cached_load: Load = lru_cache(load)  # cached per input, because all claims load it at the same few lengths
        tokens.append(claims.length(surveyed.source, cached_load))
        for task in _tasks(surveyed, cached_load, list(verdicts_by_key)):
            verdicts_by_key[task.key].extend(outcome.verdict for outcome in claims.run(task, load=cached_load))
    verdicts = {key: tuple(verdicts_) for key, verdicts_ in verdicts_by_key.items()}
    return Survey(inputs=tuple(inputs), tokens=tuple(tokens), verdicts=verdicts)


def _tasks(surveyed: SurveyInput, cached_load: Load, keys: Sequence[str]) -> list[ClaimTask]:
    longest = claims.length(surveyed.source, cached_load)
    tasks = claims.tasks(surveyed.source, head=surveyed.head, load=cached_load, keys=keys, longest=longest)
    return [task for task in tasks if surveyed.timed or not task.timed]


def single_verdict(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the verdict that all testable inputs share; None if verdicts differ or no input is testable."""
    judged = {verdict for verdict in verdicts if verdict is not Verdict.UNTESTABLE}
    return judged.pop() if len(judged) == 1 else None


def table(survey: Survey) -> str:
    """Return the survey as a Markdown document: counts of verdicts, rules of the claims and inputs."""
    checked = [claim for claim in claims.all_claims() if claim.key in survey.verdicts]
    timed = sum(surveyed.timed for surveyed in survey.inputs)
    lines = [
        "# Verdicts of the claims on a fixed list of inputs",
        "",
        f"Written by `{COMMAND} --out docs/claims.md`, attention-lab {version('attention-lab')}, "
        f"torch {torch.__version__}.",
        "",
        f"{len(survey.inputs)} inputs, listed below. Claims that measure time were checked on {timed} of them, and "
        "their counts differ from run to run. A synthetic input grows to its own length only; on the Claims page it "
        f"grows to {claims.LONGEST} tokens.",
        "",
        *_rows("number", "claim", *Verdict, "remark"),
        *(_row(claim.number, claim.statement, *_counts(survey, claim), _remark(survey, claim)) for claim in checked),
        "",
        "## Rules",
        "",
        "If a rule gives no verdict for a result, the claim does not hold.",
        "",
        *(f"{claim.number}. {claim.rule.format(**claim.thresholds())}" for claim in checked),
        "",
        "## Inputs",
        "",
        *_rows("input", "tokens", "timed"),
        *(
            _row(surveyed.name, n, "yes" if surveyed.timed else "")
            for surveyed, n in zip(survey.inputs, survey.tokens, strict=True)
        ),
        "",
        *trained_lines(),
    ]
    return "\n".join(lines) + "\n"


def trained_lines() -> list[str]:
    """Return the claims about trained models with their verdicts on the recorded runs, as lines of Markdown."""
    source = SyntheticSource(SyntheticSpec())  # any source will do, because these claims read no input
    keys = [claim.key for claim in claims.trained_claims()]
    lines = [
        "## Claims about trained models",
        "",
        "These claims are judged on recorded training runs of small models with three seeds, not on the inputs above.",
        "",
    ]
    for task in claims.tasks(source, keys=keys):
        [outcome] = claims.run(task)
        claim, text = outcome.claim, " ".join(outcome.sentences).format(**outcome.formatted_numbers)
        verdict = "not recorded" if outcome.untestable_reason else outcome.verdict
        rule = claim.rule.format(**claim.thresholds())
        lines.append(f"{claim.number}. {claim.statement} **Verdict: {verdict}.** {text} Rule: {rule}")
    return lines


def _counts(survey: Survey, claim: Claim) -> list[int]:
    count = Counter(survey.verdicts[claim.key])
    return [count[verdict] for verdict in Verdict]


def _remark(survey: Survey, claim: Claim) -> str:
    if claim.theorem:
        return f"A theorem: {claim.theorem}"
    if single_verdict(survey.verdicts[claim.key]):
        return f"Not a theorem: {claim.counterexample or 'no input of this survey gave another verdict.'}"
    return ""


def _rows(*names: str) -> list[str]:
    return [_row(*names), _row(*("--" for _ in names))]


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
