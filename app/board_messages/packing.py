"""Encoding of matrices as messages to the browser, which draws them as the panels of a board.

A message holds the values as bytes, after a description in JSON. Values are sent as 16-bit floats. A power of two per
panel scales them so that the largest magnitude is just below 2^16. Values down to a billionth of the largest keep 11
significant bits, and smaller values keep fewer. A number shown with three digits is off by at most one in the third
digit. Powers of two, such as a weight of 1, are exact. Positive values never become zero, and NaN means masked. Four
panels are 0.5 MB for 256 tokens, and 2.1 MB for 512 tokens; only changed panels are sent.
"""

import json
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from app.board_messages.panel import Panel

DIGEST_LENGTH = 24
MAX_INLINE_BYTES = 100_000
"""Largest total size at which a board's panels are part of its own message: four panels of about 110 tokens."""
_MAX_EXPONENT = 16  # half floats are below 2^16
_MASKED = np.uint16(0x7E00)  # The only NaN code that is sent, so browsers can test for it by equality.
_TINIEST = np.uint16(1)  # the code of the smallest half float above zero


def encode(header: Mapping[str, object], payload: bytes = b"", *, digest: str = "") -> bytes:
    """Return a message to the browser: a header that describes numbers, and the numbers.

    Args:
        header: the description of the payload, JSON-serialisable.
        payload: the numbers.
        digest: a digest from ``compute_digest`` that identifies the payload; by default, the digest of the payload.

    Returns:
        The header's length in four bytes (little-endian), the header as JSON with a ``digest`` of header and payload
        added, and the payload.
    """
    text = json.dumps(header)
    full_digest = compute_digest((text + (digest or compute_digest(payload))).encode())
    header_bytes = f'{text[:-1]}, "digest": "{full_digest}"}}'.encode()
    return len(header_bytes).to_bytes(4, "little") + header_bytes + payload


def compute_digest(data: bytes = b"") -> str:
    """Return the hash of some bytes, as ``DIGEST_LENGTH`` hexadecimal digits."""
    return blake2b(data, digest_size=DIGEST_LENGTH // 2).hexdigest()


def read_digest(message: bytes) -> str:
    """Return the digest of a message from `encode`; it is at the end of the header."""
    end = 4 + int.from_bytes(message[:4], "little") - len('"}')
    return message[end - DIGEST_LENGTH : end].decode()


def pack(
    panels: Sequence[Panel],
    row_labels: Sequence[str] | None,
    col_labels: Sequence[str] | None,
    *,
    key: str,
    diverging: bool = False,
    last_turn: int = 0,
    max_inline_bytes: float = MAX_INLINE_BYTES,
) -> tuple[bytes, dict[str, bytes]]:
    """Return the board's message to the browser, and the panels' messages by panel key if they are sent separately.

    Args:
        panels: the matrices, at least one; shapes may differ.
        row_labels: one label per row, for panels without their own; None: rows are numbered.
        col_labels: the same for the columns.
        key: the board's Streamlit key.
        diverging: whether to show both sides of the colour scale even if no value is negative.
        last_turn: the number of the last slider change that the panels already show; the browser counts the changes.
        max_inline_bytes: the largest total size of the panels at which the board's message contains them.

    Raises:
        ValueError: if a panel is not a matrix, is empty or holds infinities, or if labels do not fit.
    """
    if not panels:
        raise ValueError("a board needs at least one panel")
    messages = {panel.key: pack_panel(panel, row_labels, col_labels, diverging) for panel in panels}
    large = messages if sum(map(len, messages.values())) > max_inline_bytes else {}
    inline = [] if large else list(messages.values())
    header = {
        "kind": "board",
        "key": key,
        "digests": list(map(read_digest, messages.values())),
        "inline_lengths": list(map(len, inline)),
        "row_labels": row_labels,
        "col_labels": col_labels,
        "last_turn": last_turn,
    }
    # The header already lists the digest of each panel, so the panels' bytes are not hashed again. Instead, the
    # digest of empty bytes is passed.
    return encode(header, b"".join(inline), digest=compute_digest()), large


def pack_panel(
    panel: Panel, row_labels: Sequence[str] | None, col_labels: Sequence[str] | None, diverging: bool
) -> bytes:
    """Return the message of one panel; see ``pack`` for the arguments and errors."""
    encoded = _encode(panel)
    for panel_labels, board_labels, count in zip(
        (panel.row_labels, panel.col_labels), (row_labels, col_labels), panel.values.shape, strict=True
    ):
        labels = panel_labels if panel_labels is not None else board_labels
        if labels is not None and len(labels) != count:
            raise ValueError(f"panel {panel.key!r} of shape {panel.values.shape} has {len(labels)} labels for {count}")
    header = {
        "kind": "part",
        "rows": panel.values.shape[0],
        "cols": panel.values.shape[1],
        **{name: value for name, value in vars(panel).items() if name not in ("values", "top")},
        "borders": list(panel.borders),
        "knob": panel.knob and asdict(panel.knob),
        **encoded.facts,
        "highest": max(encoded.facts["highest"], panel.top),
        "signed": diverging or encoded.facts["signed"],
    }
    return encode(header, encoded.codes, digest=encoded.digest)


@dataclass(frozen=True)
class EncodedMatrix:
    """A matrix encoded for the browser.

    Attributes:
        codes: the bits of one half float per cell, as little-endian uint16, row by row.
        facts: what the browser needs to read and colour the codes: the exponent of the power of two that scales them,
            the largest value (at least 0), the smallest value (at most 0), the smallest magnitude above zero, and
            whether any value is negative or masked.
        digest: the digest of the codes.
    """

    codes: bytes
    facts: Mapping[str, Any]
    digest: str


_encoded: dict[int, EncodedMatrix] = {}
"""Encoded matrices by the matrix's ``id``, until the matrix is deleted."""


def _encode(panel: Panel) -> EncodedMatrix:
    """Return a panel's encoded matrix; for a read-only matrix, the result is cached, because each rerun needs it."""
    values = panel.values
    if values.flags.writeable:
        return _encode_values(panel)
    encoded = _encoded.get(id(values))
    if encoded is None:
        encoded = _encoded[id(values)] = _encode_values(panel)
        weakref.finalize(values, _encoded.pop, id(values), None).atexit = False
    return encoded


def _encode_values(panel: Panel) -> EncodedMatrix:
    values = np.asarray(panel.values, dtype=np.float32)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"panel {panel.key!r} must be a matrix with at least one cell, not {values.shape}")
    if np.isinf(values).any():
        raise ValueError(f"panel {panel.key!r} holds infinities")
    masked = np.isnan(values)
    magnitudes = np.abs(np.where(masked, np.float32(0), values))
    largest = float(magnitudes.max())
    fraction, power = np.frexp(largest)
    # If the fraction is just below 1, it rounds up to 1 as a half float, and the largest value would become infinite.
    # ``carry`` is then 1, else 0. Adding it to the exponent halves all scaled values.
    carry = np.frexp(np.float16(fraction))[1]
    exponent = int(power + carry) - _MAX_EXPONENT if largest else 0
    codes = np.ldexp(values, -exponent).astype("<f2").view("<u2")
    underflowed = (magnitudes > 0) & (codes & 0x7FFF == 0)
    codes[underflowed] |= _TINIEST
    codes[masked] = _MASKED
    code_bytes = codes.tobytes()
    facts = {
        "exponent": exponent,
        "highest": float(np.max(values, where=~masked, initial=0.0)),
        "lowest": float(np.min(values, where=~masked, initial=0.0)),
        "smallest": float(np.min(magnitudes, where=magnitudes > 0, initial=largest)),
        "signed": bool((values < 0).any()),
        "masked": bool(masked.any()),
    }
    return EncodedMatrix(code_bytes, facts, compute_digest(code_bytes))
