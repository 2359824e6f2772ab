"""Tests of the contract tests: each of these wrong variants fails the check that should detect it."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import contract
import pytest
import torch
from contract import PER_SETTING, PER_VARIANT, check_growth, power_of
from torch import Tensor

import attention_core as ac
from attention_core.attention import Attention
from attention_core.ops.softmax.exact import exact_attention
from attention_core.variant import Cost, Decoder, Params, Variant, param

SOFTMAX, LOCAL, TOPK, NYSTROM, REFORMER, HEDGEHOG, MLA = (
    ac.variant(key) for key in ("softmax", "local", "topk", "nystrom", "reformer", "hedgehog", "mla")
)


def wrong(base: Variant = SOFTMAX, /, **changes: Any) -> Variant:
    return dataclasses.replace(base, **changes)


def explicit(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    return SOFTMAX.weights(q, k, p, causal=causal) @ v


def full(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    return SOFTMAX.weights(q, k, SOFTMAX.params(), causal=causal)


def unsafe(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    e = (q @ k.mT).exp()
    return e / e.sum(-1, keepdim=True)


def sparse_unshifted(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return sparsemax weights whose thresholds are searched without shifting the logits first."""
    logits = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    high = logits.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        above = (logits - middle).clamp_min(0).sum(-1, keepdim=True) >= 1
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (logits - low).clamp_min(0)


def series_multiplied_out(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return the second-order series of softmax with its squares expanded, so that large terms cancel."""
    x = q @ k.mT / q.shape[-1] ** 0.5
    mean = x.mean(-1, keepdim=True)
    square = x.square() - 2 * x * mean + mean.square()
    return (1 + x - mean + (square - square.mean(-1, keepdim=True)) / 2) / x.shape[-1]


def by_matrix(weights: Callable[..., Tensor], **changes: Any) -> Variant:
    """Return a variant that uses these weights for its matrix and its output."""

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return weights(q, k, p, causal=causal) @ v

    return wrong(weights=weights, attend=attend, **changes)


def with_output(change: Callable[[Tensor], Tensor | float]) -> Variant:
    """Return softmax with a changed output and an unchanged matrix."""

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Any:
        return change(explicit(q, k, v, p, causal=causal))

    return wrong(attend=attend)


def with_matrix(change: Callable[[Tensor, bool], Tensor]) -> Variant:
    """Return softmax with a changed matrix, also used for the output."""

    def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
        return change(SOFTMAX.weights(q, k, p, causal=causal), causal)

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return weights(q, k, p, causal=causal) @ v

    return wrong(weights=weights, attend=attend)


def with_queries(change: Callable[[Tensor], Tensor], **changes: Any) -> Variant:
    """Return softmax with changed queries, for the matrix and the output."""

    def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
        return full(change(q), k, p, causal=causal)

    def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
        return exact_attention(change(q), k, v, causal=causal)

    return wrong(weights=weights, attend=attend, **changes)


def rounding(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return the output of softmax by its formula, in the precision of the inputs."""
    logits = q @ k.mT / q.shape[-1] ** 0.5
    ahead = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
    return (logits.masked_fill(ahead, -torch.inf) if causal else logits).softmax(-1) @ v


def assume_packed_queries(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return the output of softmax, reading the queries as if their last axis had a stride of one."""
    if q.stride(-1) != 1:
        q = q.mT.reshape(q.shape)
    return exact_attention(q, k, v, causal=causal)


def overwrite(q: Tensor) -> Tensor:
    with torch.no_grad():
        return q.mul_(1.5)


def with_cost(**factors: int) -> Variant:
    def cost(n: int, d: int, p: Params, *, causal: bool) -> Cost:
        stated = SOFTMAX.cost(n, d, p, causal=causal)
        return dataclasses.replace(stated, **{name: getattr(stated, name) * factor for name, factor in factors.items()})

    return wrong(cost=cost)


def with_decoder(keep: Callable[[Tensor, Tensor], Tensor]) -> Variant:
    """Return softmax with a decoder whose state is ``keep(earlier keys, next key)``."""

    def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Params) -> tuple[Tensor, Tensor]:
        return v, keep(state, k.unsqueeze(-2))

    return wrong(decoder=Decoder(lambda q, v, p: q.unsqueeze(-2)[..., :0, :], step))


class Seeded(Params):
    """Parameters with a seed that nothing uses."""

    seed: int = param(0, low=0, high=2**31 - 1, help="Changes the random numbers.")


class Unexplained(Params):
    """Parameters with a setting whose help is not a sentence."""

    window: int = param(8, low=1, high=64, help="window")


class Rounded(Params):
    """Parameters with a setting that loses digits in a link."""

    rate: float = param(0.5, low=0.26, high=1.0, help="A rate.")

    def changed(self) -> dict[str, str]:
        return {name: f"{float(value):.1f}" for name, value in super().changed().items()}


WRONG: dict[Callable[[Any], None], dict[str, Variant]] = {
    contract.check_weights_match_attend: {
        "halves the output": with_output(lambda out: out / 2),
        "returns float64": with_output(lambda out: out.double()),
        "returns no number": with_output(lambda out: out / 0),
        "attends to the future": wrong(attend=lambda q, k, v, p, causal: exact_attention(q, k, v)),
    },
    contract.check_definition: {
        "defines another temperature": wrong(
            definition=lambda q, k, v, p, causal: explicit(1.01 * q, k, v, p, causal=causal)
        ),
        "defines no causal form": wrong(definition=lambda q, k, v, p, causal: explicit(q, k, v, p, causal=False)),
        "defines a longer output": wrong(
            definition=lambda q, k, v, p, causal: torch.cat([explicit(q, k, v, p, causal=causal)] * 2, -1)
        ),
    },
    contract.check_half_precision: {
        "is wrong in bfloat16 only": with_output(lambda out: out + 0.1 * (out.dtype == torch.bfloat16)),
        "loses one row in float16": with_output(
            lambda out: out * (torch.arange(out.shape[-2])[:, None] != 5) if out.dtype == torch.float16 else out
        ),
        "rounds its logits to half precision": wrong(attend=rounding),
    },
    contract.check_future_hidden: {
        "leaks in matrix and output": with_matrix(lambda m, causal: m.flip(-1) if causal else m),
        "leaks through the normaliser": with_matrix(
            lambda m, causal: m * (1 + 1e-6 * m[..., -1:, -1:]) if causal else m
        ),
        "ignores causal": wrong(NYSTROM, causal_reason=None),
    },
    contract.check_prefixes: {
        "divides by the whole length": with_matrix(lambda m, causal: m / m.shape[-1] if causal else m),
        "attends by the whole length": with_output(lambda out: out / out.shape[-2]),
    },
    contract.check_flags: {
        "rows sum to 0.9": with_matrix(lambda m, causal: 0.9 * m),
        "hides negative weights": with_matrix(lambda m, causal: 2 * m - m.flip(-2)),
        "loses a row": with_matrix(lambda m, causal: m * (torch.arange(m.shape[-2]) != 3)[:, None]),
    },
    contract.check_flags_needed: {
        "claims negative weights": wrong(signed=True),
        "claims odd row sums": wrong(rows_sum_to_one=False),
        "claims zero rows": wrong(zero_rows=True),
    },
    contract.check_random: {
        "claims to be random": wrong(random=True),
        "has a seed without effect": with_queries(lambda q: q, params=Seeded, random=True),
        "does not say it is random": with_queries(lambda q: q, params=Seeded),
        "claims that its randomness depends on settings": wrong(REFORMER, random=lambda p: True),
        "is random at settings that it does not name": wrong(REFORMER, random=lambda p: p.rounds > 1),
    },
    contract.check_decoder: {"returns the last value": with_decoder(lambda keys, k: torch.cat([keys, k], -2))},
    contract.check_state: {
        "keeps every key": with_decoder(lambda keys, k: torch.cat([keys, k], -2)),
        "keeps the last fifty keys": with_decoder(lambda keys, k: torch.cat([keys, k], -2)[..., -50:, :]),
    },
    contract.check_pure: {
        "draws from the global generator": with_queries(lambda q: q + torch.randn_like(q)),
        "reseeds the global generator": with_queries(
            lambda q: q + torch.randn(q.shape, generator=torch.manual_seed(0))
        ),
        "overwrites its input": with_queries(overwrite),
    },
    contract.check_defaults: {
        "depends on the default device": with_output(lambda out: out * (1 + (torch.zeros(1).device != out.device))),
        "depends on the default type": with_output(lambda out: out * torch.finfo(torch.get_default_dtype()).eps),
    },
    contract.check_axes: {"mixes heads": with_queries(lambda q: q - q.mean(-3, keepdim=True) if q.ndim > 2 else q)},
    contract.check_layouts: {"reads memory as if it were packed": wrong(attend=assume_packed_queries)},
    contract.check_heads_coupled: {"claims that heads decide together": wrong(couples_heads=True)},
    contract.check_gradients: {
        "stops the gradient in attend": wrong(
            attend=lambda q, k, v, p, causal: exact_attention(q.detach(), k, v, causal=causal)
        ),
        "stops the gradient in matrix and output": with_queries(lambda q: q.detach()),
    },
    contract.check_patterns: {
        "weighs outside its mask": wrong(LOCAL, weights=full),
        "weighs more than its pattern": wrong(TOPK, weights=full),
        "allows more than it weighs": wrong(
            LOCAL, primitives=None, mask=lambda n, p, causal: torch.ones(n, n).tril(0 if causal else n) > 0
        ),
        "colours less than its pattern": wrong(
            LOCAL, primitives=lambda q, k, p, causal: {"self": torch.eye(len(q[0, 0])) > 0}
        ),
        "colours with numbers": wrong(
            LOCAL, primitives=lambda q, k, p, causal: {"window": LOCAL.mask(q.shape[-2], p, causal=causal).float()}
        ),
    },
    contract.check_large_logits: {
        "overflows": wrong(weights=unsafe),
        "overflows in attend only": wrong(attend=lambda q, k, v, p, causal: unsafe(q, k, p, causal=causal) @ v),
        "loses its threshold": by_matrix(sparse_unshifted),
        "does not say that rows vanish": wrong(HEDGEHOG, zero_rows=False),
        "has different matrix and output at large logits": wrong(
            weights=lambda q, k, p, causal: full(q, k.flip(-2), p, causal=causal)
        ),
    },
    contract.check_shift: {"cancels large parts": by_matrix(series_multiplied_out, causal_reason="it takes all keys.")},
    contract.check_cost: {
        "states twice its operations": with_cost(multiply_adds=2),
        "states twice its memory": with_cost(peak_elements=2),
        "counts heads that are computed together as if each were separate": wrong(
            MLA,
            cost=lambda n, d, p, causal, heads: Cost(
                multiply_adds=heads * MLA.cost(n, d, p, causal=causal, heads=1).multiply_adds,
                peak_elements=MLA.cost(n, d, p, causal=causal, heads=heads).peak_elements,
            ),
        ),
    },
    contract.check_causal_cost: {
        "counts the keys that a causal mask hides": wrong(
            cost=lambda n, d, p, causal: SOFTMAX.cost(n, d, p, causal=False)
        )
    },
    contract.check_memory: {"holds the n x n matrix": wrong(attend=explicit)},
    contract.check_growth: {
        "promises linear time": wrong(complexity="n d"),
        "promises another power of d": wrong(complexity="n² d²"),
        "promises no formula": wrong(complexity="n d (mostly) much"),
        "states quadratic memory": wrong(
            cost=lambda n, d, p, causal: Cost(multiply_adds=2 * n * n * d, peak_elements=n * n)
        ),
    },
    contract.check_settings: {
        "does not explain its setting": wrong(params=Unexplained),
        "loses digits in links": wrong(params=Rounded),
    },
    contract.check_reference_named: {
        "does not name its reference": wrong(REFORMER, reference_name="softmax"),
        "leaves its reference's name empty": wrong(REFORMER, reference_name=" "),
        "names a reference it lacks": wrong(reference_name="sharpened softmax"),
    },
    contract.check_documented: {
        "does not end its summary": wrong(summary="Every token attends to every token"),
        "does not close a brace": wrong(formula=r"A = \operatorname{softmax"),
    },
}


@pytest.mark.parametrize(
    ("variant", "check"),
    [pytest.param(v, check, id=name) for check, variants in WRONG.items() for name, v in variants.items()],
)
def test_contract_detects_wrong_variants(variant: Variant, check: Callable[[Any], None]):
    subject = variant if check in PER_VARIANT else Attention(variant, variant.params())
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(subject)


def test_every_check_has_a_wrong_variant():
    assert set(WRONG) == {*PER_SETTING, *PER_VARIANT, check_growth}


def test_power_of_d():
    assert [power_of(text, "d") for text in ("n² d", "n d³ / 2", "n m + d²", "n² d + n d²")] == [1, 3, 2, 2]


@pytest.mark.parametrize(
    ("complexity", "power"),
    [
        ("n² d", 2),
        ("n d²", 1),
        ("n (w + n / r) d", 2),
        ("n² d / r", 2),
        ("n m d + m³", 1),
        ("n √n d", 1.5),
        ("n c d + n log n", 1),
        ("m n (c d + log n)", 1),
    ],
)
def test_power_of_n(complexity: str, power: float):
    assert power_of(complexity, "n") == power


def test_a_wrong_definition_is_reported_with_the_error_of_each_pair():
    variant = wrong(definition=lambda q, k, v, p, causal: explicit(1.01 * q, k, v, p, causal=causal))
    with pytest.raises(AssertionError) as failure:
        contract.check_definition(Attention(variant, variant.params()))
    text = str(failure.value).partition("relative errors: ")[2]
    errors = {name: float(value) for name, value in re.findall(r"([a-z @]+): ([\d.e+-]+)", text.splitlines()[0])}
    alone = [value for name, value in errors.items() if "definition" in name]
    assert len(errors) == 3
    assert len(alone) == 2
    assert min(alone) > 1e-6 > next(value for name, value in errors.items() if "definition" not in name)
