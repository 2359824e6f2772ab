"""Inputs of the library: texts, synthetic sequences, images, uploads and tiny trained models, all as ``QKV`` records.

Example:
    >>> import attention_core as ac
    >>> source = ac.inputs.SyntheticSource(ac.inputs.SyntheticSpec(kind="needle", n=32, heads=1))
    >>> [row.n for row in ac.sweep("entropy", source, ["softmax"])]
    [8, 11, 16, 23, 32]
    >>> qkv = ac.inputs.from_text("the cat saw the dog", layer=3)
    >>> qkv
    QKV('minilm layer 3', 12 heads × 7 tokens × 32, causal=False, 0 notices)
    >>> len(ac.inputs.record_layers("the cat saw the dog")), ac.inputs.TextSource("the cat").load().n
    (6, 4)
    >>> ac.inputs.from_upload(ac.inputs.to_npz(ac.inputs.first_tokens(qkv, 5)), "cat.npz").n
    5
    >>> ac.inputs.UploadSource.of("example.npz", ac.inputs.example_npz()).load()
    QKV('example.npz', 2 heads × 24 tokens × 16, causal=False, 0 notices)
    >>> ac.inputs.TrainedSource.of("recall", "softmax", "steps~2").load().origin, ac.inputs.ImageSource().load().grid
    ('model trained on recall, layer 0', (32, 32))
"""

from attention_core.errors import Notice
from attention_core.inputs import models
from attention_core.inputs.image_source import ImageSource
from attention_core.inputs.own_model import from_model
from attention_core.inputs.record import QKV
from attention_core.inputs.source import Source, SyntheticSource, TextSource, UploadSource, first_tokens
from attention_core.inputs.synthetic import KINDS, SyntheticKind, SyntheticSpec, from_synthetic
from attention_core.inputs.tensors import TensorSource
from attention_core.inputs.text import from_text, record_layers
from attention_core.inputs.trained import TrainedSource
from attention_core.inputs.upload import example_npz, from_upload, to_npz

__all__ = [
    "KINDS",
    "QKV",
    "ImageSource",
    "Notice",
    "Source",
    "SyntheticKind",
    "SyntheticSource",
    "SyntheticSpec",
    "TensorSource",
    "TextSource",
    "TrainedSource",
    "UploadSource",
    "example_npz",
    "first_tokens",
    "from_model",
    "from_synthetic",
    "from_text",
    "from_upload",
    "models",
    "record_layers",
    "to_npz",
]
