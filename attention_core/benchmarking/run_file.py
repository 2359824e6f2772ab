"""Timing runs (times of several variants at several lengths) as JSON files, and access to the runs in the package.

The schema is ``Document`` with the records that it contains. Unknown fields are ignored, so that files of a later
version can be read. A field added later needs a default, so that older files can still be read. Reading a file that
does not fit the schema raises an error, whose message is one sentence.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from functools import cache
from importlib import resources
from typing import Annotated

import msgspec
from msgspec import Meta

from attention_core.benchmarking.device import PositiveInt, ShortText, Stamp
from attention_core.benchmarking.run_records import Point, Run, Skipped
from attention_core.benchmarking.timing import BOUNDS, TimingSpec
from attention_core.errors import InputError, LabError
from attention_core.formatting import N_
from attention_core.limits import current

FORMAT, VERSION = "attention-lab timing", 1
MAX_SIZES = 64
"""Maximum number of sequence lengths in a file."""


class SpecRecord(msgspec.Struct, frozen=True):
    """The ``TimingSpec`` in a file, with all fields written out, including defaults."""

    variants: Annotated[tuple[ShortText, ...], Meta(max_length=BOUNDS["variants"])]
    sizes: Annotated[tuple[PositiveInt, ...], Meta(max_length=MAX_SIZES)]
    mode: ShortText
    causal: bool
    device: ShortText
    dtype: ShortText
    heads: PositiveInt
    head_size: PositiveInt
    rounds: PositiveInt


class Document(msgspec.Struct, frozen=True):
    """The content of a timing run file."""

    format: str
    version: PositiveInt
    stamp: Stamp
    spec: SpecRecord
    points: tuple[Point, ...]
    left_out: tuple[Skipped, ...]


def to_json(run: Run) -> bytes:
    """Return a run as the bytes of a file, with one point per line."""
    head = {"format": FORMAT, "version": VERSION, "stamp": asdict(run.stamp), "spec": asdict(run.spec)}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name in ("points", "left_out"):
        items = [asdict(item) for item in getattr(run, name)]
        for item in items:
            if item.get("most", ...) is None:
                del item["most"]  # a field without a value is left out, as in files from before the field existed
            # Times are rounded to four significant digits, which is more than the precision of any clock.
            item.update({"ms": [float(f"{ms:.4g}") for ms in item["ms"]]} if "ms" in item else {})
        lines.append(f"{json.dumps(name)}: [" + ",".join(f"\n{json.dumps(item)}" for item in items) + "\n]")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def from_json(data: bytes) -> Run:
    """Read a run from the content of a file that ``to_json`` wrote, also in another version.

    Raises:
        InputError: if the data is not such a file; the message says what is wrong.
    """
    max_bytes = current().run_bytes
    if len(data) > max_bytes:
        message = N_("The file has {size:,} bytes. Upload a timing run of at most {most:,} bytes.")
        raise InputError(message, size=len(data), most=max_bytes)
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=Document)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).replace("`", "").partition(" - at $.")
        if not place:
            raise InputError("The file is not a timing run: {reason}.", reason=reason) from None
        raise InputError("Entry {place} in the file is not valid: {reason}.", place=place, reason=reason) from None
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InputError(
            "The file is not JSON. Upload a file that was saved by this page or by the bench command."
        ) from None
    if document.format != FORMAT:
        raise InputError("The file is not a timing run.")
    _check_texts(document)
    try:
        spec = TimingSpec(**msgspec.structs.asdict(document.spec))
    except LabError as error:
        raise InputError("The file is not valid: {reason}", reason=error) from None
    _check_places(document.points, spec, "points")
    _check_places(document.left_out, spec, "left_out")
    if len({(point.variant, point.n) for point in document.points}) < len(document.points):
        raise InputError("The file has two measurements of the same variant at the same length.")
    if any(len(point.ms) > spec.rounds for point in document.points):
        raise InputError(
            "The file lists more timed calls of one variant at one length than there were rounds. There can be at "
            "most one call per round."
        )
    return Run(spec=spec, stamp=document.stamp, points=document.points, left_out=document.left_out)


def _check_texts(document: Document) -> None:
    """Raise InputError for text that a page cannot show: line breaks and other control characters."""
    spec = document.spec
    texts = [*spec.variants, spec.mode, spec.device, spec.dtype, *(item.reason for item in document.left_out)]
    if not all(text.isprintable() for text in (*texts, *map(str, astuple(document.stamp)))):
        raise InputError("A text in the file contains control characters, such as line breaks.")


def _check_places(items: Sequence[Point | Skipped], spec: TimingSpec, name: str) -> None:
    """Raise InputError for too many items, or for a variant or length that is not in the spec."""
    max_entries = current().run_points
    if len(items) > max_entries:
        message = N_(
            "The file has {count:,} entries in {name}, but the limit is {most:,}. Measure fewer variants or fewer "
            "sequence lengths."
        )
        raise InputError(message, name=name, count=len(items), most=max_entries)
    if any(item.variant not in spec.variants for item in items):
        raise InputError(
            "The file has a measurement of a variant that is not listed in the settings of its run (“spec”)."
        )
    if any(item.n not in spec.sizes for item in items):
        raise InputError(
            "The file has a measurement at a length that is not listed in the settings of its run (“spec”)."
        )


@cache
def recorded_runs() -> Mapping[str, Run]:
    """Return the recorded runs of the package by file name, without the suffix."""
    folder = resources.files(__package__) / "recorded"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return {file.name.removesuffix(".json"): from_json(file.read_bytes()) for file in files}
