"""The pinned row of a board as text: the tokens once per matrix, coloured as the row's cells are there."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from app.matrix_board.component import encode, mount
from app.words.i18n import _


@dataclass(frozen=True, kw_only=True)
class Strip:
    """What is said of one matrix's row.

    Attributes:
        key: the panel's.
        note: a short line behind its title.
    """

    key: str
    note: str


def row_strips(
    lines: Sequence[Strip],
    tokens: Sequence[str],
    *,
    key: str,
    board: str,
    pinned: int | None,
    whole: str | None,
    on_unfold: Callable[[str | None], None],
) -> None:
    """Show the text once for each panel of a board; numbers, colours and the pin are the board's.

    A word that is pressed is pinned on the board, which tells of it. Where the text is longer than a line, the words
    that weigh most are written out and the others are slivers, until its strip is unfolded.

    Args:
        lines: what is said of each panel's row.
        tokens: one per row and column of the board.
        key: the element's key, unique in the app.
        board: the board's key.
        pinned: the row that the lines speak of.
        whole: the panel whose strip shows the whole text.
        on_unfold: told the panel whose strip was unfolded, None where it was folded again.
    """
    settings = {
        "pinned": pinned,
        "whole": whole,
        "lines": [asdict(line) for line in lines],
        "words": {
            "heading": _("Where “{word}” looks · click another word"),
            "none": _("Click a word to see where it looks."),
            "unfold": _("Whole text"),
            "fold": _("One line"),
            "help": _(
                "The text, coloured by where the pinned query looks. Arrow keys move from word to word and tell "
                "its weight in every matrix, Enter pins it, Escape unpins."
            ),
        },
    }

    def report(reported: object) -> None:
        if isinstance(reported, dict):
            on_unfold(reported["strip"])

    message = encode({"kind": "strips", "key": key, "board": board, "tokens": list(tokens)})
    mount(message, key=key, events={"unfold": report}, settings=settings)
