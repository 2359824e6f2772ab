"""Compares every variant on a device such as a GPU with the same variant in float64 on the CPU, with each setting.

``python -m benchmarks.device_contract cuda`` prints the largest relative errors and takes one minute on a GPU.
"""

import sys
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

import attention_core as ac
from attention_core.attention import Attention
from attention_core.runtime.devices import use_threads
from attention_core.variant import Params, Variant

LENGTHS = (1, 7, 33, 200)
TOLERANCE = {"output": 1e-9, "matrix": 1e-9, "gradients": 1e-7, "float32": 1e-4}
"""Largest relative error of the output, the matrix and the gradients in float64, and of the output in float32."""


def settings_of(variant: Variant) -> Iterator[Params]:
    """Yield the default settings, then all settings that differ from them in one value.

    The value is another choice, the other state of a switch, or a bound of a number; an upper bound is at most 64.
    """
    yield variant.params()
    for setting in variant.params.settings():
        if setting.kind == "choice":
            values: Sequence[object] = setting.choices
        elif setting.kind == "bool":
            values = (not setting.default,)
        else:
            values = (setting.low, min(setting.high, 64))
        for value in values:
            if value != setting.default:
                yield variant.params.build(**{setting.name: value})


def errors(attention: Attention, device: str, *, causal: bool) -> dict[str, float]:
    """Return the largest relative error of each kind in ``TOLERANCE``, over ``LENGTHS``.

    In float32, the reference is the variant's own matrix on the device, because a pattern that depends on the data can
    differ between precisions. The error of a gradient is divided by its norm, or by a millionth of the norm of all
    gradients together if that is larger. A gradient can be zero except for rounding errors, for example the queries'
    gradient if there is a single feature.
    """
    largest = dict.fromkeys(TOLERANCE, 0.0)

    def add(kind: str, result: Tensor, expected: Tensor, floor: float = 1e-12) -> None:
        error = (result.detach().cpu().double() - expected.detach()).norm() / expected.detach().norm().clamp(min=floor)
        largest[kind] = max(largest[kind], error.item())

    for n in LENGTHS:
        on_cpu = torch.randn(3, 2, 3, n, 8, generator=torch.Generator().manual_seed(n), dtype=torch.float64).unbind()
        on_device = [x.to(device) for x in on_cpu]
        add("output", attention.attend(*on_device, causal=causal), attention.attend(*on_cpu, causal=causal))
        add("matrix", attention.weights(*on_device[:2], causal=causal), attention.weights(*on_cpu[:2], causal=causal))
        q, k, v = (x.float() for x in on_device)
        own = attention.weights(q, k, causal=causal).double() @ attention.values(v).double()
        add("float32", attention.attend(q, k, v, causal=causal), own.cpu())
    gradients = _gradients(attention, on_cpu, causal)
    floor = 1e-6 * float(torch.stack([x.norm() for x in gradients]).norm())
    for result, expected in zip(_gradients(attention, on_device, causal), gradients, strict=True):
        add("gradients", result, expected, floor)
    return largest


def _gradients(attention: Attention, x: Sequence[Tensor], causal: bool) -> tuple[Tensor, ...]:
    leaves = [y.detach().requires_grad_() for y in x]
    total = attention.attend(*leaves, causal=causal).square().sum()
    return torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)


def main(device: str, variants: Sequence[Variant], measure: Callable[..., dict[str, float]] = errors) -> int:
    """Print the largest error of each kind and each case above its tolerance; return 1 if there is one, else 0."""
    worst, wrong, count = dict.fromkeys(TOLERANCE, (0.0, "")), 0, 0
    for attention in (Attention(variant, p) for variant in variants for p in settings_of(variant)):
        for causal in (False, True)[: 1 if attention.variant.causal_reason else 2]:
            case = attention.word + " causal" * causal
            measured, count = measure(attention, device, causal=causal), count + 1
            worst = {kind: max(worst[kind], (measured[kind], case)) for kind in TOLERANCE}
            for kind, most in TOLERANCE.items():
                if not measured[kind] <= most:
                    wrong += 1
                    print(f"{case}: the {kind} differs by {measured[kind]:.1e}, more than {most:.0e}")
    print(f"{count} cases on {device}, {wrong} errors above their tolerance")
    for kind, (most, case) in worst.items():
        print(f"{kind}: at most {most:.1e} ({case})")
    return int(wrong > 0)


if __name__ == "__main__":
    use_threads()  # One by default: on small inputs, several threads take many times longer.
    sys.exit(main(sys.argv[1], ac.all_variants()))
