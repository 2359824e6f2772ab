"""The adaptor for peers, which are implementations of attention by other projects.

It runs a peer on given q, k and v, without the peer's own projections.
"""

import contextlib
import importlib.util
import io
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention_core.metrics import relative_error
from benchmarks.cases import Case

Settings = Mapping[str, Any]


class Built(NamedTuple):
    """A peer ready to be timed.

    Attributes:
        call: the peer's own forward pass; all preparation is done.
        expected: returns the expected output, ``[B, H, n, d]``, if it differs from this library's variant.
    """

    call: Callable[[], Any]
    expected: Callable[[], Tensor] | None = None


@dataclass(frozen=True)
class Peer:
    """An implementation by another project, with which a variant of this library is compared.

    Attributes:
        name: its name in reports.
        needs: the top-level module that must be installed.
        build: ``(q, k, v, settings) -> Built`` for q, k, v ``[B, H, n, d]`` and the case's settings.
        counted: whether its tensors can be counted; the tensors of compiled code cannot.
        longest: the largest n that it supports.
        compiles: whether it needs a C++ compiler.
        check_heads: the number of heads of its check.
        check_tokens: the number of tokens of its check.
        check_settings: settings of its check in addition to the case's own.
    """

    name: str
    needs: str
    build: Callable[[Tensor, Tensor, Tensor, Settings], Built]
    counted: bool = True
    longest: int = 1 << 30
    compiles: bool = False
    check_heads: int = 2
    check_tokens: int = 512
    check_settings: Settings = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """The reason why the peer cannot run on this machine, empty if it can."""
        if source(self.needs) is None:
            return f"{self.needs} is not installed"
        return "there is no C++ compiler" if self.compiles and shutil.which("g++") is None else ""

    def error(self, case: Case) -> float:
        """Return the relative error between the peer's output on a small input and the expected output."""
        shape = (3, 1, self.check_heads, self.check_tokens, 16)
        q, k, v = torch.randn(shape, generator=torch.Generator().manual_seed(1))
        settings = {**case.settings_at(self.check_tokens), **self.check_settings}
        call, expected = self.build(q, k, v, settings)
        result = by_head(call(), like=v)
        target = case.attention(settings).attend(q, k, v, causal=case.causal) if expected is None else expected()
        return float(relative_error(result.flatten(0, -2), target.flatten(0, -2)))


class FixedProjection(nn.Module):
    """A replacement for a peer's projection that returns fixed tensors for any input."""

    def __init__(self, *tensors: Tensor) -> None:
        super().__init__()
        self.tensors = tensors

    def forward(self, *_: object) -> Tensor | tuple[Tensor, ...]:
        """Return the tensors, without a copy."""
        return self.tensors[0] if len(self.tensors) == 1 else self.tensors


class CopyingProjection(FixedProjection):
    """A version of ``FixedProjection`` for peers that write into the projection's output.

    The copy counts in time and memory.
    """

    def forward(self, *_: object) -> Tensor:
        """Return a copy of the tensor."""
        return self.tensors[0].clone()


def packed(x: Tensor) -> Tensor:
    """Return ``[B, H, n, d]`` as ``[B, n, H d]``, the layout of projected tokens, in which heads are strided views."""
    return x.transpose(1, 2).flatten(2).contiguous()


def folded(x: Tensor) -> Tensor:
    """Return ``[B, H, n, d]`` as ``[B H, n, d]``, a view, for peers whose tensors have no axis for heads."""
    return x.flatten(0, 1)


def by_head(out: Any, like: Tensor) -> Tensor:  # noqa: ANN401 - any output of a peer
    """Return a peer's output, in any of these layouts, as ``[B, H, n, d]``."""
    out = out[0] if isinstance(out, tuple) else out
    batch, heads, n, d = like.shape
    if out.ndim == 4:
        return out if out.shape == like.shape else out.reshape(batch, n, heads, d).transpose(1, 2)
    if out.shape == (batch * heads, n, d):
        return out.unflatten(0, (batch, heads))
    return out.reshape(batch, n, heads, d).transpose(1, 2)


def explicit(logits: Tensor, v: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Return ``softmax(logits) v`` over the allowed pairs."""
    return (logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)).softmax(-1) @ v


def source(package: str) -> Path | None:
    """Return a package's folder, from a variable such as ``FLA_SOURCE`` or of the installed package; None for none."""
    folder = os.environ.get(f"{package.upper()}_SOURCE")
    if folder:
        return Path(folder)
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def file_module(package: str, path: str) -> ModuleType:
    """Return one file of a package as a module, without importing the package, which needs missing dependencies."""
    root = source(package)
    assert root is not None
    spec = importlib.util.spec_from_file_location(Path(path).stem, root / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress the output, warnings and log messages of peers within the block."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
