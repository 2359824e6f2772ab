"""HTML for tokens on the Inside page: a text with a colour per token, and strips of grouped neighbouring tokens."""

import html
from collections.abc import Collection, Sequence
from itertools import groupby

from app.figures.theme import SERIES
from app.words.isolation import isolate

MAX_BORDERED_BOXES = 40
"""With more boxes in a row of ``strip``, their vertical borders would not fit on a narrow screen."""
Pool = tuple[int, int]
"""A pool, which is a group of neighbouring tokens, as the indices of its first and its last token."""


def coloured_text(
    words: Sequence[str],
    kinds: Sequence[int],
    *,
    notes: Sequence[str],
    struck: Collection[int] = (),
    borders: Collection[int] = (),
    positions: Sequence[int] | None = None,
    tags: Sequence[object] = (),
) -> str:
    """Return a text as HTML, with each token on the colour of its kind.

    Args:
        words: the tokens to show.
        kinds: one number per token that selects its colour; negative numbers have no colour.
        notes: the tooltip of each token.
        struck: indices of the tokens that are struck through.
        borders: indices of the tokens that a vertical line precedes.
        positions: the input position of each token, used to link hovering between the text and the boards. None: all
            input tokens in order. Empty: the words are not input tokens.
        tags: one short name per token, shown before each token whose name differs from that of the token before it.
            Colours repeat, names do not.
    """
    spans, known_positions = [], range(len(words)) if positions is None else positions
    for i, (word, kind, note) in enumerate(zip(words, kinds, notes, strict=True)):
        style = "padding:1px 3px;border-radius:3px;"
        style += f"background:{SERIES[kind % (len(SERIES) - 1)]}59;" if kind >= 0 else ""
        style += "opacity:.45;text-decoration:line-through;" if i in struck else ""
        bar = '<span style="border-left:2px solid currentColor;margin:0 .3em"></span>' if i in borders else ""
        place = f' data-token="{known_positions[i]}"' if known_positions else ""
        tag = f"<sub>{tags[i]}</sub>&nbsp;" if tags and (not i or tags[i] != tags[i - 1]) else ""
        spans.append(f'{bar}<span{place} style="{style}" title="{html.escape(note)}">{tag}{html.escape(word)}</span>')
    count = f' data-tokens="{len(words)}"' if known_positions else ""
    style = "line-height:1.9;overflow-wrap:anywhere;margin:0"
    return f'<p{count} class="token-kinds" style="{style}" dir="auto">{" ".join(spans)}</p>'


def alternating_colours(groups: Sequence[int]) -> list[int]:
    """Return colour numbers for `coloured_text` that colour every second group of consecutive tokens.

    Args:
        groups: the group of each token, such as its block.
    """
    return [-(i % 2) for i, (_owner, run) in enumerate(groupby(groups)) for _token in run]


def strip(
    levels: Sequence[Sequence[Pool]], names: Sequence[Sequence[str]], shares: Sequence[Sequence[float]] | None = None
) -> str:
    """Return the pools as HTML: one row per level, in which the width of a pool is its number of tokens.

    Args:
        levels: the pools of each level, in order.
        names: the text of each pool, which is clipped to its box and also shown in the tooltip.
        shares: the weight of each pool, shown as its shade; None alternates two shades.
    """
    top = max((share for row in shares for share in row), default=0.0) if shares is not None else 0.0
    rows = []
    for level, (pools, words) in enumerate(zip(levels, names, strict=True)):
        cells = []
        sides = "2px 0;border-width:1px 0;border-radius:0" if len(pools) > MAX_BORDERED_BOXES else "2px 3px"
        for number, ((first, last), name) in enumerate(zip(pools, words, strict=True)):
            note = f"{first}–{last}: {isolate(name)}" if last > first else f"{first}: {isolate(name)}"
            shade = 0.12 + 0.2 * (number % 2)
            if shares is not None:
                shade = 0.75 * shares[level][number] / (top or 1.0)
                note += f" · {shares[level][number]:.1%}"
            style = (
                f"flex:{last - first + 1} 1 0;min-width:0;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;"
                f"background:rgba(31,119,180,{shade:.3f});border:1px solid rgba(128,128,128,.35);border-radius:3px;"
                f"padding:{sides};font-size:.8rem;line-height:1.5;"
            )
            cells.append(f'<div style="{style}" title="{html.escape(note)}" dir="auto">{html.escape(name)}</div>')
        rows.append(f'<div class="token-pools" style="display:flex;margin-bottom:3px">{"".join(cells)}</div>')
    return "".join(rows)
