"""A text as a model reads it and as a changed one does: two bars under each token, a line for each change.

All losses are sent ahead: to look at another change, or at another token, asks nothing of the server but what the page
tells of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.matrix_board.component import encode, mount, receiver
from app.words.i18n import _
from attention_core.inputs.labels import number_repeats

_READING = receiver("attention_lab_reading", Path(__file__).parent / "reading.css")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reading of the text.

    Attributes:
        name: of who reads, on screen.
        numbers: what the line says of it, one for each of the board's columns.
        losses: of each token but the first, in nats; empty as long as it has not been read.
    """

    name: str
    numbers: Sequence[str]
    losses: Sequence[float]


@dataclass(frozen=True)
class Look:
    """What the visitor looks at.

    Attributes:
        shown: the place of the changed reading under the text, from 0.
        token: the place of the token that was chosen; negative for none.
    """

    shown: int
    token: int


def reading_board(
    tokens: Sequence[str],
    original: Reading,
    changed: Sequence[Reading],
    columns: Sequence[str],
    look: Look,
    *,
    key: str,
    on_look: Callable[[Look], None],
) -> None:
    """Show the text.

    Args:
        tokens: its words.
        original: how the model as it is reads it.
        changed: how the changed ones do.
        columns: what their numbers are.
        look: what a visitor looks at.
        key: the element's key, unique in the app.
        on_look: called before the next run of the script, once a visitor chose another reading or a token.
    """
    settings = {"shown": look.shown, "token": look.token, "words": _words()}

    def report(reported: object) -> None:
        if isinstance(reported, dict):
            on_look(Look(int(reported["shown"]), int(reported["token"])))

    message = pack(tokens, original, changed, columns, key=key)
    mount(message, key=key, events={"look": report}, settings=settings, receiver=_READING)


def pack(
    tokens: Sequence[str], original: Reading, changed: Sequence[Reading], columns: Sequence[str], *, key: str
) -> bytes:
    """The message to the browser; arguments as of `reading_board`.

    Raises:
        ValueError: if a reading has losses for another number of tokens.
    """
    for each in (original, *changed):
        if each.losses and len(each.losses) != len(tokens) - 1:
            raise ValueError(f"{each.name}: {len(each.losses)} losses for {len(tokens)} tokens")
    header = {
        "kind": "reading",
        "key": key,
        "tokens": list(tokens),
        "labels": list(number_repeats(tokens)),
        "columns": list(columns),
        "rows": [
            {"name": each.name, "numbers": list(each.numbers), "losses": list(each.losses)}
            for each in (original, *changed)
        ],
    }
    return encode(header)


def _words() -> dict[str, str]:
    """What the board says, in the visitor's language; what stands in braces is filled in by the browser."""
    return {
        "who": _("Reads the text"),
        "help": _("The tokens of the text. Arrow keys move, Enter tells what would have been likelier."),
        "rows": _("Who reads the text"),
        "told": _("“{token}” costs {before} nats as it is, {after} with {name}."),
        "first": _("“{token}” is the first: nothing predicts it."),
        "waiting": _("“{token}” costs {before} nats as it is."),
        "ask": _("Point at a token for its two losses; click it for what would have been likelier."),
        "scale": _(
            "Under each token, its loss: grey as it is, orange with what is chosen above; a full bar is {most} nats. "
            "Orange tokens cost more than before, blue ones less."
        ),
    }
