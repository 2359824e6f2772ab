"""Experiments: one module per question, usable without the web app.

An experiment is a list of independent frozen tasks and a pure function from a task to rows. Progress bars, cancelling,
streaming charts, caching and remote execution then need no extra code. Each experiment's module has

- ``tasks(...) -> tuple[Task, ...]``, with the most useful results first;
- ``run(task, *, load=load) -> Sequence[Row]``, whose random seeds depend on the task only. It raises ``LabError`` if
  the source or the text cannot be read, if the model is not available, or if the variant cannot be causal but must be.

Docstrings of tasks and rows leave out the fields that mean the same everywhere:

- ``source``: the queries, keys and values. A synthetic source contains its seed, which is copied to ``seed``.
- ``seeds``: number of seeds of a synthetic source, counted up from its own seed. Other sources have no ``seed`` (None).
- ``word`` or ``variant``: a variant with its settings, as ``Attention.word`` writes them. ``words``: several variants.
- ``n``: number of tokens; if the keys are those of another sequence, the number of keys. ``longest``: the largest n.
- ``head``: the measured head. In a task, None means all heads. ``heads``: number of heads.
- ``d``: size of queries and keys. ``d_v``: size of values.
- ``causal``: whether a causal mask is used.
- ``text``: the text that a model reads. ``model``: its key, or ``owner/name``.
- ``layers``: the layers in which the variant replaces softmax; empty for the unchanged model.
- ``live``: whether to compute even if a result is recorded.
- ``recorded``: date and processor of the recording; empty for a new result.

``attention_core.sweep`` runs the two experiments that most programs need, ``error`` and ``entropy_length``, in one
call.

Example:
    >>> import torch
    >>> import attention_core as ac
    >>> source = ac.inputs.TensorSource.of(*torch.randn(3, 1, 32, 8))
    >>> task, *_ = ac.experiments.error.tasks(source, 32, ["local~window~4"], head=0, causal=False)
    >>> [row.n for row in ac.experiments.error.run(task)]
    [32]
"""

import importlib
import pkgutil
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Return the module of the experiment ``name``, which is imported at this first use."""
    if name not in {module.name for module in pkgutil.iter_modules(__path__)}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
