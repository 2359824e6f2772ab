"""A text whose tokens are coloured by the change of their loss when the attention of a language model is replaced.

The losses of all changed models are sent in advance. Choosing another model or token needs no request, except for the
page's text about the choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.board_messages.packing import encode
from app.matrix_board.component import mount, receiver
from app.words.i18n import _

_READING = receiver("attention_lab_reading", Path(__file__).parent / "reading.css")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The losses of one model on the text, token by token.

    Attributes:
        name: the model's name in the table.
        short: its name in the choice of the model that colours the text.
        numbers: the numbers in the model's row of the table, as strings, one for each column.
        losses: the loss of each token except the first, in nats; empty until they are computed.
        note: a remark shown next to the legend of the colours.
    """

    name: str
    short: str
    numbers: Sequence[str]
    losses: Sequence[float]
    note: str = ""


@dataclass(frozen=True)
class ReadingState:
    """The visitor's choices.

    Attributes:
        shown: the index, from 0, of the changed model whose losses colour the text.
        token: the index of the chosen token; negative for none.
        baseline: the model that the shown model is compared with: 0 for the unchanged model, i + 1 for the changed
            model with index i.
    """

    shown: int
    token: int
    baseline: int = 0


def reading_board(
    tokens: Sequence[str],
    original: Reading,
    changed: Sequence[Reading],
    columns: Sequence[str],
    choices: ReadingState,
    *,
    floor: Sequence[str] = (),
    key: str,
    on_change: Callable[[ReadingState], None],
) -> None:
    """Draw a table of models, and a text whose words are coloured by the losses of one of them.

    Args:
        tokens: the words of the text.
        original: the losses of the unchanged model.
        changed: the losses of the changed models.
        columns: the titles of the columns of numbers in the table.
        choices: the visitor's choices.
        floor: name and numbers of one more row of the table, without losses; empty for no such row.
        key: the element's key, unique in the app.
        on_change: called before the script's next run, once a visitor chose another model or token.
    """
    settings = {**vars(choices), "texts": _texts()}

    def report(event: object) -> None:
        if isinstance(event, dict):
            on_change(ReadingState(int(event["shown"]), int(event["token"]), int(event["baseline"])))

    message = pack(tokens, original, changed, columns, floor=floor, key=key)
    mount(message, key=key, events={"choose": report}, settings=settings, receiver=_READING)


def pack(
    tokens: Sequence[str],
    original: Reading,
    changed: Sequence[Reading],
    columns: Sequence[str],
    *,
    floor: Sequence[str] = (),
    key: str,
) -> bytes:
    """Return the message to the browser; arguments are as in `reading_board`.

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
        "columns": list(columns),
        "rows": list(map(vars, (original, *changed))),
        "floor": list(floor),
    }
    return encode(header)


def _texts() -> dict[str, str]:
    """Return the board's texts in the visitor's language; the browser fills in the words in braces."""
    return {
        "help": _(
            "Tokens of the text. Use the arrow keys to move between tokens. Enter shows the model's top predictions."
        ),
        "rows": _("Attention variant"),
        "show": _("Colours show:"),
        "both": _("Loss of “{token}”: {after} nats instead of {before}."),
        "first": _("“{token}” is the first token, so the model does not predict it."),
        "waiting": _("“{token}”: the loss is {before} nats in the original model."),
        "hint": _("Select a token to see its predictions."),
        "baseline": _("Compared with:"),
        "largest": _("Largest loss changes in nats:"),
        "decrease": _("Largest decrease in loss: “{token}”, {change} nats."),
        "higher": _("harder to predict"),
        "lower": _("easier"),
        "full": _("(full colour: {nats} nats)"),
    }
