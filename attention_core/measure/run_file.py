"""Timing runs as JSON files: saved, read back, and those that ship.

A file from elsewhere is judged piece by piece; whatever does not fit is refused with one sentence.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache
from importlib import resources
from typing import Any

from attention_core.errors import InputError, LabError
from attention_core.limits import current
from attention_core.measure.device import Stamp
from attention_core.measure.records import LeftOut, Point, Run
from attention_core.measure.timing import BOUNDS, TimingSpec

FORMAT, VERSION = "attention-lab timing", 1
WORDS = 200
"""Characters of any text in a file."""
LARGEST = 2**63
"""No number in a file reaches it: more bytes and multiply-adds than any machine has."""
MOST_SIZES = 64
"""Lengths in a file."""


def to_json(run: Run) -> bytes:
    """A run as a file, a point a line."""
    head = {"format": FORMAT, "version": VERSION, "stamp": asdict(run.stamp), "spec": asdict(run.spec)}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name in ("points", "left_out"):
        # Four digits are more than any clock here holds.
        items = [asdict(item) for item in getattr(run, name)]
        for item in items:
            item.update({"ms": [float(f"{ms:.4g}") for ms in item["ms"]]} if "ms" in item else {})
        lines.append(f"{json.dumps(name)}: [" + ",".join(f"\n{json.dumps(item)}" for item in items) + "\n]")
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def from_json(data: bytes) -> Run:
    """Read a run that ``to_json`` wrote.

    Raises:
        InputError: for anything else, naming what does not fit.
    """
    limits = current()
    if len(data) > limits.run_bytes:
        raise InputError(
            "The file has {size:,} bytes; a timing run has at most {most:,}.", size=len(data), most=limits.run_bytes
        )
    try:
        whole = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InputError("The file is no JSON; give one that this page or the bench command saved.") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT or whole.get("version") != VERSION:
        raise InputError("The file is no timing run of version {version}.", version=VERSION)
    _keys(whole, {"format", "version", "stamp", "spec", "points", "left_out"}, "file")
    spec = _spec(_record(whole["spec"], TimingSpec, "spec"))
    points = [
        _point(_record(item, Point, "point"), spec) for item in _list(whole["points"], "points", limits.run_points)
    ]
    places = [(point.variant, point.n) for point in points]
    if len(set(places)) < len(places):
        raise InputError("The file holds a variant at the same length twice.")
    left_out = [
        LeftOut(variant=_word(item["variant"], spec), n=_size(item["n"], spec), reason=_text(item["reason"], "reason"))
        for item in (
            _record(item, LeftOut, "left_out") for item in _list(whole["left_out"], "left_out", limits.run_points)
        )
    ]
    return Run(
        spec=spec, stamp=_stamp(_record(whole["stamp"], Stamp, "stamp")), points=tuple(points), left_out=tuple(left_out)
    )


@cache
def recorded() -> Mapping[str, Run]:
    """The runs that ship, by the name of their file."""
    folder = resources.files("attention_core.measure") / "recorded"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return {file.name.removesuffix(".json"): from_json(file.read_bytes()) for file in files}


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _spec(item: Mapping[str, Any]) -> TimingSpec:
    variants = tuple(_text(word, "variants") for word in _list(item["variants"], "variants", BOUNDS["variants"]))
    sizes = tuple(_whole(n, "sizes", 1) for n in _list(item["sizes"], "sizes", MOST_SIZES))
    if not isinstance(item["causal"], bool):
        raise InputError("In the file, {name} must be true or false.", name="causal")
    try:
        return TimingSpec(
            variants=variants,
            sizes=sizes,
            mode=_text(item["mode"], "mode"),
            causal=item["causal"],
            device=_text(item["device"], "device"),
            dtype=_text(item["dtype"], "dtype"),
            heads=_whole(item["heads"], "heads", 1),
            head_size=_whole(item["head_size"], "head_size", 1),
            rounds=_whole(item["rounds"], "rounds", 1),
        )
    except LabError as error:
        raise InputError("The file does not fit: {reason}", reason=str(error)) from None


def _stamp(item: Mapping[str, Any]) -> Stamp:
    return Stamp(
        device=_text(item["device"], "device"),
        cpu=_text(item["cpu"], "cpu"),
        cores=_whole(item["cores"], "cores", 1),
        threads=_whole(item["threads"], "threads", 1),
        torch=_text(item["torch"], "torch"),
        date=_text(item["date"], "date"),
    )


def _point(item: Mapping[str, Any], spec: TimingSpec) -> Point:
    ms = tuple(_positive(value, "ms") for value in _list(item["ms"], "ms", spec.rounds))
    if not ms:
        raise InputError("In the file, a point has no samples.")
    return Point(
        variant=_word(item["variant"], spec),
        n=_size(item["n"], spec),
        ms=ms,
        multiply_adds=_whole(item["multiply_adds"], "multiply_adds", 0),
        promised=None if item["promised"] is None else _whole(item["promised"], "promised", 0),
        peak_bytes=_whole(item["peak_bytes"], "peak_bytes", 0),
    )


def _record(item: object, kind: type[Any], name: str) -> Mapping[str, Any]:
    """An object with exactly the fields of a dataclass."""
    if not isinstance(item, dict):
        raise InputError("In the file, {name} must be an object.", name=name)
    _keys(item, {field.name for field in fields(kind)}, name)
    return item


def _keys(item: Mapping[str, Any], wanted: set[str], name: str) -> None:
    if item.keys() != wanted:
        raise InputError("In the file, {name} must hold {wanted}.", name=name, wanted=", ".join(sorted(wanted)))


def _list(item: object, name: str, most: int) -> list[Any]:
    if not isinstance(item, list) or len(item) > most:
        raise InputError("In the file, {name} must be a list of at most {most}.", name=name, most=most)
    return item


def _text(item: object, name: str) -> str:
    if not isinstance(item, str) or len(item) > WORDS or not item.isprintable():
        raise InputError(
            "In the file, {name} must be printable text of at most {most} characters.", name=name, most=WORDS
        )
    return item


def _whole(item: object, name: str, low: int) -> int:
    if isinstance(item, bool) or not isinstance(item, int) or not low <= item < LARGEST:
        raise InputError("In the file, {name} must be a whole number from {low} on.", name=name, low=low)
    return item


def _positive(item: object, name: str) -> float:
    if isinstance(item, bool) or not isinstance(item, (int, float)) or not 0 < item < LARGEST:
        raise InputError("In the file, {name} must be positive numbers.", name=name)
    return float(item)


def _word(item: object, spec: TimingSpec) -> str:
    if item not in spec.variants:
        raise InputError("In the file, a point's variant is not among those of the spec.")
    return str(item)


def _size(item: object, spec: TimingSpec) -> int:
    if isinstance(item, bool) or not isinstance(item, int) or item not in spec.sizes:
        raise InputError("In the file, a point's length is not among those of the spec.")
    return item
