"""Counts what a computation does: multiply-adds, most numbers alive at once, and the largest single tensor.

Counts do not depend on the machine or on what else it does, so cost formulas are checked against them.

Multiply-adds are those of matrix products, attention kernels and distances between vectors. Elementwise functions,
sorting, and the inverses and decompositions of matrices are not counted. A causal form skips the blocks of keys that
lie entirely ahead of a block of queries, so these are not counted; a block that is hidden in part counts in full.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from attention_core.ops.softmax.blockwise import pairs

Formula = Callable[..., int]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a call did.

    Attributes:
        multiply_adds: multiply-adds in matrix products, attention kernels and distances, as the module says.
        peak_elements: most numbers alive at once beyond those that existed before, results included; a number narrower
            or wider than ``unit`` counts by its bytes.
        largest_elements: numbers in the largest single tensor made, likewise.
    """

    multiply_adds: int
    peak_elements: int
    largest_elements: int


def count(call: Callable[[], Any], *, unit: torch.dtype = torch.float32) -> Counts:
    """Run ``call`` and count.

    What a kernel holds inside itself is not seen: it hands out no tensor for it.

    Args:
        call: what to run; its result is dropped.
        unit: the type whose size is one element.
    """
    with _Counter() as counter:
        call()
    return Counts(
        multiply_adds=counter.flops // 2,
        peak_elements=counter.peak // unit.itemsize,
        largest_elements=counter.largest // unit.itemsize,
    )


def held(call: Callable[[], Any], *, most: int = 3) -> list[tuple[int, tuple[int, ...]]]:
    """The largest tensors that ``call`` has made and that are alive when it holds most, as bytes and shape.

    It is run twice: to find the most, then to look when it is reached.

    Args:
        call: what to run; its results are dropped.
        most: how many tensors to name.
    """
    with _Counter() as counter:
        call()
    with _Counter(look_at=counter.peak) as again:
        call()
    return sorted(again.seen, reverse=True)[:most]


def _cpu_attention_flops(query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _distance_flops(left: Tensor, right: Tensor, *_: object, **__: object) -> int:
    return 2 * left.numel() * right.shape[-2]


def _cpu_attention_backward_flops(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object
) -> int:
    return int(sdpa_backward_flop_count(grad.shape, query.shape, key.shape, value.shape))


def _sampled_flops(at: Tensor, left: Tensor, *_: object, **__: object) -> int:
    return 2 * at._nnz() * left.shape[-1]


def _bag_flops(weight: Tensor, indices: Tensor, *_: object, **__: object) -> int:
    return 2 * indices.numel() * weight.shape[-1]


def _added_product_flops(into: Tensor, left: Tensor, right: Tensor, **_: object) -> int:
    return 2 * left.numel() * right.shape[-1]


# torch's own counter knows every attention kernel but the CPU's, and no product at given places or added in place.
_ATEN = torch.ops.aten
_MORE: dict[Any, Formula] = {
    _ATEN.baddbmm_: _added_product_flops,
    _ATEN.sparse_sampled_addmm: _sampled_flops,
    _ATEN._embedding_bag_forward_only: _bag_flops,
    _ATEN._embedding_bag: _bag_flops,
    _ATEN._scaled_dot_product_flash_attention_for_cpu: _cpu_attention_flops,
    _ATEN._scaled_dot_product_flash_attention_for_cpu_backward: _cpu_attention_backward_flops,
    _ATEN._cdist_forward: _distance_flops,
}


def _skipped_when_causal(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], flops: int) -> int:  # noqa: ANN401
    """What is left of a causal attention kernel's flops without the blocks of keys that it skips.

    torch's formulas ignore the causal mask, and each kernel has blocks of its own size. All are counted with the
    blocks of ``blockwise_attention``, so that equal mathematics has equal counts.
    """
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    if not given.get("is_causal"):
        return flops
    n = given["query"].shape[-2]
    return flops * pairs(n, causal=True) // (n * n)


class _Counter(TorchDispatchMode):
    """Sees every operation below autograd, adds up its flops and follows the storages it makes until they are freed."""

    def __init__(self, look_at: int | None = None) -> None:
        super().__init__()
        self.seen: list[tuple[int, tuple[int, ...]]] = []
        self._look_at = look_at
        self._shapes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.flops = 0
        self.peak = 0
        self.largest = 0
        self._alive = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Guarding against torch.compile, which nobody uses here, would import the compiler: seconds.
        return False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's own signature
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        kwargs = kwargs or {}
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = func(*args, **kwargs)
        packet = func._overloadpacket
        flops = 0
        if packet in _MORE:
            flops = _MORE[packet](*args, **kwargs)
        elif packet in flop_registry:
            flops = int(flop_registry[packet](*args, **kwargs, out_val=result))
        if flops:
            self.flops += _skipped_when_causal(func, args, kwargs, flops)
        for part in _parts(result):
            storage = part.untyped_storage()
            if storage._cdata not in given:
                self._follow(storage, part.shape)
        return result

    def _follow(self, storage: torch.UntypedStorage, shape: torch.Size) -> None:
        if storage in self._known:
            return
        size = storage.nbytes()
        self._known.add(storage)
        self._alive += size
        self.peak = max(self.peak, self._alive)
        self.largest = max(self.largest, size)
        key = storage._cdata
        self._shapes[key] = size, tuple(shape)
        if self._alive == self._look_at and not self.seen:
            self.seen = list(self._shapes.values())
        weakref.finalize(storage, self._free, size, key)

    def _free(self, size: int, key: int) -> None:
        self._alive -= size
        del self._shapes[key]


def _storages(items: object) -> Iterator[torch.UntypedStorage]:
    """Where the tensors among the items hold their numbers."""
    return (part.untyped_storage() for part in _parts(items))


def _parts(items: object) -> Iterator[Tensor]:
    """The tensors among the items, sparse ones by parts; by hand, as torch's walk took half the time of a count."""
    todo = [items]
    while todo:
        item = todo.pop()
        if isinstance(item, Tensor):
            sparse = item.layout == torch.sparse_csr
            yield from (item.crow_indices(), item.col_indices(), item.values()) if sparse else (item,)
        elif isinstance(item, list | tuple):
            todo.extend(item)
        elif isinstance(item, dict):
            todo.extend(item.values())
