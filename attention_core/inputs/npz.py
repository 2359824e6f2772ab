"""A reader for untrusted ``.npz`` files that knows every size and type before it unpacks an array.

An ``.npz`` file is a zip of ``.npy`` members. The zip's directory gives the sizes, each member's header its shape and
type. Nothing is ever unpickled.
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from attention_core.errors import InputError, Name, Names, Notice
from attention_core.formatting import N_
from attention_core.limits import current

HEADER_BYTES = 1024
"""Maximum bytes of a member's header: numpy uses 128 for plain arrays, and only these bytes are unpacked to read it."""
LISTED_NAMES = 8
"""Maximum number of array names in a message, because the file determines them."""
NAME_CHARACTERS = 40
"""Maximum number of characters of each name in a message."""

_DIRECTORY_ENTRY = b"PK\x01\x02"
# The errors that malicious bytes can cause. zipfile raises ``_ZIP_ERRORS``. numpy parses an array's header with
# ``ast.literal_eval``, which raises ``_HEADER_ERRORS``; its documentation lists the first four of them.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    NotImplementedError,
)
_HEADER_ERRORS = (SyntaxError, TypeError, MemoryError, RecursionError, OverflowError, KeyError, tokenize.TokenError)


@dataclass(frozen=True)
class Member:
    """The description of an array in the file, from its header; the data starts after ``header_bytes``.

    ``fortran`` is true if the data is stored column by column.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    header_bytes: int

    @property
    def data_bytes(self) -> int:
        """The size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Npz:
    """An opened ``.npz`` file: the names of its arrays, their headers, and their values on demand.

    Args:
        data: content of the file.
        file: name of the file, for messages.
        most_bytes: maximum total bytes of the arrays in one call of ``headers``.

    Raises:
        InputError: if the file is not a complete zip of at most ``upload_members`` members.
    """

    def __init__(self, data: bytes, file: str, most_bytes: int) -> None:
        self.file, self.most_bytes = file, most_bytes
        if not data.startswith(b"PK"):
            raise InputError(
                "{file} is not an .npz file. Save the three arrays q, k and v with np.savez(file, q=q, k=k, v=v).",
                file=file,
            )
        # The members are counted in the raw bytes, before the file is opened: opening a zip already builds an object
        # for each entry of its directory.
        max_members = current().upload_members
        if (count := data.count(_DIRECTORY_ENTRY)) > max_members:
            message = N_("{file} contains {count:,} arrays, more than {most}. Save only q, k and v.")
            raise InputError(message, file=file, count=count, most=max_members)
        with self._reporting_damage():
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        self._infos = {info.filename.removesuffix(".npy"): info for info in self._zip.infolist()}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arrays."""
        return tuple(self._infos)

    def headers(self, names: Sequence[str]) -> dict[str, Member]:
        """Return the headers of these arrays by name, after checking the sizes in the zip's directory.

        Raises:
            InputError: if the arrays are too large together, or an array is encrypted, unreadable or of a size that
                does not match its shape.
        """
        size = sum(self._infos[name].file_size for name in names)
        if size > self.most_bytes:
            raise InputError(
                "The arrays {names} of {file} have {size:,} bytes. Reduce them to at most {most:,} bytes, for example "
                "by using fewer tokens.",
                file=self.file,
                size=size,
                names=Names(names),
                most=self.most_bytes,
            )
        return {name: self._header(name) for name in names}

    def array(self, member: Member) -> np.ndarray:
        """Return the values of one array, read-only; the type must not contain Python objects.

        Raises:
            InputError: if the data is damaged.
        """
        with self._reporting_damage(), self._zip.open(self._infos[member.name]) as stream:
            raw = stream.read(member.header_bytes + member.data_bytes)
        if len(raw) != member.header_bytes + member.data_bytes:
            raise self._damage_error()
        array = np.frombuffer(raw, member.dtype, offset=member.header_bytes)
        return array.reshape(member.shape, order="F" if member.fortran else "C")

    def _header(self, name: str) -> Member:
        info = self._infos[name]
        unreadable = InputError("Array {name} cannot be read. Save the file with np.savez.", name=Name(name))
        is_encrypted = info.flag_bits & 0x1
        if is_encrypted or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise unreadable
        with self._reporting_damage(), self._zip.open(info) as stream:
            data = stream.read(HEADER_BYTES)
        header = io.BytesIO(data)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        try:
            shape, fortran, dtype = readers[np.lib.format.read_magic(header)](header, max_header_size=HEADER_BYTES)
        except (*_HEADER_ERRORS, ValueError) as error:
            raise unreadable from error
        member = Member(name, tuple(int(length) for length in shape), dtype, fortran, header.tell())
        if dtype.hasobject:
            raise InputError(
                "Array {name} contains pickled Python objects, which the lab does not load. Save arrays of numbers, "
                "and save labels with np.array(labels, dtype=str).",
                name=Name(name),
            )
        if min(member.shape, default=0) < 0 or info.file_size != member.header_bytes + member.data_bytes:
            raise InputError(
                "Array {name} has {size} bytes, which does not match its shape {shape}. Save it again with np.savez.",
                name=Name(name),
                shape=format_shape(member.shape),
                size=info.file_size - member.header_bytes,
            )
        return member

    def _damage_error(self) -> InputError:
        return InputError("{file} is damaged or incomplete. Save and upload it again.", file=self.file)

    @contextmanager
    def _reporting_damage(self) -> Iterator[None]:
        try:
            yield
        except _ZIP_ERRORS as error:
            raise self._damage_error() from error


def printable(name: str) -> str:
    """Return a name from a file for use in a message, without control characters and shortened."""
    word = "".join(character if character.isprintable() else "?" for character in name[:NAME_CHARACTERS])
    return word if len(name) <= NAME_CHARACTERS else word + "…"


def name_list(names: Iterable[str]) -> Names:
    """Return names from a file for use in a message."""
    words = [printable(name) for name in names]
    remaining = Notice(N_("{more} more"), (("more", len(words) - LISTED_NAMES),))
    return Names([*words[:LISTED_NAMES], *([remaining] if len(words) > LISTED_NAMES else [])])


def format_shape(shape: Sequence[int]) -> str:
    """Return a shape in the usual notation, ``[H, n, d]``."""
    return printable(str(list(shape)))
