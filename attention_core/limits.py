"""Bounds on visitors' requests, with units and reasons: one profile for the visitor's own machine, one for a server.

The profile for the visitor's own machine is the default. A server shared by many visitors, such as a school class,
sets ``ATTENTION_LAB_PROFILE=hosted``. A bound belongs here if the profiles differ, or if a large value in a text,
file, link or form would cost other visitors time, memory or disk space.

Other bounds, such as the number of variants that a sentence lists or the size of a picture, are defined next to the
code that uses them. Such a bound never exceeds the hosted profile's bound on the same quantity.
"""

import os
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The bounds of one profile; the defaults are those of the visitor's own machine."""

    text_characters: int = 20_000
    """Maximum characters of a text: the tokenizer runs over all of them each time the visitor pauses typing."""
    matrix_tokens: int = 1024
    """Maximum tokens (rows and columns) of a drawn matrix: eight panels of float16 send 16 n² bytes to the browser."""
    sweep_tokens: int = 8192
    """Maximum tokens of a matrix that is measured but not drawn: one head's n² float32 numbers are 64 MiB at 4096, and
    a measurement holds a few such matrices."""
    heads: int = 32
    """Maximum heads of a synthetic input or an upload."""
    head_size: int = 256
    """Maximum head size d of a synthetic input or an upload; no published model exceeds it."""
    synthetic_tokens: int = 65_536
    """Maximum tokens of a synthetic input: experiments over the sequence length use far more tokens than are drawn."""
    synthetic_numbers: int = 2**25
    """Maximum numbers (heads x tokens x size) in each of q, k and v of a synthetic input, 4 bytes each."""
    upload_bytes: int = 64 * 2**20
    """Maximum bytes of an unpacked upload, checked before anything is unpacked, as a protection from zip bombs."""
    uploads_bytes: int = 2**30
    """Maximum bytes of the uploads of all visitors; a new upload evicts the least recently used ones."""
    upload_magnitude: float = 1e6
    """Maximum absolute value in an upload or in tensors: the squared logits of a second-order variant still fit into
    float32."""
    upload_members: int = 64
    """Maximum members of an upload's zip: Python holds about a kilobyte for each entry of the zip's directory."""
    photo_bytes: int = 20 * 2**20
    """Maximum bytes of an uploaded photograph: the time to unpack it grows with its size."""
    photo_pixels: int = 40_000_000
    """Maximum pixels of an uploaded photograph, checked before it is unpacked to 3 bytes for each pixel."""
    picture_side: int = 64
    """Maximum side of a pixel grid: 64 means 4,096 tokens, and some variants hold several matrices of n² numbers."""
    label_characters: int = 256
    """Maximum characters of a token label in an upload: longer labels are mistakes, and each label is drawn n times."""
    compared_variants: int = 16
    """Maximum number of variants compared on one page: with more, the panels become too small to read."""
    stack_layers: int = 8
    """Maximum layers of a stack of masks: each layer costs a product of n x n matrices and needs its own colour."""
    timed_tokens: int = 65_536
    """Maximum tokens of a timed input: at 65,536 tokens with 8 heads of size 64, q, k and v take 384 MiB."""
    timed_seconds: float = 5.0
    """Maximum seconds of a timed call: it cannot be interrupted, and the heavy tasks of all visitors wait for it."""
    timed_bytes: int = 2**32
    """Maximum bytes that a timed call may allocate on the CPU beyond its inputs: other processes need memory too."""
    run_bytes: int = 2 * 2**20
    """Maximum bytes of a saved timing run that is read: each timing sample takes about 100 bytes."""
    run_points: int = 2048
    """Maximum number of variants times number of lengths in a saved timing run: all variants at about 36 lengths."""
    swap_tokens: int = 1024
    """Maximum tokens read by a model with replaced layers: 512 tokens take 1 to 2 s; some variants take time O(n²)."""
    swap_variants: int = 8
    """Maximum variants that replace softmax on one page: replacing layer by layer takes about sixty runs each."""
    learn_steps: int = 20_000
    """Maximum optimiser steps of a tiny model: a step takes 10 to 100 ms."""
    learn_models: int = 60
    """Maximum tiny models of one run, variants times seeds: each keeps about 200 kB for each measurement."""
    learn_numbers: int = 2**18
    """Maximum product of layers, tokens and width of a tiny model in a link: the time of a step grows with it."""
    hub_models: bool = True
    """True if visitors may name any model on the hub, which is then downloaded (up to gigabytes)."""
    hub_seconds: float = 10.0
    """Seconds after which the hub counts as unreachable; the visitor waits for that time."""
    model_parameters: int = 3_000_000_000
    """Maximum parameters of a hub model: in float32 these fill 12 GB, a laptop's memory."""
    heavy_jobs: int = 2
    """Number of worker processes of one app process: that many heavy computations run at the same time."""
    worker_bytes: int = 2**33
    """Maximum bytes of a worker process beyond the memory that all processes share: twice the largest timed call."""
    concurrent_pages: int = 2
    """Number of page scripts run at the same time in one process; they share one interpreter, so more are slower."""
    cache_entries: int = 32
    """Maximum entries of each results cache, of any size: Python holds about a kilobyte for each entry."""
    cached_bytes: int = 2**30
    """Maximum bytes of all cached results: a comparison at the matrix limit holds 30 MiB, a state over time 400 MiB."""


OWN_MACHINE = Limits()

HOSTED = Limits(
    matrix_tokens=512,
    sweep_tokens=4096,
    heads=16,
    head_size=128,
    synthetic_tokens=16_384,
    synthetic_numbers=2**22,
    upload_bytes=16 * 2**20,
    uploads_bytes=2**28,
    photo_bytes=8 * 2**20,
    photo_pixels=20_000_000,
    picture_side=48,
    compared_variants=8,
    timed_tokens=4096,
    timed_seconds=2.0,
    timed_bytes=2**29,
    swap_tokens=512,
    swap_variants=5,
    learn_steps=800,
    learn_models=24,
    learn_numbers=2**14,
    hub_models=False,
    heavy_jobs=1,
    concurrent_pages=1,
    worker_bytes=2**30,
    cache_entries=64,
    cached_bytes=3 * 2**27,
)


def current() -> Limits:
    """Return the current profile, from the environment variable ``ATTENTION_LAB_PROFILE`` (``own`` or ``hosted``)."""
    return HOSTED if os.environ.get("ATTENTION_LAB_PROFILE", "own").strip().lower() == "hosted" else OWN_MACHINE
