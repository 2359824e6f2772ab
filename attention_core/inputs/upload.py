"""Reads an uploaded ``.npz`` file with q, k and v into a ``QKV``; checks sizes and types before it unpacks arrays."""

import io
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from attention_core.errors import InputError, Name, Notice
from attention_core.formatting import N_
from attention_core.inputs.labels import readable_token
from attention_core.inputs.npz import Member, Npz, format_shape, name_list, printable
from attention_core.inputs.record import QKV, check_numbers, numbered_keys
from attention_core.inputs.synthetic import SyntheticSpec, from_synthetic
from attention_core.limits import current

PROVENANCE = "provenance"
"""Name of the array with the origin of a file that the app exported; it is not read."""
MASKS = ("mask", "attention_mask")
"""Names of the array that marks positions as tokens or padding."""
KEY_MASK = "key_mask"
"""Name of the array that marks the keys of another sequence as tokens or padding."""
MASK_REFUSED = N_(
    "Array {name} must have one number per position: 1 for a token, 0 for padding. For a causal mask, save "
    "causal=True instead."
)


def from_upload(data: bytes, name: str) -> QKV:
    """Read an uploaded ``.npz`` with arrays ``q``, ``k``, ``v``, each ``[n, d]``, ``[H, n, d]`` or ``[1, H, n, d]``.

    float16, float32 and float64 are converted to float32. Optional arrays: ``tokens`` (str, ``[n]``) labels the
    positions, and ``causal`` (one bool) states whether future keys are hidden. ``mask`` or ``attention_mask`` (``[n]``
    or ``[1, n]``, 1 for a token and 0 for padding) selects positions. Other arrays are not read; a notice names them.

    In cross-attention, k and v have the m positions of another sequence instead of n. ``key_tokens`` (str, ``[m]``)
    labels these positions. With this array, keys count as those of another sequence even if m = n. ``key_mask``
    (``[m]``) selects some of the keys, and ``mask`` selects queries.

    Args:
        data: content of the file.
        name: name of the file, for captions and messages.

    Raises:
        InputError: if the file does not have this form; the message says what is wrong and what to do.
    """
    file, limits = printable(name), current()
    if len(data) > limits.upload_bytes:
        raise InputError(
            "{file} has {size:,} bytes, but the limit is {most:,} bytes. Upload a smaller file, for example with "
            "fewer tokens.",
            file=file,
            size=len(data),
            most=limits.upload_bytes,
        )
    npz = Npz(data, file, limits.upload_bytes)
    members = npz.headers(_array_names(npz.names, file))
    _check_types(members)
    _check_shapes(members)
    q, k, v = (_read_numbers(npz, members[array]) for array in "qkv")
    tokens = _read_labels(npz, members["tokens"]) if "tokens" in members else tuple(f"t{i}" for i in range(q.shape[-2]))
    crosses = q.shape[-2] != k.shape[-2] or not members.keys().isdisjoint(("key_tokens", KEY_MASK))
    keys = _read_labels(npz, members["key_tokens"]) if "key_tokens" in members else numbered_keys(k.shape[-2])
    causal = "causal" in members and bool(npz.array(members["causal"]))
    if crosses and causal:
        raise InputError(
            "If the keys come from another sequence, there can be no causal mask. Save causal=False, or do not save "
            "causal."
        )
    extra = sorted(set(npz.names) - set(members) - {PROVENANCE})
    extra_names = (("names", name_list(extra)),)
    notices = [Notice("These arrays in the file are not used: {names}.", extra_names)] if extra else []
    positions = _unpadded_positions(npz, members, len(tokens), MASKS)
    n, padding = len(positions), len(tokens) - len(positions)
    if padding:
        q = q[:, positions].contiguous()
        if not crosses:
            k, v = (array[:, positions].contiguous() for array in (k, v))
        tokens = tuple(tokens[i] for i in positions)
        notices.append(
            Notice(
                "The mask marks {count} of {n} positions as padding. The padding is removed.",
                (("count", padding), ("n", n + padding)),
            )
        )
    if KEY_MASK in members:
        positions = _unpadded_positions(npz, members, len(keys), (KEY_MASK,))
        k, v = (array[:, positions].contiguous() for array in (k, v))
        notices.append(
            Notice("The key mask hides {count} of {m} keys.", (("count", len(keys) - len(positions)), ("m", len(keys))))
        )
        keys = tuple(keys[i] for i in positions)
    return QKV.of_tokens(
        q, k, v, tokens, causal=causal, origin=file, notices=tuple(notices), key_tokens=keys if crosses else None
    )


def to_npz(qkv: QKV) -> bytes:
    """Return a ``QKV`` as an ``.npz`` file with q, k, v, labels and causal, which ``from_upload`` can read."""
    buffer, arrays = io.BytesIO(), {"q": qkv.q.numpy(), "k": qkv.k.numpy(), "v": qkv.v.numpy()}
    arrays |= {"tokens": _shortened(qkv.tokens), "causal": np.array(qkv.causal)}
    if qkv.key_tokens is not None:
        arrays["key_tokens"] = _shortened(qkv.key_tokens)
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # no array is named allow_pickle
    return buffer.getvalue()


def _shortened(labels: tuple[str, ...]) -> np.ndarray:
    """Return labels as an array, cut to the length that an upload may have."""
    limit = current().label_characters
    return np.array([label if len(label) <= limit else label[: limit - 1] + "…" for label in labels], dtype=np.str_)


def example_npz() -> bytes:
    """Return a small valid file as an example: 2 heads of 24 tokens and size 16."""
    return to_npz(from_synthetic(SyntheticSpec(n=24, d=16, heads=2)))


def _array_names(names: tuple[str, ...], file: str) -> list[str]:
    for required in "qkv":
        if required not in names:
            raise InputError(
                "{file} has no array {needed}, only: {found}. Save the file with np.savez(file, q=q, k=k, v=v).",
                file=file,
                needed=required,
                found=name_list(names) or "-",
            )
    return [name for name in ("q", "k", "v", "tokens", "key_tokens", "causal", *MASKS, KEY_MASK) if name in names]


def _check_types(members: dict[str, Member]) -> None:
    longest = current().label_characters
    for member in members.values():
        kind, size, dtype = member.dtype.kind, member.dtype.itemsize, printable(str(member.dtype))
        if member.name in ("tokens", "key_tokens"):
            if kind != "U" or not 0 < size <= 4 * longest:
                raise InputError(
                    "Array {name} has the type {found}. Save labels of at most {longest} characters with "
                    "np.array(labels, dtype=str).",
                    name=Name(member.name),
                    found=dtype,
                    longest=longest,
                )
        elif member.name == "causal":
            if kind != "b" or member.shape:
                raise InputError(
                    "Array causal has the type {found} and the shape {shape}. Save a single True or False.",
                    found=dtype,
                    shape=format_shape(member.shape),
                )
        elif member.name in (*MASKS, KEY_MASK):
            if kind not in "biuf":
                raise InputError(MASK_REFUSED, name=Name(member.name))
        elif kind == "V" and size == 2 and member.dtype.names is None:
            raise InputError(
                "Array {name} has the type {found}, which means bfloat16. Save {name}.astype(np.float32) "
                "instead. If you loaded the array from a file, save "
                "(({name}.view(np.uint16).astype(np.uint32)) << 16).view(np.float32).",
                name=Name(member.name),
                found=dtype,
            )
        elif kind != "f" or size not in (2, 4, 8):
            raise InputError(
                "Array {name} has the type {found}. Convert it to real numbers with {name}.astype(np.float32).",
                name=Name(member.name),
                found=dtype,
            )


def _check_shapes(members: dict[str, Member]) -> None:
    limits = current()
    limits_by_name = {N_("heads"): limits.heads, N_("tokens"): limits.matrix_tokens, N_("head size"): limits.head_size}
    for name in "qkv":
        shape = members[name].shape
        if not 2 <= len(shape) <= 4 or (len(shape) == 4 and shape[0] != 1):
            raise InputError(
                "Array {name} has the shape {shape}. Use [n, d], [H, n, d] or [1, H, n, d], for H heads, n tokens "
                "and head size d.",
                name=Name(name),
                shape=format_shape(shape),
            )
        for size_name, length in zip(limits_by_name, _heads_first(members[name]), strict=True):
            if not 1 <= length <= limits_by_name[size_name]:
                raise InputError(
                    "Array {name} has the shape {shape}. For {what}, use a number from 1 to {most} instead of "
                    "{length}.",
                    name=Name(name),
                    shape=format_shape(shape),
                    what=size_name,
                    length=length,
                    most=limits_by_name[size_name],
                )
    q, k, v = (_heads_first(members[name]) for name in "qkv")
    if (q[0], q[2]) != (k[0], k[2]) or k[:2] != v[:2]:
        raise InputError(
            "The shapes of q {q}, k {k} and v {v} do not match. Use [H, n, d], [H, m, d] and [H, m, d_v], for H "
            "heads, n queries and m keys. Repeat keys and values that several heads share. If queries and keys come "
            "from one sequence, m equals n.",
            q=format_shape(q),
            k=format_shape(k),
            v=format_shape(v),
        )
    for names, count in ((MASKS, q[1]), ((KEY_MASK,), k[1])):
        for name in names:
            if name in members and members[name].shape not in ((count,), (1, count)):
                raise InputError(MASK_REFUSED, name=Name(name))
    for name, count in (("tokens", q[1]), ("key_tokens", k[1])):
        if name in members and members[name].shape != (count,):
            raise InputError(
                "Array {name} has the shape {shape}, but there are {n} positions. Save one label per position.",
                name=Name(name),
                shape=format_shape(members[name].shape),
                n=count,
            )


def _unpadded_positions(npz: Npz, members: dict[str, Member], n: int, masks: Iterable[str]) -> list[int]:
    """Return which of n positions no mask marks as padding; ``masks`` are the names of mask arrays."""
    keep = np.ones(n, bool)
    for name in masks:
        if name in members:
            values = npz.array(members[name]).reshape(n)
            if not ((values == 0) | (values == 1)).all():
                raise InputError(MASK_REFUSED, name=Name(name))
            keep &= values == 1
    if not keep.any():
        raise InputError("The mask marks all {n} positions as padding. Use 1 for a token and 0 for padding.", n=n)
    return np.flatnonzero(keep).tolist()


def _heads_first(member: Member) -> tuple[int, int, int]:
    return member.shape[-3] if len(member.shape) > 2 else 1, member.shape[-2], member.shape[-1]


def _read_numbers(npz: Npz, member: Member) -> Tensor:
    """Return q, k or v as ``[H, n, d]`` float32."""
    array = npz.array(member).reshape(_heads_first(member))
    check_numbers(array, member.name)
    return torch.from_numpy(array.astype(np.float32, order="C"))


def _read_labels(npz: Npz, member: Member) -> tuple[str, ...]:
    labels = npz.array(member)
    # The characters are checked as numbers first, because numpy raises no clear error for code points that are not
    # characters: those beyond Unicode, and lone surrogates.
    points = labels.view(np.dtype(np.uint32).newbyteorder(labels.dtype.byteorder))
    if (points > 0x10FFFF).any() or ((points >= 0xD800) & (points < 0xE000)).any():
        raise InputError(
            "Array {name} contains characters that are not valid Unicode. Save labels with np.array(labels, "
            "dtype=str).",
            name=Name(member.name),
        )
    return tuple(readable_token(str(label)) for label in labels)
