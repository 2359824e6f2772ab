"""One sentence under several variants: the arcs of one word, and a slider for each budget that moves them.

The matrices of every step of every slider are sent ahead as half floats, NaN for masked: a slider that is dragged asks
nothing of the server. At 40 tokens these are a quarter of a megabyte, at 15 ten kilobytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.matrix_board.component import encode, mount, receiver
from app.words.i18n import _
from attention_core.inputs.labels import number_repeats

_HERE = Path(__file__).parent
_SENTENCE = receiver("attention_lab_sentence", _HERE / "sentence.css")


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """The sentence under one variant.

    Attributes:
        key: the variant's.
        title: its name on screen.
        knob: what its slider is called; empty where it has none.
        note: what stands there then.
        settings: what the slider is at, at each step; None where there is none.
        words: the variant with that setting, in links.
        weights: its matrices, ``[S, n, n]``; NaN where the pair may not look at each other.
        errors: how far its output is off at each step, as a share.
        costs: its cost at each step, as a share of the first row's.
    """

    key: str
    title: str
    knob: str
    note: str
    settings: Sequence[int | None]
    words: Sequence[str]
    weights: np.ndarray
    errors: Sequence[float]
    costs: Sequence[float]


@dataclass(frozen=True)
class Turn:
    """What the visitor did.

    Attributes:
        word: the place of the word that looks.
        steps: the place of each slider by its row's key.
    """

    word: int
    steps: Mapping[str, int]


def live_sentence(
    tokens: Sequence[str],
    rows: Sequence[Row],
    turn: Turn,
    *,
    key: str,
    on_turn: Callable[[Turn], None],
    way: str,
    pinned: str,
    length: str,
    notes: Sequence[str] = (),
) -> None:
    """Show the sentence.

    Args:
        tokens: its words.
        rows: the first is what the others are held against.
        turn: the word and the budgets from which a visitor starts.
        key: the element's key, unique in the app.
        on_turn: called before the next run of the script, once a visitor has come to rest on other ones.
        way: the address of the page with whole matrices; the variants of all rows, and the word, are added to it.
        pinned: the name of the word's place there.
        length: the line below error and cost: the number of tokens that both are of.
        notes: sentences below.
    """
    words = {**_words(), "length": length, "notes": list(notes)}
    settings = {"word": turn.word, "steps": dict(turn.steps), "way": way, "pinned": pinned, "words": words}

    def report(reported: object) -> None:
        if isinstance(reported, dict):
            on_turn(Turn(int(reported["word"]), dict(reported["steps"])))

    message = pack(tokens, rows, key=key)
    mount(message, key=key, events={"turn": report}, settings=settings, receiver=_SENTENCE)


def pack(tokens: Sequence[str], rows: Sequence[Row], *, key: str) -> bytes:
    """The message to the browser; arguments as of `live_sentence`.

    Raises:
        ValueError: if a row has other than one square matrix for each step, of the sentence's size.
    """
    for row in rows:
        if row.weights.shape != (len(row.settings), len(tokens), len(tokens)):
            raise ValueError(f"{row.key}: {row.weights.shape} for {len(row.settings)} steps and {len(tokens)} tokens")
    header = {
        "kind": "sentence",
        "key": key,
        "tokens": list(tokens),
        "labels": list(number_repeats(tokens)),
        "rows": [
            {
                "key": row.key,
                "title": row.title,
                "knob": row.knob,
                "note": row.note,
                "settings": list(row.settings),
                "words": list(row.words),
                "errors": list(row.errors),
                "costs": list(row.costs),
            }
            for row in rows
        ],
    }
    return encode(header, b"".join(row.weights.astype("<f2").tobytes() for row in rows))


def _words() -> dict[str, str]:
    """What the sentence says, in the visitor's language; what stands in braces is filled in by the browser."""
    return {
        "help": _("The word that looks. Arrow keys move to the next word."),
        "named": _("{title} ({knob} {setting})"),
        "mostly": _("“{word}” looks mostly at “{target}”, {weight}."),
        "most": _("“{word}” looks at “{target}” most, {weight}."),
        "spread": _("“{word}” looks at everything a little, at “{target}” most, {weight}."),
        "itself": _("“{word}” looks mostly at itself, {weight}."),
        "masked": _("{row} cannot reach it."),
        "negative": _("{row} turns that negative, {weight}."),
        "kept": _("{row} keeps it at {weight}."),
        "lost": _("{row} leaves it {weight}."),
        "gained": _("{row} gives it {weight}."),
        "below": _("There “{other}” weighs {least}, less than nothing."),
        "looks": _("{row}: “{word}” looks at {list}."),
        "nowhere": _("{row}: “{word}” looks nowhere."),
        "seen": _("“{target}” {weight}"),
        "error": _("off by {error}"),
        "cost": _("{share} of softmax’s cost"),
        "reference": _("what the others are held against"),
        "way": _("See the whole matrices"),
    }
