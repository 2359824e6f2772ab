"""What a visitor may ask of the machine: every bound, named, with its unit and its reason, in two profiles.

``own machine`` is the default; a server shared by a class sets ``ATTENTION_LAB_PROFILE=hosted``. A bound stands here
where a text, a file, a link or a form may reach it and others pay, in time, memory or disk, or where profiles differ.
What belongs to one question stands beside it: at which sizes an experiment answers, how much a sentence or a picture
holds, what a file format allows. Such a constant never goes beyond what the smaller profile allows here.
"""

import os
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """One profile of bounds."""

    text_characters: int
    """Characters of a text that are read: the tokenizer runs over all of them at each keystroke's end."""
    matrix_tokens: int
    """Tokens (rows and columns) of a drawn matrix: eight panels of float16 are 16 n² bytes on the wire."""
    sweep_tokens: int
    """Tokens of a matrix that is measured but not drawn: one head's n² float32 numbers, held a few times over, are 64
    MiB at 4096."""
    heads: int
    """Heads of a synthetic input or an upload."""
    head_size: int
    """Head size d of a synthetic input or an upload; no published model exceeds it."""
    synthetic_tokens: int
    """Tokens of a synthetic input: sweeps over length go far beyond what is drawn."""
    synthetic_numbers: int
    """Numbers (heads x tokens x size) in each of q, k and v of a synthetic input, 4 bytes each."""
    upload_bytes: int
    """Bytes of an upload once unpacked: checked before anything is unpacked, so a zip bomb stays shut."""
    uploads_bytes: int
    """Bytes of all visitors' uploads together; the one that was looked at longest ago makes room for a new one."""
    upload_magnitude: float
    """Largest absolute value in an upload: the squared logits of a second-order variant still fit float32."""
    upload_members: int
    """Members of an upload's zip: Python holds about a kilobyte for each entry of its directory, wanted or not."""
    label_characters: int
    """Characters of one token label in an upload: a label longer than a word is a mistake, and is drawn n times."""
    compared_variants: int
    """Variants side by side on one page: more panels than these become too small to read."""
    stack_layers: int
    """Layers of a stack whose reach is followed: each is a product of n x n matrices and a colour of its own."""
    timed_tokens: int
    """Tokens of the longest input that is timed: q, k and v take 384 MiB at 65,536 with 8 heads of 64."""
    timed_seconds: float
    """Seconds one timed call may take, as it cannot be stopped and everybody's heavy work waits for it."""
    timed_bytes: int
    """Bytes one timed call may hold on the CPU beyond its inputs: the process shares the machine."""
    run_bytes: int
    """Bytes of a saved timing run that is read: about 100 per sample."""
    run_points: int
    """Variants times lengths in a saved timing run: every variant at sixty lengths."""
    swap_tokens: int
    """Tokens that a model with swapped layers reads: 512 take it a second or two, and some variants n² of them more."""
    swap_variants: int
    """Variants that stand in softmax's place on one page: for a map of layers each is read some sixty times."""
    hub_models: bool
    """Whether any hub model may be asked for by name (it is downloaded, up to gigabytes)."""
    hub_seconds: float
    """Seconds until the hub counts as out of reach: the visitor waits for it."""
    model_parameters: int
    """Parameters of a hub model: in float32 these fill 12 GB, a laptop's memory."""
    heavy_jobs: int
    """Heavy computations that run at once in one process, and its worker processes; others wait their turn."""
    worker_bytes: int
    """Bytes a worker process may hold beyond what all share: the largest timed call, and as much again for the rest."""
    drawn_at_once: int
    """Pages that run at once in one process; they share one interpreter, so more of them make all late."""
    cached_results: int
    """Results kept per cache, however small: Python holds about a kilobyte for each."""
    cached_bytes: int
    """Bytes of all results kept; one comparison at the matrix limit holds about 30 MiB, a state over time 400."""


OWN_MACHINE = Limits(
    text_characters=20_000,
    matrix_tokens=1024,
    sweep_tokens=8192,
    heads=32,
    head_size=256,
    synthetic_tokens=65_536,
    synthetic_numbers=2**25,
    upload_bytes=64 * 2**20,
    uploads_bytes=2**30,
    upload_magnitude=1e6,
    upload_members=64,
    label_characters=256,
    compared_variants=16,
    stack_layers=8,
    timed_tokens=65_536,
    timed_seconds=5.0,
    timed_bytes=2**32,
    run_bytes=2 * 2**20,
    run_points=2048,
    swap_tokens=1024,
    swap_variants=8,
    hub_models=True,
    hub_seconds=10.0,
    model_parameters=3_000_000_000,
    heavy_jobs=2,
    drawn_at_once=2,
    worker_bytes=2**33,
    cached_results=32,
    cached_bytes=2**30,
)

HOSTED = Limits(
    text_characters=20_000,
    matrix_tokens=512,
    sweep_tokens=4096,
    heads=16,
    head_size=128,
    synthetic_tokens=16_384,
    synthetic_numbers=2**22,
    upload_bytes=16 * 2**20,
    uploads_bytes=2**28,
    upload_magnitude=1e6,
    upload_members=64,
    label_characters=256,
    compared_variants=8,
    stack_layers=8,
    timed_tokens=4096,
    timed_seconds=2.0,
    timed_bytes=2**29,
    run_bytes=2 * 2**20,
    run_points=2048,
    swap_tokens=512,
    swap_variants=5,
    hub_models=False,
    hub_seconds=10.0,
    model_parameters=3_000_000_000,
    heavy_jobs=1,
    drawn_at_once=1,
    worker_bytes=2**30,
    cached_results=64,
    cached_bytes=3 * 2**27,
)


def current() -> Limits:
    """The profile in force, from the environment variable ``ATTENTION_LAB_PROFILE`` (``own`` or ``hosted``)."""
    return HOSTED if os.environ.get("ATTENTION_LAB_PROFILE", "own").strip().lower() == "hosted" else OWN_MACHINE
