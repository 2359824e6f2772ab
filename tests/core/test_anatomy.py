"""Tests of intermediate values (parts): combined by the variant's rule, they give the variant's weights."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
import torch
from contract import HEAD, LENGTHS, VALUE, causal_forms, error, inputs, settings_of
from torch import Tensor

import attention_core as ac
from attention_core.attention import Attention
from attention_core.variant import Params, Variant

Parts = Mapping[str, Tensor]


@dataclasses.dataclass(frozen=True)
class Inside:
    """The rule that combines a variant's parts.

    Attributes:
        whole: computes the matrix from the parts, in one or several ways; called as ``whole(parts, again, p, causal)``,
            where ``again(n)`` returns the parts of the first n tokens.
        shapes: the documented shapes; ``*`` are the leading axes, ``-`` the leading axes without that of heads.
        sizes: the values of the letters in ``shapes``, called as ``sizes(n, p)``.
        used: the parts that the matrix is made of.
        causal_sizes: the values of the letters in the causal form, if they differ.
    """

    whole: Callable[..., tuple[Tensor, ...]]
    shapes: dict[str, str]
    sizes: Callable[[int, Params], dict[str, int]]
    used: tuple[str, ...]
    causal_sizes: Callable[[int, Params], dict[str, int]] | None = None


def two_factors(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    return (parts["left"] @ parts["right"],)


def three_factors(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    return (parts["left"] @ parts["inverse"] @ parts["right"],)


def rows_over_sums(x: Tensor) -> Tensor:
    total = x.sum(-1, keepdim=True)
    return x / torch.where(total == 0, 1.0, total)


def above_threshold(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    above = (p.alpha - 1) * (parts["logits"] - parts["threshold"].unsqueeze(-1))
    weights = above.clamp_min(0) ** (1 / (p.alpha - 1))
    return (weights.tril() if causal else weights,)


def kernel_estimate(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    if causal:  # The references of the features are not among the parts.
        return (rows_over_sums(parts["estimate"].tril()),)
    product = parts["query_features"] @ parts["key_features"].mT
    return rows_over_sums(parts["estimate"]), rows_over_sums(product)


def decayed_feature_products(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the products of query and key features; in the causal form, keys decay as the feature sums do."""
    q, k, sums = parts["query_features"], parts["key_features"], parts["key_sums"]
    rows, held = [], torch.zeros_like(k)
    for i in range(k.shape[-2]):
        if causal:
            before = sums[..., i - 1, :] if i else torch.zeros_like(sums[..., 0, :])
            left = torch.where(before == 0, 1.0, (sums - k)[..., i, :] / before)
            held = held * left.unsqueeze(-2)
            held[..., i, :] = k[..., i, :]
        else:
            held = k
        rows.append((held @ q[..., i, :, None]).squeeze(-1))
    normaliser = parts["normaliser"].unsqueeze(-1)
    return (torch.stack(rows, -2) / torch.where(normaliser == 0, 1.0, normaliser),)


def gather_and_distribute(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the product of the two maps; if causal, each feature's map is normalised over the tokens so far."""
    gather, given = parts["gather"], parts["distribute"]
    if not causal:
        return (given @ gather,)
    so_far = given / gather.cumsum(-1).mT
    return ((so_far @ gather).tril(),)


def responsibility_product(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    last = parts["responsibilities"][..., -1, :, :]
    return (parts["given"] @ (last / last.sum(-2, keepdim=True)).mT,)


def rows_of_survivors(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Check the survivors and the attention that each token received; return rows computed from plain softmax."""
    received, stay = parts["significance"], parts["survivors"]
    full = again.softmax
    order = received.argsort(dim=-1, descending=True, stable=True)[..., : stay.shape[-1]]
    assert torch.equal(order.sort(-1).values, stay)
    heads = full.sum(-3) if full.ndim > 2 else full
    torch.testing.assert_close(heads.sum(-2), received)
    lives = torch.zeros_like(received).scatter_(-1, stay, 1.0)
    rows = lives.unsqueeze(-2) if full.ndim > 2 else lives
    return (full * rows.unsqueeze(-1),)


def chunks_of_all_pairs(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the softmax of all pairs, restricted to equal or adjacent chunks of some round, each row over its sum.

    In the causal form, the parts hold the chunks of the last block of queries. Earlier blocks come from shorter texts.
    """
    n, c = parts["all_pairs"].shape[-1], p.bucket_size
    whole, start, stop = torch.zeros_like(parts["all_pairs"]), 0, 2 * c if causal else n
    while start < n:
        stop = min(stop, n)
        inside = parts if stop == n else again(stop)
        behind = inside["chunks"].unsqueeze(-1) - inside["chunks"].unsqueeze(-2)
        near = (behind == 0) | (behind == 1)
        if causal:
            near &= inside["buckets"].unsqueeze(-1) == inside["buckets"].unsqueeze(-2)
        near = near.any(-3) & ~torch.eye(stop, dtype=torch.bool)
        near = near.tril() if causal else near
        alone = torch.diag_embed(~near.any(-1)).to(whole.dtype)
        seen = rows_over_sums(parts["all_pairs"][..., :stop, :stop] * near) + alone
        whole[..., start:stop, :stop] = seen[..., start:, :]
        start, stop = stop, 4 * stop
    check_hash(parts, whole, p, causal=causal)
    return (whole,)


def check_hash(parts: Parts, whole: Tensor, p: Params, *, causal: bool) -> None:
    """Check that order, chunks and missed pairs agree with the buckets."""
    buckets, order, n = parts["buckets"], parts["order"], whole.shape[-1]
    place = order.argsort(-1)
    assert torch.equal(place, (buckets * n + torch.arange(n)).argsort(-1).argsort(-1))
    if not causal:
        assert torch.equal(parts["chunks"], place // min(p.bucket_size, n))
        same = (buckets.unsqueeze(-1) == buckets.unsqueeze(-2)).any(-3) & ~torch.eye(n, dtype=torch.bool)
        assert torch.equal(parts["missed"], same & (whole == 0))


def delta_rule(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the read matrix times the writing matrix: each token erases what its key reads before it writes."""
    right = parts["inverse"] @ torch.diag_embed(parts["strength"].squeeze(-1))
    units = torch.eye(right.shape[-1], dtype=right.dtype)
    torch.testing.assert_close((units + parts["overlaps"]) @ parts["inverse"], units.expand_as(right))
    return (parts["read"] @ right,)


def decayed_products(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the read matrix times the strengths; every later token's gate reduces the channels of earlier tokens."""
    passed = parts["kept"].log().cumsum(-2)
    left = (passed.unsqueeze(-2) if causal else passed[..., -1:, :].unsqueeze(-2)) - passed.unsqueeze(-3)
    products = torch.einsum("...ic,...ijc,...jc->...ij", parts["queries"], left.exp(), parts["keys"])
    read = products.tril() if causal else products
    torch.testing.assert_close(parts["read"], read, rtol=1e-7, atol=1e-9)
    return (parts["read"] * parts["strength"].mT,)


def centred_delta_rule(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the weights of the delta rule on values minus the mean of earlier values, plus the mean."""
    (step,) = delta_rule(parts, again, p, causal=causal)
    n = step.shape[-1]
    mean = torch.ones(n, n, dtype=step.dtype).tril() / torch.arange(1, n + 1, dtype=step.dtype).unsqueeze(-1)
    before = torch.cat([torch.zeros(1, n, dtype=step.dtype), mean[:-1]])
    square = parts["keys"].square().sum(-1, keepdim=True)
    torch.testing.assert_close(parts["strength"] * square, (parts["uncapped"] * square).clamp(max=p.cap))
    return (step - step @ before + (mean if causal else mean[-1:]),)


def path_with_carried_keys(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the matrix from the parts, and from keys from which each later token removes its own direction."""
    w, n = parts["directions"], parts["read"].shape[-1]
    torch.testing.assert_close(w.norm(dim=-1), torch.ones(w.shape[:-1], dtype=w.dtype))
    carried, rows = torch.zeros_like(parts["keys"]), []
    for i in range(n):
        along, strength = w[..., i : i + 1, :], parts["strength"][..., i : i + 1, :]
        carried = carried - strength * (carried @ along.mT) @ along
        carried[..., i, :] = parts["keys"][..., i, :]
        rows.append(carried @ parts["queries"][..., i, :, None])
    followed = torch.cat(rows, -1).mT if causal else parts["queries"] @ carried.mT
    return parts["read"] - parts["turned"] @ parts["inverse"] @ parts["met"], followed


def least_squares(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the matrix that is read, and linear attention's matrix with solved queries in place of the queries."""
    k = parts["keys"]
    # The factor that remains of each key at a query's position; 0 for earlier queries.
    fade = parts["linear"] / (parts["queries"] @ k.mT)
    return parts["read"], parts["solved"] @ k.mT * fade


def gated_sum(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the gated sum of the branches; check the outline: the compressed branch's mass on each block."""
    compressed = parts["compressed"]
    place = torch.arange(compressed.shape[-1]) // p.block
    mass = torch.stack([compressed[..., place == b].sum(-1) for b in range(int(place[-1]) + 1)], -1)
    torch.testing.assert_close(parts["outline"], mass)
    gated = p.gate_compressed * compressed + p.gate_selected * parts["selected"] + p.gate_window * parts["near"]
    return (gated,)


def chosen_blocks(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    """Return the softmax over a query's own and chosen blocks; check which blocks have the most mass."""
    full, n = again.softmax, again.softmax.shape[-1]
    place, may = torch.arange(n) // p.block, parts["scores"] > -torch.inf
    own = place[:, None] == place
    seen = own | parts["chosen"].repeat_interleave(p.block, -1)[..., :n]
    seen, full = (seen.tril(), rows_over_sums(full.tril())) if causal else (seen, full)
    mass = torch.stack([full[..., place == b].sum(-1) for b in range(int(place[-1]) + 1)], -1)
    torch.testing.assert_close(parts["mass"], mass)
    rivals, number = mass.masked_fill(~may, -torch.inf), min(p.blocks, mass.shape[-1] - 1)
    most = rivals.topk(number).indices if number else place.new_zeros(*mass.shape[:-1], 0)
    assert torch.equal(parts["best"], torch.zeros_like(may).scatter_(-1, most, True) & may)
    return (rows_over_sums(full * seen),)


def from_logits(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    return (parts["logits"].softmax(-1),)


def normalised_squares(parts: Parts, again: object, p: Params, *, causal: bool) -> tuple[Tensor, ...]:
    squares, divisor = parts["squares"], parts[p.normalizer]
    torch.testing.assert_close(squares, parts["logits"].clamp(min=0) ** 2)
    torch.testing.assert_close(parts["sum"], squares.sum(-1))
    torch.testing.assert_close(parts["squared"], parts["length"] ** 2)
    return (squares / torch.where(divisor == 0, 1.0, divisor).unsqueeze(-1),)


def pools(n: int, stride: int) -> int:
    return -(-n // stride)


FACTORS = {"left": "* n m", "right": "m n", "provenance": "m n"}
FAST = {"queries": "* n d", "keys": "* n d", "strength": "* n 1", "read": "* n n"}
SOLVED = FAST | {"overlaps": "* n n", "inverse": "* n n"}


def single_size(n: int, p: Params) -> dict[str, int]:
    return {"1": 1}


DELTA = Inside(delta_rule, SOLVED | {"written": "* n v"}, single_size, ("read", "inverse", "strength"))
FADING = Inside(decayed_products, FAST | {"kept": "* n d"}, single_size, ("read", "strength"))
INSIDES: dict[str, Inside] = {
    "softmax_gdn": Inside(
        centred_delta_rule, SOLVED | {"uncapped": "* n 1"}, single_size, ("read", "inverse", "strength")
    ),
    "scalar_decay": FADING,
    "gla": FADING,
    "deltanet": DELTA,
    "gated_deltanet": DELTA,
    "kda": DELTA,
    "mesa": Inside(
        least_squares,
        {"queries": "* n d", "keys": "* n d", "solved": "* n d", "linear": "* n n", "read": "* n n"},
        lambda n, p: {},
        ("read", "solved"),
    ),
    "nsa": Inside(
        gated_sum,
        {"outline": "* n b", "compressed": "* n n", "selected": "* n n", "near": "* n n"},
        lambda n, p: {"b": -(-n // p.block)},
        ("compressed", "selected", "near"),
    ),
    "path": Inside(
        path_with_carried_keys,
        SOLVED | {"directions": "* n d", "turned": "* n n", "met": "* n n"},
        single_size,
        ("read", "inverse", "turned", "met"),
    ),
    "nystrom": Inside(
        three_factors,
        {
            "query_landmarks": "* m d",
            "key_landmarks": "* m d",
            "left": "* n m",
            "middle": "* m m",
            "inverse": "* m m",
            "right": "* m n",
            "residuals": "* t",
        },
        lambda n, p: {"m": min(p.landmarks, n), "t": p.iterations + 1 if p.inverse == "iterative" else 1},
        ("left", "inverse", "right"),
    ),
    "landmark": Inside(
        two_factors, {"left": "* n m", "right": "* m n"}, lambda n, p: {"m": min(p.landmarks, n)}, ("left", "right")
    ),
    "linformer": Inside(two_factors, FACTORS, lambda n, p: {"m": min(p.rank, n)}, ("left", "right")),
    "pooled": Inside(
        two_factors,
        FACTORS,
        lambda n, p: {"m": pools(n, p.stride)},
        ("left", "right"),
        lambda n, p: {"m": pools(n, p.stride) + n},
    ),
    "pyramid": Inside(
        two_factors, FACTORS, lambda n, p: {"m": sum({min(s * p.levels, n) for s in (1, 3, 6, 8)})}, ("left", "right")
    ),
    "funnel": Inside(
        two_factors,
        {"left": "n m", "right": "* m n", "provenance": "m n"},
        lambda n, p: {"m": 1 + pools(n - 1, p.stride)},
        ("left", "right"),
    ),
    "performer": Inside(
        kernel_estimate,
        {
            "directions": "m d",
            "query_features": "* n c",
            "key_features": "* n c",
            "estimate": "* n n",
            "kernel": "* n n",
        },
        lambda n, p: {"m": p.features, "c": p.features * (2 if p.kind in ("hyperbolic", "trig") else 1)},
        ("estimate", "query_features", "key_features"),
    ),
    "linear": Inside(
        decayed_feature_products,
        {"query_features": "* n d", "key_features": "* n d", "key_sums": "* n d", "normaliser": "* n"},
        lambda n, p: {},
        ("query_features", "key_features", "key_sums", "normaliser"),
    ),
    "efficient": Inside(
        gather_and_distribute,
        {"gather": "* d n", "summaries": "* d v", "distribute": "* n d"},
        lambda n, p: {},
        ("gather", "distribute"),
    ),
    "emanet": Inside(
        responsibility_product,
        {"responsibilities": "* t n b", "bases": "* t b d", "given": "* n b", "taken": "* b n"},
        lambda n, p: {"t": p.iterations, "b": p.bases},
        ("responsibilities", "given"),
    ),
    "power_bert": Inside(
        rows_of_survivors,
        {"significance": "- n", "survivors": "- m"},
        lambda n, p: {"m": max(1, int(p.keep * n + 0.5))},
        ("significance", "survivors"),
    ),
    "reformer": Inside(
        chunks_of_all_pairs,
        {"buckets": "* r n", "order": "* r n", "chunks": "* r n", "missed": "* n n", "all_pairs": "* n n"},
        lambda n, p: {"r": p.rounds},
        ("buckets", "order", "chunks", "missed", "all_pairs"),
    ),
    "entmax": Inside(
        above_threshold, {"logits": "* n n", "threshold": "* n"}, lambda n, p: {}, ("logits", "threshold")
    ),
    "blocks": Inside(
        chosen_blocks,
        {"scores": "* n b", "chosen": "* n b", "best": "* n b", "mass": "* n b"},
        lambda n, p: {"b": pools(n, p.block)},
        ("chosen", "best", "mass"),
    ),
    "mla": Inside(
        from_logits,
        {"logits": "* n n", "key_sizes": "- n", "value_sizes": "- n", "ranks": "s", "errors": "- s"},
        lambda n, p: {"s": 16},
        ("logits",),
    ),
    "relu2": Inside(
        normalised_squares,
        {"logits": "* n n", "squares": "* n n", "length": "* n", "squared": "* n", "fixed": "* n", "sum": "* n"},
        lambda n, p: {},
        ("logits", "squares", "length", "squared", "sum"),
    ),
}
NAMED = [v for v in ac.all_variants() if v.anatomy is not None]
"""Every variant with an anatomy."""


class Again:
    """Further values for a rule: the anatomy of the first n tokens, and plain softmax by its formula."""

    def __init__(self, a: Attention, q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> None:
        self._ask = lambda n: a.variant.anatomy(*(x[..., :n, :] for x in (q, k, v)), a.params, causal=causal)
        exponentials = (q @ k.mT / q.shape[-1] ** 0.5).exp()
        self.softmax = exponentials / exponentials.sum(-1, keepdim=True)

    def __call__(self, n: int) -> Parts:
        return self._ask(n)


def every_setting(variant: Variant) -> Iterator[Params]:
    """Yield the parameters with each setting changed separately, then all combinations of choices and switches."""
    yield from settings_of(variant)
    words = {s.name: s.choices or (False, True) for s in variant.params.settings() if s.kind in ("choice", "bool")}
    for values in itertools.product(*words.values()):
        yield variant.params.build(**dict(zip(words, values, strict=True)))


def variants_without_rule(variants: Iterable[Variant]) -> set[str]:
    """Return the keys of variants that have an anatomy but no rule here."""
    return {v.key for v in variants if v.anatomy is not None} - INSIDES.keys()


def check_whole(a: Attention, n: int, lead: tuple[int, ...], *, causal: bool) -> None:
    q, k, v = inputs(n, lead=lead)
    parts = a.variant.anatomy(q, k, v, a.params, causal=causal)
    wanted = a.weights(q, k, causal=causal)
    for found in INSIDES[a.key].whole(parts, Again(a, q, k, v, causal=causal), a.params, causal=causal):
        assert found.shape == wanted.shape
        assert error(found, wanted) <= 1e-8, f"{a.word} n={n} causal={causal}: {error(found, wanted):.1e}"


def check_shapes(a: Attention, n: int, lead: tuple[int, ...], *, causal: bool) -> None:
    q, k, v = inputs(n, lead=lead)
    parts, inside = a.variant.anatomy(q, k, v, a.params, causal=causal), INSIDES[a.key]
    sizes = inside.causal_sizes if causal and inside.causal_sizes else inside.sizes
    letters = {"n": n, "d": HEAD, "v": VALUE, **sizes(n, a.params)}
    leads = {"*": lead, "-": lead[:-1]}
    for name, words in inside.shapes.items():
        wanted = [size for word in words.split() for size in leads.get(word, (letters.get(word),))]
        assert list(parts[name].shape) == wanted, f"{a.word} n={n} causal={causal}: {name}"
    assert parts.keys() == inside.shapes.keys()


def test_every_anatomy_has_a_rule():
    assert variants_without_rule(NAMED) == set()
    assert {v.key for v in NAMED} == INSIDES.keys()


def test_a_new_anatomy_without_a_rule_is_detected():
    new = dataclasses.replace(ac.get("local").variant, anatomy=lambda q, k, v, p, *, causal: {"inside": q})
    assert variants_without_rule([*NAMED, new]) == {"local"}


@pytest.mark.parametrize("variant", NAMED, ids=lambda v: v.key)
def test_the_parts_give_the_matrix(variant: Variant):
    for p in every_setting(variant):
        a = Attention(variant, p)
        for causal in causal_forms(a):
            for n in LENGTHS:
                check_whole(a, n, (2, 3), causal=causal)


@pytest.mark.parametrize("lead", [(), (1,), (4, 1, 2)])
@pytest.mark.parametrize("variant", NAMED, ids=lambda v: v.key)
def test_the_parts_give_the_matrix_with_any_leading_axes(variant: Variant, lead: tuple[int, ...]):
    a = Attention(variant, variant.params())
    for causal in causal_forms(a):
        check_whole(a, 33, lead, causal=causal)


@pytest.mark.parametrize("variant", NAMED, ids=lambda v: v.key)
def test_every_part_has_its_documented_shape(variant: Variant):
    for p in every_setting(variant):
        a = Attention(variant, p)
        for causal in causal_forms(a):
            for n, lead in ((1, (2, 3)), (2, ()), (33, (2, 3)), (33, ()), (70, (1,))):
                check_shapes(a, n, lead, causal=causal)


@pytest.mark.parametrize(("key", "name"), [(key, name) for key, inside in INSIDES.items() for name in inside.used])
def test_a_wrong_part_is_detected(key: str, name: str):
    right = ac.get(key)

    def wrong(*arguments: Tensor, causal: bool) -> Parts:
        parts = dict(right.variant.anatomy(*arguments, causal=causal))
        part = parts[name]
        # Change the numbers slightly, each by a different factor. Counts and indices are moved by one token.
        off = 1 + 1e-4 * torch.arange(part.numel()).cos().reshape(part.shape)
        parts[name] = part * off if part.is_floating_point() else part.roll(1, -1)
        return parts

    a = Attention(dataclasses.replace(right.variant, anatomy=wrong), right.params)

    def check_all() -> None:
        for causal in causal_forms(a):
            check_whole(a, 33, (2, 3), causal=causal)

    with pytest.raises(AssertionError):
        check_all()


@pytest.mark.parametrize("key", [v.key for v in NAMED])
def test_a_missing_part_or_a_wrong_shape_is_detected(key: str):
    right = ac.get(key)
    first = next(iter(INSIDES[key].shapes))

    def extra_axis(*arguments: Tensor, causal: bool) -> Parts:
        parts = dict(right.variant.anatomy(*arguments, causal=causal))
        return {**parts, first: parts[first].unsqueeze(0)}

    def renamed_part(*arguments: Tensor, causal: bool) -> Parts:
        parts = dict(right.variant.anatomy(*arguments, causal=causal))
        return {name: part for name, part in parts.items() if name != first} | {"other": parts[first]}

    for changed in (extra_axis, renamed_part):
        a = Attention(dataclasses.replace(right.variant, anatomy=changed), right.params)
        with pytest.raises((AssertionError, KeyError)):
            check_shapes(a, 33, (2, 3), causal=False)


@pytest.mark.parametrize("variant", [v for v in ac.all_variants() if v.intermediates], ids=lambda v: v.key)
def test_declared_intermediates_are_parts_and_define_their_symbol(variant: Variant):
    q, k, v = inputs(33, lead=())
    if variant.couples_heads:
        q, k, v = (x.unsqueeze(0) for x in (q, k, v))
    parts = variant.anatomy(q, k, v, variant.params(), causal=False)
    for each in variant.intermediates:
        values = parts[each.name].squeeze()
        lengths = {"query": 33, "key": 33, "token": 33, "earlier token": 33, "entry": HEAD, "channel": HEAD}
        for size, axis in zip(values.shape, (each.rows, each.columns), strict=False):
            assert size == lengths.get(axis, size), (each.name, axis)
        # The page colours the first occurrence of the symbol, which must not be part of a command.
        before = each.formula[: each.formula.index(each.symbol)]
        assert not re.search(r"\\[A-Za-z]*$", before), (each.name, before)
        assert each.mechanism.endswith(".")
        assert len(each.title.split()) <= 3
