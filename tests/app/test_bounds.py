"""Tests of every limit in a server's profile: a value at the limit is accepted, and a larger one gives a message."""

import io
import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from PIL import Image
from transformers import BertConfig

import attention_core as ac
from app.state import refusals, url
from app.state.session import SharedOptions
from attention_core import limits
from attention_core.benchmarking.counting import Counts
from attention_core.benchmarking.run_file import from_json, recorded_runs, to_json
from attention_core.benchmarking.run_records import Skipped
from attention_core.benchmarking.timing import TimingSpec
from attention_core.errors import LabError
from attention_core.experiments import learning
from attention_core.experiments.swap import text_tokens
from attention_core.experiments.timing_length import measure
from attention_core.inputs import ImageSource, SyntheticSpec, from_synthetic, from_text, from_upload
from attention_core.inputs.models import hub
from attention_core.inputs.trained import training_run
from attention_core.limits import Limits
from pages.entropy.options import EntropyOptions
from pages.masks.options import MasksOptions
from pages.model.options import ModelOptions
from pages.timing.options import TimingOptions

RUN = to_json(next(iter(recorded_runs().values())))


def synthetic(**size):
    from_synthetic(SyntheticSpec(**{"n": 4, "d": 4, "heads": 1} | size))


def text(words):
    """Return the notices about a text."""
    return " ".join(map(str, from_text(words).notices))


def read(data):
    from_upload(data, "a.npz")


def upload(shape=(1, 4, 4), largest=1.0, **more):
    q = np.ones(shape, np.float32)
    q.flat[0] = largest
    file = io.BytesIO()
    np.savez(file, q=q, k=q, v=q, **more)
    return file.getvalue()


def photo(width, size=0):
    """Read a PNG of this width and 20 rows, padded to a size in bytes."""
    file = io.BytesIO()
    Image.new("L", (width, 20)).save(file, "PNG")
    ImageSource.of("a.png", file.getvalue().ljust(size, b"0"), size=16).load()


def padded(size):
    """Return a zip file of the given size in bytes, padded by the comment of its directory."""
    data = upload()
    remark = size - len(data)
    return data[:-2] + remark.to_bytes(2, "little") + bytes(remark)


def opened(options, name):
    """Return a function that gives the refusal of a link with these words for an option, or None."""

    def refusal_of(words):
        kinds = options.fields()
        values, refused = url.read_link({name: words}, kinds)
        return refusals.notice_text(values, kinds, dict.fromkeys(refused, words)) if refused else None

    return refusal_of


def listed(options, name, n):
    """Return the refusal of a link whose length is ``n`` rounded up to a power of two, or None."""
    return opened(options, name)([str(2 ** (n - 1).bit_length())])


def run_file(points):
    """Return the refusal of a run file with so many points, or None if it is within the limit."""
    document = json.loads(RUN)
    document["points"] = (document["points"] * points)[:points]
    try:
        from_json(json.dumps(document).encode())
    except LabError as error:
        return str(error) if "the limit is" in str(error) else None  # Repeated points raise another error.


def run_bytes(size):
    data = RUN
    from_json(data + b" " * (size - len(data)))


def parameters(count):
    """Check a fake hub model whose description has so many parameters."""

    class Described:
        def num_parameters(self):
            return count

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hub.AutoConfig, "from_pretrained", lambda *_, **__: BertConfig())
        patched.setattr(hub.AutoModel, "from_config", lambda *_, **__: Described())
        hub._check_kind("lab/large", None)


class FakeClock:
    """A clock that reports the same time and memory for every call."""

    def __init__(self, seconds, peak_bytes):
        self.each, self.peak_bytes = seconds, peak_bytes

    def seconds(self, call, repeats):
        return self.each

    def costs(self, call):
        return Counts(multiply_adds=1, peak_elements=1, largest_elements=1), self.peak_bytes


def timed(seconds, peak_bytes=1):
    """Return why softmax is skipped at 16 tokens, where it takes 4 times as long as at 8 and twice the memory."""
    spec = TimingSpec(variants=("softmax",), sizes=(8, 16), heads=1, head_size=64, rounds=1)
    for row in measure(spec, clock=FakeClock(seconds, peak_bytes)):
        if isinstance(row, Skipped):
            return row.reason.format(most=row.most)
    return None


WORD = "word "
CASES = {
    "text_characters": (40, lambda n: text((WORD * 20)[:n]), "41 characters. Only the first 40 are used"),
    "synthetic_tokens": (12, lambda n: synthetic(n=n), "n is 13. Choose a whole number from 1 to 12"),
    "head_size": (12, lambda n: synthetic(d=n), "d is 13. Choose a whole number from 1 to 12"),
    "heads": (3, lambda n: synthetic(heads=n), "heads is 4. Choose a whole number from 1 to 3"),
    "synthetic_numbers": (
        16 * 12,
        lambda n: synthetic(n=n - 16 * 12 + 12, d=16),
        "208 numbers. Choose smaller values, so that the product is at most 192",
    ),
    "matrix_tokens": (12, lambda n: read(upload((1, n, 4))), "For tokens, use a number from 1 to 12 instead of 13"),
    "upload_bytes": (
        2000,
        lambda n: read(padded(n)),
        "2,001 bytes, but the limit is 2,000 bytes. Upload a smaller file",
    ),
    "upload_magnitude": (100, lambda n: read(upload(largest=n)), r"values up to 101\. .* to at most 100"),
    "upload_members": (
        5,
        lambda n: read(upload(**{f"x{i}": np.ones(1) for i in range(n - 3)})),
        "contains 6 arrays, more than 5. Save only q, k and v",
    ),
    "photo_bytes": (2000, lambda n: photo(16, n), "2,001 bytes. Upload an image of at most 2,000 bytes"),
    "photo_pixels": (400, lambda n: photo(-(-n // 20)), "a.png has too many pixels"),
    "picture_side": (20, lambda n: ImageSource(size=n).load() and "", "grid is 21, .* from 16 to 20"),
    "label_characters": (
        7,
        lambda n: read(upload(tokens=np.array(["a" * n] * 4))),
        "<U8. Save labels of at most 7 characters",
    ),
    "compared_variants": (
        3,
        lambda n: opened(SharedOptions, "variants")([v.key for v in ac.all_variants()][:n]),
        r"\(allowed: up to 3 variants, each once",
    ),
    "stack_layers": (3, lambda n: opened(MasksOptions, "stack")(["local"] * n), r"\(allowed: up to 3 layers"),
    "run_points": (20, run_file, "21 entries in points, but the limit is 20"),
    "run_bytes": (2**18, run_bytes, "262,145 bytes. Upload a timing run of at most 262,144"),
    "sweep_tokens": (
        256,
        lambda n: listed(EntropyOptions, "h_longest", n),
        r"instead of “512” \(allowed: 128 and 256\).",
    ),
    "timed_tokens": (1024, lambda n: listed(TimingOptions, "t_to", n), r"instead of “2048” \(allowed: .*512 and 1024"),
    "timed_seconds": (4, lambda n: timed(n / 4), "more than 4 s"),
    "timed_bytes": (2**24, lambda n: timed(1e-3, n / 2), "more than 16 MiB"),
    "swap_tokens": (
        12,
        lambda n: " ".join(map(str, text_tokens(" ".join(["word"] * n)).notices)),
        "has 13 tokens. Only the first 12 are used",
    ),
    "learn_steps": (
        30,
        lambda n: learning.plan(["softmax"], steps=n) and "",
        "steps is 31. Choose a number from 1 to 30",
    ),
    "learn_models": (
        4,
        lambda n: learning.plan(["softmax"], seeds=range(n)) and "",
        "variants × seeds is 5. Choose a number from 1 to 4",
    ),
    "learn_numbers": (
        512,
        lambda n: training_run("parity", layers=1, width=8, length=-(-n // 8)) and "",
        "layers × sequence length × width is 520. Choose a number from 1 to 512",
    ),
    "swap_variants": (
        3,
        lambda n: opened(ModelOptions, "m_words")([v.key for v in ac.all_variants() if not v.causal_reason][:n]),
        r"\(allowed: up to 3 variants, each once",
    ),
    "model_parameters": (10**6, parameters, "1,000,001 parameters. Choose a model of at most 1,000,000"),
}
SERVERS_OWN = {
    "hub_models": "says whether, not how many",
    "hub_seconds": "how long the server waits for others",
    "uploads_bytes": "makes room for a new file and refuses none",
    "heavy_jobs": "makes wait and refuses nothing",
    "concurrent_pages": "makes wait and refuses nothing",
    "worker_bytes": "is of a process: its tasks are bounded by what they are given",
    "cache_entries": "makes room and refuses nothing",
    "cached_bytes": "makes room and refuses nothing",
}
"""Limits that no input can exceed, and the reason."""


def test_every_limit_is_tested_or_cannot_be_exceeded_by_input():
    assert {*CASES} | {*SERVERS_OWN} == {field.name for field in fields(Limits)}
    assert not {*CASES} & {*SERVERS_OWN}


@pytest.mark.parametrize("bound", CASES)
def test_a_value_at_the_limit_is_accepted_and_a_larger_one_is_refused(bound, monkeypatch):
    most, ask, message = CASES[bound]
    monkeypatch.setattr(limits, "OWN_MACHINE", replace(limits.OWN_MACHINE, **{bound: most}))

    def refusal_of(value):
        try:
            return ask(value) or ""
        except LabError as error:
            return str(error)

    assert refusal_of(most) == ""
    beyond = refusal_of(most + 1)
    assert re.search(message, beyond), beyond
    assert "\n" not in beyond
    assert len(beyond) < 300
