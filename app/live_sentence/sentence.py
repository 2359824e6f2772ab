"""One sentence, drawn once per attention variant, with arcs from a chosen word to the words that it attends to.

Each variant has a slider for its budget, the setting that trades cost for accuracy. The attention matrices for every
step of every slider are sent in advance as half floats, with NaN for masked pairs, so that a dragged slider needs no
request. They are a quarter of a megabyte for 40 tokens, and ten kilobytes for 15 tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from app.board_messages.packing import encode
from app.matrix_board.component import mount, receiver
from app.words.i18n import C_, _
from attention_core.inputs.labels import number_repeats

_HERE = Path(__file__).parent
_SENTENCE = receiver("attention_lab_sentence", _HERE / "sentence.css")


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """The sentence with the weights of one variant, which may have a slider with S steps.

    Attributes:
        key: the variant's key.
        title: the variant's name on screen.
        knob: the slider's label; empty without a slider.
        note: the text in place of the slider.
        why: sentences with the reason for a weight smaller ("less") or larger ("more") than softmax's, for nearly equal
            weights ("even"), for negative weights ("negative"), and for another weight at the last step
            ("unaveraged"); all are optional.
        settings: the slider's value at each step; None without a slider.
        variant_words: the variant with its setting at each step, as in links: ``local~window~8``.
        weights: the variant's matrix at each step, ``[S, n, n]`` for n words; NaN for pairs that are not allowed.
        errors: the relative error of each word's output at each step, ``[S, n]``.
        growths: the factor by which the variant's cost grows at each step, if the text becomes twice as long.
    """

    key: str
    title: str
    knob: str
    note: str
    settings: Sequence[int | None]
    variant_words: Sequence[str]
    weights: np.ndarray
    errors: Sequence[Sequence[float]]
    growths: Sequence[float]
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SentenceState:
    """The word and the slider positions that the visitor has chosen.

    Attributes:
        word: the index of the query word.
        steps: the position of each slider, by its row's key.
    """

    word: int
    steps: Mapping[str, int]


def live_sentence(
    tokens: Sequence[str],
    rows: Sequence[Row],
    choices: SentenceState,
    *,
    key: str,
    on_turn: Callable[[SentenceState], None],
    link: str,
    row_parameter: str,
    unshown: Sequence[float],
    caption: str,
    notes: Sequence[str] = (),
) -> None:
    """Draw the sentence once per variant, with the weights of the chosen word and the variant's slider.

    Args:
        tokens: the words of the sentence.
        rows: the variants; the first is the reference.
        choices: the word and slider positions to start with.
        key: the element's key, unique in the app.
        on_turn: called before the script's next run, when the visitor pauses after changing the word or a slider.
        link: the address of the page Matrices, to which the browser adds the variants of all rows and the word.
        row_parameter: the name of that page's query parameter for the word's index.
        unshown: for each word, the share of its weight in the first row that is on tokens that are not drawn.
        caption: sentences about the weights, under the rows.
        notes: sentences behind the button that explains the numbers.
    """
    texts = _texts() | {"caption": caption, "notes": notes}
    settings = {
        "word": choices.word,
        "steps": dict(choices.steps),
        "link": link,
        "row_parameter": row_parameter,
        "unshown": list(unshown),
        "texts": texts,
    }

    def report(event: object) -> None:
        if isinstance(event, dict):
            on_turn(SentenceState(int(event["word"]), dict(event["steps"])))

    message = pack(tokens, rows, key=key)
    mount(message, key=key, events={"turn": report}, settings=settings, receiver=_SENTENCE)


def pack(tokens: Sequence[str], rows: Sequence[Row], *, key: str) -> bytes:
    """Return the message to the browser; arguments are as in `live_sentence`.

    Raises:
        ValueError: if a row does not have one square matrix of the sentence's size for each step.
    """
    for row in rows:
        if row.weights.shape != (len(row.settings), len(tokens), len(tokens)):
            raise ValueError(f"{row.key}: {row.weights.shape} for {len(row.settings)} steps and {len(tokens)} tokens")
    header = {
        "kind": "sentence",
        "key": key,
        "tokens": list(tokens),
        "labels": list(number_repeats(tokens)),
        "rows": [{name: value for name, value in vars(row).items() if name != "weights"} for row in rows],
    }
    return encode(header, b"".join(row.weights.astype("<f2").tobytes() for row in rows))


def _texts() -> dict[str, object]:
    """Return the component's texts in the visitor's language; the browser fills in the words in braces."""
    return {
        "unshown": _("[CLS] and [SEP] (not drawn) get {share} of softmax's weight; the percentages divide the rest."),
        "legend": _("Framed: query. Crossed out: hidden."),
        "negative": _("Orange: negative."),
        "headings": [_("output error\nof “{word}”"), _("cost if the\ntext doubles")],
        "help": _("Query word. Use the arrow keys to move between words."),
        "title": _("{title} ({knob} {setting})"),
        "most": _("Among the words, “{word}” attends most to “{target}” with softmax ({weight})."),
        "itself": _("Among the words, “{word}” attends most to itself with softmax ({weight})."),
        "others": _("{list}."),
        "gives": _("{row} gives {weight}"),
        "further": _("{row} {weight}"),
        "same": _("All variants give “{target}” about the same weight."),
        "attends": _("{row}: “{word}” attends to {list}."),
        "nowhere": _("{row}: “{word}” gives every token less than 0.5% of its attention."),
        "target": _("“{target}” {weight}"),
        "items": _(C_("two items of a list", "{first}, {next}")),
        "list": _("{others} and {last}"),
        "sentences": _(C_("two sentences", "{first} {next}")),
        "open": _("Open in Matrices"),
        "notes_label": _("About these numbers"),
    }
