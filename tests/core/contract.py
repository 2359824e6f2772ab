"""The contract of every attention variant, as functions ``check_...`` that raise AssertionError.

Tests call them for every registered variant, and for wrong variants to test the checks themselves. A function takes an
``Attention`` (a variant with settings), or a ``Variant`` if it tries several settings itself.
"""

import ast
import dataclasses
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attention_core.attention import Attention
from attention_core.benchmarking.counting import Counts, count
from attention_core.errors import NotCausalError, SettingError
from attention_core.variant import SOFTMAX, Params, Setting, Value, Variant

LENGTHS = (1, 2, 7, 33, 128)
HEAD, VALUE = 8, 5
"""Size of queries and keys, and of values."""
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
HALF_TOLERANCE = 2.0
"""Largest error of a row in half precision, in steps of the type's rounding (its eps)."""
HALVES = (torch.float16, torch.bfloat16)
DEVIATIONS = (1, 4, 8)
"""Standard deviations of queries and keys at which half precision must be correct; trained heads reach 4."""
DECODED = 70
"""Number of tokens for decoders, which is more than one chunk of the algorithms that compute causal chunks."""
LARGE = 20_000
"""Standard deviation of queries and keys that gives the largest logits that an uploaded file may have (``limits``)."""
REREAD = 1e-7
"""Largest relative error in float64 with another memory layout.

It is larger than the rounding error, because keys expanded along d make the matrix of landmarks singular.
"""
COUNTED = (509, 1024)
COUNTED_IN_TURN = (189, 256)
"""Lengths at which work is counted; shorter for variants that process one token after the other, which is slow."""
IN_TURN = ("heavy_hitters",)
"""Variants that can only process one token after the other."""
COUNTED_HEAD = 16
COUNTED_HEADS = (3, 9)
"""Numbers of heads, beyond one, for which work is counted at the shorter length."""
PADDED = ("blocks", "nsa")
"""Variants that pad tiles of chosen blocks: the padding also grows like n², and is as large in causal forms."""
PEAK_TOLERANCE = 0.15
"""Largest relative difference between the counted peak and that of ``cost``; multiply-adds must agree exactly."""


def settings_of(variant: Variant, *, numbers: bool = True) -> Iterator[Params]:
    """Yield the default settings, then each setting changed separately: every choice, switched, or at its bounds.

    Bounds are at most 64. Without ``numbers``, settings that are numbers stay at their defaults.
    """
    yield variant.params()
    for s in variant.params.settings():
        if s.kind == "choice":
            values: tuple[object, ...] = s.choices
        elif s.kind == "bool":
            values = (not s.default,)
        else:
            values = (s.low, min(s.high, 64)) if numbers else ()
        for value in values:
            if value != s.default:
                yield variant.params.build(**{s.name: value})


def values_of(setting: Setting, most: int) -> st.SearchStrategy[Value]:
    """Return a strategy that draws values of a setting; numbers are at most ``most``."""
    if setting.kind == "choice":
        return st.sampled_from(setting.choices)
    if setting.kind == "bool":
        return st.booleans()
    if setting.kind == "int":
        return st.integers(int(setting.low), min(int(setting.high), most))
    return st.floats(setting.low, min(setting.high, most))


def any_settings(variant: Variant, most: int = 64, *, text: bool = False) -> st.SearchStrategy[Params]:
    """Return a strategy that draws all settings of a variant together; numbers are at most ``most``.

    With ``text``, the setting ``columns``, with which a variant treats tokens as an image, keeps its default.
    """
    drawn = [s for s in variant.params.settings() if not (text and s.name == "columns" and s.low == 0)]
    values = {setting.name: values_of(setting, most) for setting in drawn}
    return st.fixed_dictionaries(values).map(lambda drawn: variant.params.build(**drawn))


def causal_forms(a: Attention) -> tuple[bool, ...]:
    """Return the values of ``causal`` that a variant supports."""
    return (False,) if a.variant.causal_reason else (False, True)


def inputs(
    n: int, dtype: torch.dtype = torch.float64, *, lead: tuple[int, ...] = (2, 3), d: int = HEAD
) -> list[Tensor]:
    """Return seeded normal q, k and v, with the same numbers in every precision."""
    source = torch.Generator().manual_seed(n)
    return [torch.randn(*lead, n, size, generator=source).to(dtype) for size in (d, d, VALUE)]


def error(found: Tensor, wanted: Tensor) -> float:
    """Return the relative error in the Frobenius norm; NaN if an entry is not finite."""
    found, wanted = found.double(), wanted.double()
    return ((found - wanted).norm() / wanted.norm().clamp(min=1e-30)).item()


def check_weights_match_attend(a: Attention) -> None:
    """Check that ``weights @ values`` equals ``attend``, at every length, in every precision, with ``d_v != d``."""
    for dtype, tolerance in TOLERANCE.items():
        for n in LENGTHS:
            for causal in causal_forms(a):
                q, k, v = inputs(n, dtype)
                matrix, out = a.weights(q, k, causal=causal), a.attend(q, k, v, causal=causal)
                case = f"n={n} causal={causal} {dtype}"
                assert matrix.shape == (2, 3, n, n), case
                assert out.shape == v.shape, case
                assert matrix.dtype == out.dtype == dtype, case
                off = error(out, matrix.double() @ a.values(v).double())
                assert off <= tolerance, f"{case}: attend differs from weights @ values, with relative error {off:.1e}"


def check_definition(a: Attention) -> None:
    """Check that ``definition`` equals ``attend`` and ``weights @ values`` in float64."""
    if a.variant.definition is None:
        return
    for n, causal in itertools.product((1, 2, 7, 33), causal_forms(a)):
        q, k, v = inputs(n)
        defined = a.variant.definition(q, k, v, a.params, causal=causal)
        assert defined.shape == v.shape, f"n={n} causal={causal}: the definition differs from the values in its shape"
        out, product = a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal) @ a.values(v)
        errors = {
            "definition and attend": error(out, defined),
            "definition and weights @ values": error(product, defined),
            "attend and weights @ values": error(out, product),
        }
        case = f"n={n} causal={causal}: relative errors: " + ", ".join(f"{x}: {y:.1e}" for x, y in errors.items())
        assert errors["definition and attend"] <= TOLERANCE[torch.float64], case
        assert errors["definition and weights @ values"] <= TOLERANCE[torch.float64], case


def check_half_precision(variant: Variant) -> None:
    """Check that half-precision inputs give the same rows as in float64, up to the rounding of half precision.

    The error of an output's row is relative to the sum of its weights without signs. If large terms cancel, a result in
    half precision cannot have more correct digits.
    """
    for a in (Attention(variant, p) for p in settings_of(variant, numbers=False)):
        for n, dtype, deviation, causal in itertools.product((1, 7, 128), HALVES, DEVIATIONS, causal_forms(a)):
            q, k, v = inputs(n, lead=(2,), d=32)
            q, k, v = (deviation * q).to(dtype), (deviation * k).to(dtype), v.to(dtype)
            exact = [x.double() for x in (q, k, v)]
            out, matrix = a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal)
            wanted = a.weights(*exact[:2], causal=causal)
            case = f"{a.word} n={n} {dtype} deviation={deviation} causal={causal}: "
            assert out.dtype == matrix.dtype == dtype, case
            pairs = (
                ("output", out, a.attend(*exact, causal=causal), wanted.abs() @ a.values(exact[2]).abs()),
                ("matrix", matrix, wanted, wanted),
            )
            for name, found, sought, size in pairs:
                holds = (sought.abs() <= torch.finfo(dtype).max / 2).all(-1)
                off = (found.double() - sought).norm(dim=-1) / size.norm(dim=-1).clamp(min=torch.finfo(dtype).tiny)
                worst = off[holds].nan_to_num(torch.inf).max().item() / torch.finfo(dtype).eps
                assert worst <= HALF_TOLERANCE, case + f"a row of the {name} is off by {worst:.1f} steps"


def check_future_hidden(a: Attention) -> None:
    """Check that changes from token t on change no output before t.

    For a variant that cannot be causal, check that ``causal`` raises an error with the variant's reason.
    """
    if a.variant.causal_reason is not None:
        q, k, v = inputs(4)
        with pytest.raises(NotCausalError, match=re.escape(a.variant.causal_reason)):
            a.attend(q, k, v, causal=True)
        with pytest.raises(NotCausalError):
            a.weights(q, k, causal=True)
        return
    for n in (2, 7, 33, 128):
        x = inputs(n)
        usual = results(a, x, causal=True)
        for t in {1, n // 2, n - 1}:
            changed = [y.clone() for y in x]
            for sign, y in zip((-30.0, 100.0, 1000.0), changed, strict=True):
                y[..., t:, :] *= sign
            for before, after in zip(usual, results(a, changed, causal=True), strict=True):
                moved = (after - before)[..., :t, :].abs().max()
                assert moved <= 1e-12, f"n={n}: changing token {t} moves an earlier row by {moved:.1e}"
        assert torch.equal(usual[1].triu(1), torch.zeros(2, 3, n, n, dtype=x[0].dtype))


def check_prefixes(a: Attention) -> None:
    """Check that the first t causal outputs of n tokens equal those of t tokens: later tokens do not change them."""
    if a.variant.causal_reason is not None:
        return
    for n in (2, 7, 33, 128):
        x = inputs(n)
        out, matrix = a.attend(*x, causal=True), a.weights(*x[:2], causal=True)
        for t in {1, n // 2, n - 1}:
            q, k, v = (y[..., :t, :] for y in x)
            for longer, shorter in (
                (out[..., :t, :], a.attend(q, k, v, causal=True)),
                (matrix[..., :t, :t], a.weights(q, k, causal=True)),
            ):
                moved = (longer - shorter).abs().max()
                assert moved <= 1e-10, f"{n} tokens in place of {t} move an earlier row by {moved:.1e}"


def check_flags(a: Attention) -> None:
    """Check that rows sum to one with ``rows_sum_to_one``, and that no weight is negative without ``signed``."""
    sums, lowest = [], []
    for n in LENGTHS:
        for causal in causal_forms(a):
            q, k, _ = inputs(n)
            matrix = a.weights(q, k, causal=causal)
            sums.append(row_sum_error(a, matrix.sum(-1), matrix, q, k, causal=causal))
            lowest.append(matrix.min().item())
    if a.variant.rows_sum_to_one:
        assert max(sums) <= 1e-9, f"a row sums to one but for {max(sums):.1e}"
    if not a.variant.signed:
        assert min(lowest) >= 0, f"a weight is {min(lowest):.1e}"


def check_flags_needed(variant: Variant) -> None:
    """Check that each declared flag (negative weights, zero rows, row sums other than one) is true of some settings."""
    matrices = [Attention(variant, p).weights(*inputs(n)[:2]) for p in settings_of(variant) for n in LENGTHS if n > 1]
    if variant.zero_rows:
        large = [LARGE * x for x in inputs(7, torch.float32, lead=(64,), d=4)]
        of_large = [Attention(variant, p).weights(*large[:2]) for p in settings_of(variant)]
        assert any((m == 0).all(-1).any() for m in of_large), "no row is ever zero"
    if variant.signed:
        assert any((m < 0).any() for m in matrices), "no weight is ever negative"
    if not variant.rows_sum_to_one:
        assert any(((m.sum(-1) - 1).abs() > 1e-6).any() for m in matrices), "every row sums to one"


def check_random(variant: Variant) -> None:
    """Check that a variant with random numbers draws them only from its ``seed``, and declares ``random``."""
    q, k, v = inputs(33)
    seeded = any(s.name == "seed" for s in variant.params.settings())
    assert bool(variant.random) == seeded, f"random={variant.random}, but seed is {'a' if seeded else 'no'} setting"
    if seeded:
        moved = fixed = False
        for p in settings_of(variant):
            other = dataclasses.replace(p, seed=p.seed + 1)
            same, different = Attention(variant, p).attend(q, k, v), Attention(variant, other).attend(q, k, v)
            if Attention(variant, p).random:
                moved |= not torch.equal(same, different)
            else:
                fixed = True
                assert torch.equal(same, different), f"{p} is not random, but another seed changes the answer"
        assert moved, "another seed changes nothing"
        assert fixed == callable(variant.random), "settings decide what is random, but all do alike"


def check_pure(a: Attention) -> None:
    """Check that each call gives the same result, and changes neither the global random state nor the inputs."""
    for causal in causal_forms(a):
        q, k, v = inputs(33)
        kept = [x.clone() for x in (q, k, v)]
        states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()
        first = a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal)
        torch.rand(1, generator=torch.Generator().manual_seed(1))
        second = a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal)
        assert torch.equal(states[0], torch.get_rng_state()), "torch's random state moved"
        assert states[1] == random.getstate(), "Python's random state moved"
        assert states[2] == np.random.get_state()[1].tobytes(), "numpy's random state moved"
        assert all(map(torch.equal, first, second)), "a second call gives another answer"
        assert all(map(torch.equal, kept, (q, k, v))), "an input was overwritten"


def check_defaults(variant: Variant) -> None:
    """Check that torch's default device and default type have no effect, because other code may change them."""
    for a in (Attention(variant, p) for p in settings_of(variant, numbers=False)):
        for causal in causal_forms(a):
            x = inputs(33, torch.float32)
            usual = results(a, x, causal=causal)
            with torch.device("meta"):
                assert all(map(torch.equal, results(a, x, causal=causal), usual)), f"{a.word}: default device"
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            try:
                assert all(map(torch.equal, results(a, x, causal=causal), usual)), f"{a.word}: default type"
            finally:
                torch.set_default_dtype(before)


def check_axes(a: Attention) -> None:
    """Check that each example gives the same result alone as in a batch, and each head unless heads are coupled."""
    for causal in causal_forms(a):
        q, k, v = inputs(33)
        out, matrix = a.attend(q, k, v, causal=causal), a.weights(q, k, causal=causal)
        alone = [(1,)] if a.variant.couples_heads else [(1,), (0, 0), (1, 2)]
        for at in alone:
            assert error(a.attend(q[at], k[at], v[at], causal=causal), out[at]) <= 1e-10, f"causal={causal}: at {at}"
            assert error(a.weights(q[at], k[at], causal=causal), matrix[at]) <= 1e-10, f"causal={causal}: at {at}"


def layouts(x: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield the name of a memory layout and ``x``, ``[B, H, n, d]``, in it, for all kinds of layouts of a view.

    A view that is expanded along an axis repeats its first entry, so its numbers differ from those of ``x``.
    """
    for axis in range(x.ndim):
        if axis != x.ndim - 1:  # The last axis is always innermost.
            yield f"axis {axis} innermost", x.movedim(axis, -1).contiguous().movedim(-1, axis)
        yield f"every other one of axis {axis}", x.repeat_interleave(2, axis).unfold(axis, 1, 2).squeeze(-1)
        yield f"axis {axis} expanded", x.narrow(axis, 0, 1).expand_as(x)
    padded = torch.nn.functional.pad(x, (1, 2, 3, 1, 1, 1), value=torch.nan)
    yield "a slice with an offset", padded[:, 1:-1, 3:-1, 1:-2]


def results(a: Attention, x: list[Tensor], *, causal: bool) -> tuple[Tensor, Tensor]:
    """Return the output of ``attend`` and the matrix of ``weights`` for ``x``, the queries, keys and values."""
    return a.attend(*x, causal=causal), a.weights(*x[:2], causal=causal)


def check_layouts(variant: Variant) -> None:
    """Check that the memory layout of q, k and v has no effect: any axis strided, expanded or sliced, in one or all.

    Keys expanded along the tokens are left out for variants with a pattern that depends on the data: equal keys have
    equal logits, so that rounding decides the pattern.
    """
    for a in (Attention(variant, p) for p in settings_of(variant, numbers=False)):
        for causal in causal_forms(a):
            plain = inputs(33)
            usual = results(a, plain, causal=causal)
            for views in zip(*map(layouts, plain), strict=True):
                name = views[0][0]
                for where in ((0,), (1,), (2,), (0, 1, 2)):
                    if variant.pattern is not None and name == "axis 2 expanded" and 1 in where:
                        continue
                    x = [views[i][1] if i in where else plain[i] for i in range(3)]
                    packed = usual if "expanded" not in name else results(a, [y.contiguous() for y in x], causal=causal)
                    case = f"{a.word} causal={causal}: {name} in {' and '.join('qkv'[i] for i in where)}"
                    assert error(a.attend(*x, causal=causal), packed[0]) <= REREAD, case
                    if where != (2,):
                        assert error(a.weights(*x[:2], causal=causal), packed[1]) <= REREAD, case


def check_heads_coupled(variant: Variant) -> None:
    """Check that a variant with ``couples_heads`` gives another result for a single head."""
    if variant.couples_heads:
        q, k, v = inputs(33)
        assert any(
            error(a.attend(q[0, -1], k[0, -1], v[0, -1]), a.attend(q, k, v)[0, -1]) > 1e-6
            for a in (Attention(variant, p) for p in settings_of(variant))
        ), "heads are independent"


def check_gradients(a: Attention) -> None:
    """Check that ``weights`` and ``attend`` have the same gradients, and that these are the slopes of the output."""
    for n in (1, 7, 33):
        for causal in causal_forms(a):
            q, k, v = (x.requires_grad_() for x in inputs(n, lead=(2,)))
            weight = inputs(n, lead=(2,))[2].cos()
            by_attend = torch.autograd.grad((a.attend(q, k, v, causal=causal) * weight).sum(), (q, k, v), **_LOOSE)
            by_matrix = torch.autograd.grad(
                (a.weights(q, k, causal=causal) @ a.values(v) * weight).sum(), (q, k, v), **_LOOSE
            )
            scale = weight.norm()
            for name, one, other in zip("qkv", by_attend, by_matrix, strict=True):
                assert one.isfinite().all(), f"n={n} causal={causal}: the gradient of {name} is not finite"
                assert (one - other).norm() <= 1e-7 * scale, f"n={n} causal={causal}: the gradients of {name} differ"
            with torch.no_grad():
                step = 1e-6
                aside = [x.sin() for x in (q, k, v)]
                ahead, behind = (
                    (
                        a.attend(*(x + s * step * y for x, y in zip((q, k, v), aside, strict=True)), causal=causal)
                        * weight
                    )
                    for s in (1, -1)
                )
                slope = (ahead - behind).sum() / (2 * step)
                predicted = sum((g * y).sum() for g, y in zip(by_attend, aside, strict=True))
            assert abs(slope - predicted) <= 1e-5 * scale, f"n={n} causal={causal}: gradient {predicted}, slope {slope}"


_LOOSE = {"allow_unused": True, "materialize_grads": True}


def check_patterns(a: Attention) -> None:
    """Check that weights outside ``mask`` and ``pattern`` are zero, and that these are the union of ``primitives``.

    A mask must not allow a pair on which no head ever has weight.
    """
    for n in LENGTHS:
        for causal in causal_forms(a):
            q, k, _ = inputs(n)
            matrix = a.weights(q, k, causal=causal)
            case = f"n={n} causal={causal}: "
            found = [a.mask(n, causal=causal)]
            if a.variant.pattern is not None:
                found.append(a.variant.pattern(q, k, a.params, causal=causal))
            for allowed in (x for x in found if x is not None):
                assert allowed.dtype == torch.bool, case
                assert allowed.shape in ((n, n), matrix.shape), case
                assert not matrix.masked_fill(allowed, 0).any(), case + "a weight outside the pattern"
                assert not (causal and allowed.triu(1).any()), case + "the pattern looks ahead"
                if a.variant.mask is not None and not a.variant.zero_rows:
                    unused = (allowed & (matrix == 0).flatten(0, -3).all(0)).nonzero().tolist()
                    assert not unused, f"{case}no head has weight on the allowed pair {unused[0]}"
                if a.variant.primitives is not None:
                    parts = a.variant.primitives(q, k, a.params, causal=causal)
                    assert all(part.dtype == torch.bool for part in parts.values()), case + "a primitive is no mask"
                    union = torch.stack([part.expand(allowed.shape) for part in parts.values()]).any(0)
                    assert torch.equal(union, allowed), case + "the primitives are not the pattern"


def check_large_logits(a: Attention) -> None:
    """Check that results are finite at an upload's largest logits, and that rows sum to one if the variant says so.

    Rows are summed in ``weights`` and in ``attend``. The last value of each token is 1, so the last output of
    ``attend`` is the sum of its row.
    """
    for n, causal in itertools.product((7, 64), causal_forms(a)):
        q, k, v = inputs(n, torch.float32)
        q, k, v[..., -1] = LARGE * q, LARGE * k, 1
        matrix, out = a.weights(q, k, causal=causal), a.attend(q, k, v, causal=causal)
        case = f"n={n} causal={causal}: "
        assert matrix.isfinite().all(), case + "a weight is not finite"
        assert out.isfinite().all(), case + "an output is not finite"
        off = 0.0 if a.variant.zero_rows else error(out, matrix.double() @ a.values(v).double())
        assert off <= 1e-3, f"{case}the two results differ by {off:.1e}"  # float32 resolves these logits to about 100.
        if a.variant.rows_sum_to_one:
            sums = [matrix.sum(-1)] if a.variant.values is not None else [matrix.sum(-1), out[..., -1]]
            for name, total in zip(("weights", "attend"), sums, strict=False):
                off = row_sum_error(a, total, matrix, q, k, causal=causal)
                assert off <= TOLERANCE[torch.float32], f"{case}a row of {name} sums to one but for {off:.1e}"


def row_sum_error(a: Attention, total: Tensor, matrix: Tensor, q: Tensor, k: Tensor, *, causal: bool) -> float:
    """Return the largest distance of row sums from one, minus the possible rounding error of each sum.

    A zero row counts as a sum of 1 if its query may attend to no key, or if the variant says that rows may be zero.
    """
    empty = total == 0 if a.variant.zero_rows else ~allowed_pairs(a, q, k, causal=causal).any(-1)
    rounding = 16 * torch.finfo(matrix.dtype).eps * matrix.abs().sum(-1)
    return ((torch.where(empty, 1.0, total) - 1).abs() - rounding).max().item()


def allowed_pairs(a: Attention, q: Tensor, k: Tensor, *, causal: bool) -> Tensor:
    """Return the allowed pairs, ``bool``, broadcastable to ``[..., n, n]``."""
    if a.variant.pattern is not None:
        return a.variant.pattern(q, k, a.params, causal=causal)
    mask = a.mask(q.shape[-2], causal=causal)
    return torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool) if mask is None else mask


def check_shift(a: Attention) -> None:
    """Check in float32 that a large vector added to all keys has no effect if the variant ignores such a vector.

    Adding a vector to all keys adds a constant to all logits of a row, which softmax ignores. A test in float64 with a
    moderate vector shows whether a formula ignores it. Keys and vectors are multiples of 1/64, so that sums are exact
    in float32. The tolerance is the effect of rounding on a logit. The last case has the largest logits that an upload
    allows, at which each row's largest logit dominates.
    """
    for causal in causal_forms(a):
        q, k, v = ((64 * x).round() / 64 for x in inputs(33))
        c = (2 * k[..., :1, :].sin()).round()
        if error(a.weights(q, k + 256 * c, causal=causal), a.weights(q, k, causal=causal)) > 1e-9:
            return
        for scale, shift in ((1, 2**4), (1, 2**10), (1, 2**14), (LARGE, 1)):
            near, far = [scale * x for x in (q, k)], [(scale * x).float() for x in (q, k + shift * c)]
            largest = (far[0] @ far[1].mT).abs().max().item() / HEAD**0.5
            rounding = 4 * torch.finfo(torch.float32).eps * largest if scale == 1 else 1e-3
            for name, found, wanted in (
                ("weights", a.weights(*far, causal=causal), a.weights(*near, causal=causal)),
                ("attend", a.attend(*far, v.float(), causal=causal), a.attend(*near, v, causal=causal)),
            ):
                off = error(found, wanted)
                case = f"causal={causal} scale={scale} shift={shift}"
                assert off <= TOLERANCE[torch.float32] + rounding, f"{case}: {name} is off by {off:.1e}"


def counted(a: Attention, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Counts:
    """Return the multiply-adds and the memory of a call of ``attend``."""
    with torch.no_grad():
        return count(lambda: a.attend(q, k, v, causal=causal))


def changed_numbers(a: Attention) -> bool:
    """Return whether a number among the settings differs from its default."""
    return any(s.kind in ("int", "float") and s.name in a.params.changed() for s in a.variant.params.settings())


def counted_lengths(a: Attention) -> tuple[int, int]:
    """Return the two numbers of tokens at which a variant's work is counted."""
    in_turn = a.key in IN_TURN or getattr(a.params, "mode", "") == "recurrent"
    return COUNTED_IN_TURN if in_turn else COUNTED


def check_cost(a: Attention) -> None:
    """Check that counted multiply-adds equal ``cost`` for one and several heads, and that peaks are close to it.

    Several heads may need less memory than a multiple of one head, because some algorithms process heads one by one.
    Settings that are numbers are changed with one and three heads only; choices and switches, which select an
    algorithm, also with nine. Another seed changes no count. The longer length also shows that no matrix of n² numbers
    is held.
    """
    if "seed" in a.params.changed():
        return
    lengths = counted_lengths(a)
    several = COUNTED_HEADS[:1] if changed_numbers(a) else COUNTED_HEADS
    for n, heads in (*((n, 1) for n in lengths), *((min(lengths), heads) for heads in several)):
        for causal in causal_forms(a):
            q, k, _ = inputs(n, torch.float32, lead=(heads,), d=COUNTED_HEAD)
            found, stated = counted(a, q, k, k, causal=causal), a.cost(n, COUNTED_HEAD, causal=causal, heads=heads)
            case = f"n={n} heads={heads} causal={causal}: counted {found}, but {stated}"
            assert found.multiply_adds == stated.multiply_adds, case
            assert found.peak_elements <= (1 + PEAK_TOLERANCE) * stated.peak_elements, case
            if heads == 1:
                assert found.peak_elements >= (1 - PEAK_TOLERANCE) * stated.peak_elements, case
            if n == max(COUNTED):
                assert_no_square(found, n, case)


def check_causal_cost(a: Attention) -> None:
    """Check that the causal form of a variant with quadratic cost has half the cost, because it skips future keys.

    ``check_cost`` would not notice a product that is computed and then masked: its count and ``cost`` include it.
    """
    if a.variant.causal_reason is not None or a.key in PADDED:
        return
    whole, more = (a.cost(n, COUNTED_HEAD).multiply_adds for n in (2**18, 2**20))
    half = a.cost(2**18, COUNTED_HEAD, causal=True).multiply_adds
    if more > 12 * whole:
        assert abs(half / whole - 0.5) < 0.02, f"the causal form costs {half / whole:.3f} of the other"


def check_memory(a: Attention) -> None:
    """Check that ``attend`` holds fewer than n² elements, per tensor and in total, in two memory layouts.

    Changed settings are checked here only if ``check_cost`` does not check them at its longer length.
    """
    n = max(counted_lengths(a))
    if a.params.changed() and n == max(COUNTED):
        return
    packed = inputs(n, torch.float32, lead=(1,), d=4)
    for causal, x in itertools.product(causal_forms(a), (packed, [y.mT.contiguous().mT for y in packed])):
        assert_no_square(counted(a, *x, causal=causal), n, f"causal={causal} strides={x[0].stride()}")


def assert_no_square(found: Counts, n: int, case: str) -> None:
    """Fail if a tensor has about n² elements, or all tensors together do."""
    assert found.largest_elements < n * n // 2, f"{case}: a tensor of {found.largest_elements} elements"
    assert found.peak_elements < n * n, f"{case}: {found.peak_elements} elements held"


def check_decoder(a: Attention) -> None:
    """Check that a decoder, one step per token, returns the causal outputs."""
    if a.variant.decoder is None:
        return
    x = inputs(DECODED)
    off = error(decoded(a, *x), a.attend(*x, causal=True))
    assert off <= TOLERANCE[torch.float64], f"the decoder's outputs differ from those of attend, with error {off:.1e}"


def decoded(a: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the causal output, computed by the decoder token by token."""
    decoder, outputs = a.variant.decoder, []
    state = decoder.init_state(q[..., 0, :], v[..., 0, :], a.params)
    for token in zip(q.unbind(-2), k.unbind(-2), v.unbind(-2), strict=True):
        out, state = decoder.step(state, *token, a.params)
        outputs.append(out)
    return torch.stack(outputs, -2)


def check_state(variant: Variant) -> None:
    """Check that the state of a decoder holds as many numbers after 1,000 tokens as after 10."""
    if variant.decoder is None:
        return
    for p in settings_of(variant, numbers=False):
        q, k, v = inputs(1000, torch.float32, lead=(1,))
        state, held = variant.decoder.init_state(q[:, 0], v[:, 0], p), {}
        for t in range(1000):
            with torch.no_grad():
                _, state = variant.decoder.step(state, q[:, t], k[:, t], v[:, t], p)
            if t + 1 in (10, 1000):
                held[t + 1] = numbers_held(state)
        assert held[10] == held[1000], f"{Attention(variant, p).word} holds {held[10]} numbers, then {held[1000]}"


def numbers_held(state: object) -> int:
    """Return how many numbers the storages of a state's tensors hold; views of one storage count once."""
    leaves = tree_leaves(state)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    places = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() // t.itemsize for t in tensors}
    return sum(places.values()) + sum(isinstance(leaf, int | float) for leaf in leaves)


def check_growth(a: Attention) -> None:
    """Check that cost grows with the powers of n and d in ``complexity``, and memory with the first power of n."""
    for causal in causal_forms(a):
        near, far = (a.cost(n, COUNTED_HEAD, causal=causal) for n in (2**20, 2**22))
        promised = power_of(a.variant.complexity, "n")
        assert abs(math.log(far.multiply_adds / near.multiply_adds, 4) - promised) < 0.1, a.variant.complexity
        assert math.log(far.peak_elements / near.peak_elements, 4) < 1.1, "memory grows faster than n"
        small, large = (a.cost(2**10, d, causal=causal).multiply_adds for d in (2**20, 2**22))
        promised = power_of(a.variant.complexity, "d")
        assert abs(math.log(large / small, 4) - promised) < 0.1, f"{a.variant.complexity}, but not in d"


def power_of(complexity: str, symbol: str) -> float:
    """Return the power of n or d in a formula such as ``n (w + n / r) d`` or ``n √n d``; other symbols are constant."""
    text = complexity.replace("²", "**2").replace("³", "**3").replace("√n", "n**0.5").replace("log n", "1")
    text = re.sub(r"(?<=[\w)])\s+(?=[\w(])", "*", text)
    try:
        return _degree(ast.parse(text, mode="eval").body, symbol)
    except SyntaxError:
        raise AssertionError(f"complexity {complexity!r} is no formula in n") from None


def _degree(node: ast.expr, symbol: str) -> float:
    if isinstance(node, ast.BinOp):
        left, right = _degree(node.left, symbol), _degree(node.right, symbol)
        if isinstance(node.op, ast.Add):
            return max(left, right)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            return left * float(node.right.value)
        return left - right if isinstance(node.op, ast.Div) else left + right
    return float(isinstance(node, ast.Name) and node.id == symbol)


def check_settings(variant: Variant) -> None:
    """Check that each setting has one line of help and valid bounds, and that settings can be read back from text."""
    for s in variant.params.settings():
        assert s.help.endswith("."), f"{s.name}: {s.help!r} is no sentence"
        assert "\n" not in s.help
        if s.kind in ("int", "float"):
            assert s.low < s.high
            assert s.scale == "linear" or s.low > 0
            for beyond in (s.low - 1, s.high + 1):
                with pytest.raises(SettingError, match=s.name):
                    variant.params.build(**{s.name: beyond})
        if s.kind == "choice":
            assert len(set(s.choices)) > 1
            with pytest.raises(SettingError, match=s.name):
                variant.params.build(**{s.name: "no such word"})
    assert sum(s.budget for s in variant.params.settings()) <= 1
    for p in settings_of(variant):
        assert variant.params.from_text(p.changed()) == p


def check_reference_named(variant: Variant) -> None:
    """Check that a variant with its own reference matrix names it, and that the reference is softmax otherwise."""
    own = variant.reference is not None
    assert variant.reference_name.strip(), "the reference has no name"
    assert own == (variant.reference_name != SOFTMAX), f"the stated reference is {variant.reference_name!r}"


def check_documented(variant: Variant) -> None:
    """Check that a variant's texts are complete: sentences, a formula with balanced braces, sources with links."""
    for text in (variant.summary, variant.causal_reason or ".", variant.note or "."):
        assert text.endswith("."), text
    assert variant.title
    assert variant.title == variant.title.strip()
    assert variant.formula.count("{") == variant.formula.count("}") > 0 or "{" not in variant.formula
    assert variant.formula.count(r"\left") - variant.formula.count(r"\leftarrow") == variant.formula.count(r"\right")
    papers = (variant.source, *variant.further)
    for paper in papers:
        assert paper.title
        assert paper.url.startswith("https://")
        assert 1960 < paper.year < 2100
    assert len({paper.url for paper in papers}) == len(papers)
    assert variant.source_code().startswith('"""')


PER_SETTING: tuple[Callable[[Attention], None], ...] = (
    check_definition,
    check_weights_match_attend,
    check_decoder,
    check_future_hidden,
    check_prefixes,
    check_flags,
    check_pure,
    check_axes,
    check_gradients,
    check_patterns,
    check_large_logits,
    check_shift,
    check_cost,
    check_causal_cost,
    check_memory,
)
PER_VARIANT: tuple[Callable[[Variant], None], ...] = (
    check_defaults,
    check_flags_needed,
    check_half_precision,
    check_heads_coupled,
    check_layouts,
    check_random,
    check_state,
    check_settings,
    check_reference_named,
    check_documented,
)
