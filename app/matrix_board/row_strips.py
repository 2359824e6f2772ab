"""The row that the visitor pinned on a board of matrices, as text: one line of coloured tokens per matrix."""

from collections.abc import Callable, Mapping, Sequence

from app.board_messages.packing import encode
from app.matrix_board.component import mount
from app.words.i18n import _


def row_strips(
    notes: Mapping[str, str],
    tokens: Sequence[str],
    *,
    joined: Sequence[bool],
    queries: Sequence[str] | None = None,
    key: str,
    board: str,
    pinned: int | None,
    unfolded: str | None,
    on_unfold: Callable[[str | None], None],
) -> None:
    """Draw a strip for each panel of a board: the text, coloured by the weights in the pinned row of its matrix.

    The board in the browser provides the weights, the colours and the pinned row. A click on a word pins that word's
    row on the board, which then calls its own ``on_pin``. If the text is longer than a line, only words with the
    largest weights are written out. The other words are thin bars until the visitor unfolds the strip.

    Args:
        notes: a short line after the title of each strip, by the panel's key.
        tokens: one token per column of the board.
        joined: for each token, whether it is only a further part of a character that begins in the token before it.
            The earlier token then shows the character.
        queries: one token per row if the rows are not the tokens of the columns. A click on a word then pins nothing.
        key: the element's key, unique in the app.
        board: the board's key.
        pinned: the index of the pinned row, which the notes describe; None without one.
        unfolded: the key of the panel whose strip shows the whole text; None for no panel.
        on_unfold: called with the key of the panel whose strip was unfolded, or None when it was folded.
    """
    texts = {
        "heading": "",
        "none": _("Click a word to see its weights."),
        "help": _(
            "The text, coloured by the weights of the pinned query. Use the arrow keys to move between words and to "
            "hear the weight of each word in every matrix. Enter pins the word, and Escape unpins it."
        ),
    }
    if queries is not None:
        texts = {
            "heading": _("Weights of query “{word}”"),
            "none": _("Click a row of a matrix to see its weights."),
            "help": _(
                "The keys, coloured by the weights of the pinned query. Use the arrow keys to move between keys and to "
                "hear the weight of each key in every matrix. Escape unpins the query."
            ),
        }
    settings = {
        "pinned": pinned,
        "unfolded": unfolded,
        "strips": [{"key": panel, "note": note} for panel, note in notes.items()],
        "texts": {**texts, "unfold": _("Show whole text"), "fold": _("Show one line")},
    }

    def report(event: object) -> None:
        if isinstance(event, dict):
            on_unfold(event["strip"])

    message = encode(
        {
            "kind": "strips",
            "key": key,
            "board": board,
            "tokens": list(tokens),
            "joined": list(joined),
            "queries": None if queries is None else list(queries),
        }
    )
    mount(message, key=key, events={"unfold": report}, settings=settings)
