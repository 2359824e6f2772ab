"""Counts the multiply-adds, the peak memory and the largest tensor of a computation.

Counts do not depend on the machine or its load, so cost formulas are checked against them.

Multiply-adds are those of matrix products, attention kernels and distances between vectors. Elementwise functions,
sorting, and matrix inverses and decompositions are not counted. With a causal mask, blocks of keys that lie entirely
after a block of queries are skipped and not counted; a partly hidden block counts in full.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from attention_core.ops.softmax.blockwise import n_pairs

Formula = Callable[..., int]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The counts of one call.

    Attributes:
        multiply_adds: multiply-adds of matrix products, attention kernels and distances; see the module.
        peak_elements: most numbers in memory at the same time, beyond those before the call, results included. It
            is the number of bytes divided by the size of ``unit``.
        largest_elements: size of the largest single tensor, in the same unit.
    """

    multiply_adds: int
    peak_elements: int
    largest_elements: int


def count(call: Callable[[], Any], *, unit: torch.dtype = torch.float32) -> Counts:
    """Run ``call`` and count its operations and memory.

    Memory that a kernel uses internally, without making a tensor, is not counted.

    Args:
        call: the function to run; its result is discarded.
        unit: the type whose size is one element.
    """
    with _Counter() as counter:
        call()
    return Counts(
        multiply_adds=counter.flops // 2,
        peak_elements=counter.peak // unit.itemsize,
        largest_elements=counter.largest // unit.itemsize,
    )


def largest_live_tensors(call: Callable[[], Any], *, max_tensors: int = 3) -> list[tuple[int, tuple[int, ...]]]:
    """Return the largest tensors made by ``call`` that are alive at its memory peak, as bytes and shape.

    The function is run twice: once to find the peak, once to list the tensors when it is reached.

    Args:
        call: the function to run; its results are discarded.
        max_tensors: maximum number of tensors to return.
    """
    with _Counter() as counter:
        call()
    with _Counter(snapshot_bytes=counter.peak) as second:
        call()
    return sorted(second.snapshot, reverse=True)[:max_tensors]


def _cpu_attention_flops(query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _distance_flops(left: Tensor, right: Tensor, *_: object, **__: object) -> int:
    return 2 * left.numel() * right.shape[-2]


def _cpu_attention_backward_flops(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object
) -> int:
    return int(sdpa_backward_flop_count(grad.shape, query.shape, key.shape, value.shape))


def _sampled_flops(positions: Tensor, left: Tensor, *_: object, **__: object) -> int:
    return 2 * positions._nnz() * left.shape[-1]


def _bag_flops(weight: Tensor, indices: Tensor, *_: object, **__: object) -> int:
    return 2 * indices.numel() * weight.shape[-1]


def _added_product_flops(target: Tensor, left: Tensor, right: Tensor, **_: object) -> int:
    return 2 * left.numel() * right.shape[-1]


# Formulas for operations that torch's flop counter does not know: the CPU attention kernels, matrix products of which
# only the entries at given positions are computed, embedding bags and in-place products.
_ATEN = torch.ops.aten
_FLOPS: dict[Any, Formula] = flop_registry | {
    _ATEN.baddbmm_: _added_product_flops,
    _ATEN.sparse_sampled_addmm: _sampled_flops,
    _ATEN._embedding_bag_forward_only: _bag_flops,
    _ATEN._embedding_bag: _bag_flops,
    _ATEN._scaled_dot_product_flash_attention_for_cpu: _cpu_attention_flops,
    _ATEN._scaled_dot_product_flash_attention_for_cpu_backward: _cpu_attention_backward_flops,
    _ATEN._cdist_forward: _distance_flops,
}


def _skipped_when_causal(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], flops: int) -> int:  # noqa: ANN401
    """Return the flops of a causal attention kernel without the blocks of keys that it skips.

    torch's formulas ignore the causal mask, and each kernel has its own block size. The blocks of
    ``blockwise_attention`` are used for all kernels, so that equal mathematics has equal counts.
    """
    arguments = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    if not arguments.get("is_causal"):
        return flops
    n = arguments["query"].shape[-2]
    return flops * n_pairs(n, causal=True) // (n * n)


class _Counter(TorchDispatchMode):
    """A dispatch mode that sums the flops of all operations below autograd and tracks the storages they allocate."""

    def __init__(self, snapshot_bytes: int | None = None) -> None:
        super().__init__()
        self.snapshot: list[tuple[int, tuple[int, ...]]] = []
        self._snapshot_bytes = snapshot_bytes
        self._live: dict[int, tuple[int, tuple[int, ...], weakref.ref[Any]]] = {}
        self.flops = 0
        self.peak = 0
        self.largest = 0
        self._live_bytes = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch's default, True, excludes ``__torch_dispatch__`` from torch.compile. To exclude it, torch imports the
        # compiler at the first operation, which takes seconds.
        return False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's own signature
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = _FLOPS.get(func._overloadpacket)
        flops = int(formula(*args, **kwargs, out_val=result)) if formula else 0
        if flops:
            self.flops += _skipped_when_causal(func, args, kwargs, flops)
        allocated = [tensor for tensor in _tensors_in(result) if tensor.untyped_storage()._cdata not in self._live]
        if allocated:
            inputs = {tensor.untyped_storage()._cdata for tensor in _tensors_in((args, kwargs))}
            for tensor in allocated:
                if tensor.untyped_storage()._cdata not in inputs:
                    self._track(tensor.untyped_storage(), tensor.shape)
        return result

    def _track(self, storage: torch.UntypedStorage, shape: torch.Size) -> None:
        size, key = storage.nbytes(), storage._cdata
        if key in self._live:
            return
        # A plain weak reference reports the end of a storage in a third of the time of ``weakref.finalize``, and nearly
        # every operation makes a storage.
        self._live[key] = size, tuple(shape), weakref.ref(storage, lambda _: self._free(key))
        self._live_bytes += size
        self.peak = max(self.peak, self._live_bytes)
        self.largest = max(self.largest, size)
        if self._live_bytes == self._snapshot_bytes and not self.snapshot:
            self.snapshot = [(size, shape) for size, shape, _ in self._live.values()]

    def _free(self, key: int) -> None:
        self._live_bytes -= self._live.pop(key)[0]


def _tensors_in(items: object) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dicts; a sparse tensor gives its index and value tensors.

    With torch's own function for nested structures, the search took half the time of a count.
    """
    tensors: list[Tensor] = []
    remaining = [items]
    while remaining:
        item = remaining.pop()
        if isinstance(item, Tensor):
            is_sparse = item.layout == torch.sparse_csr
            tensors += (item.crow_indices(), item.col_indices(), item.values()) if is_sparse else (item,)
        elif isinstance(item, list | tuple):
            remaining += item
        elif isinstance(item, dict):
            remaining += item.values()
    return tensors
