"""Efficient attention: the softmax of queries over features times the softmax of keys over positions.

Every feature of the keys averages the values over all positions, and every query mixes these averages: the gather and
distribute steps of A²-Nets (arXiv 1810.11579). Rows sum to one without a division. Efficient attention does not
approximate softmax.

The causal form divides each feature of the keys by its running sum over the positions so far. Its rows still sum to
one, but queries no longer share one normalised matrix of keys.
"""

import math

import torch
from torch import Tensor

from attention_core.ops.gpu_steps import step_size
from attention_core.ops.linear.causal_scan import State, chunk_size, empty_state, scan_step, with_ones
from attention_core.ops.linear.features import Features, LogFeatures, exceeds_spread, similarities
from attention_core.ops.linear.scans import needs_gradient, running_max, running_sum, scan_chunks
from attention_core.ops.linear.streamed_kernel import default_block_size, streamed_cost, sum_over_keys
from attention_core.ops.softmax.masked import at_least_float32
from attention_core.variant import Cost, Intermediate, Paper, Params, Variant


def definition(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Compute ``softmax_features(q) (softmax_positions(k)ᵀ v)``, ``[..., n, d_v]``.

    If causal, the softmax over positions ends at the query's own position.
    """
    mixture = q.softmax(-1)
    if not causal:
        return mixture @ (k.softmax(-2).mT @ v)
    keys = k.exp()
    return (mixture / keys.cumsum(-2) @ keys.mT).tril() @ v  # row i divides each feature by its sum over keys 0..i


def features(q: Tensor, k: Tensor, *, causal: bool, state: State | None = None) -> Features:
    """Return features of q and k, ``[..., n, d]`` each: softmax of q over features and of k over positions.

    If causal, the features of k are exponentials, and the softmax of q is divided by their running sum. With
    ``state``, this sum includes earlier tokens; their sum is the last column of ``state.sums``.
    """
    q, k = at_least_float32(q), at_least_float32(k)
    if not causal:
        return Features(q.softmax(-1), k.softmax(-2))
    with torch.no_grad():  # no gradient: the running maximum cancels when keys are divided by their sum
        reference = running_max(k)
        if state is not None and state.reference is not None:
            reference = torch.maximum(reference, state.reference)
    keys = (k - reference).exp()
    sums = running_sum(keys, reference)
    if state is not None and state.reference is not None:
        sums = sums + state.sums[..., -1:].mT * (state.reference - reference).exp()
    return Features(q.softmax(-1) / sums, keys, reference)


def weights(q: Tensor, k: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return softmax of q over its features times softmax of k over positions, ``[..., n, n]``."""
    f = features(q, k, causal=causal)  # [..., n, d] each
    return similarities(f, causal=causal).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> Tensor:
    """Return ``softmax_features(q) (softmax_positions(k)ᵀ v)``; features exist for one block of tokens at a time.

    If gradients are needed and the form is not causal, all features are kept for the backward pass.
    """
    if not causal and needs_gradient(q, k, v):
        f = features(q, k, causal=False)
        return (f.q @ (f.k.mT @ v.to(f.q.dtype))).to(v.dtype)
    if causal:
        state = empty_state(k.shape[-1], at_least_float32(v)[..., 0, :], normalise=True, references=k.shape[-1])
        out, _ = scan_chunks(attend_chunk, state, q, k, v, size=chunk_size(k))
        return out
    heads, d = math.prod(k.shape[:-2]), k.shape[-1]
    size = step_size(default_block_size(d, causal=False), k.device, numbers=heads * d)
    sums = sum_over_keys(lambda k: LogFeatures(None, at_least_float32(k)), k, v, size=size)
    means = sums.products / sums.total.mT
    out, _ = scan_chunks(lambda means, q: (at_least_float32(q).softmax(-1) @ means, means), means, q, size=size)
    return out.to(v.dtype)


def attend_chunk(state: State, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, State]:
    """Return the outputs of a chunk of the causal form, and the next state.

    Each feature's running maximum is subtracted from the keys before the exponential. If no maximum increases by more
    than ``SPREAD`` in the chunk, the maxima at the last token are used for all tokens of the chunk.
    """
    previous, values, k_float = state.reference, with_ones(at_least_float32(v)), at_least_float32(k)
    assert previous is not None
    with torch.no_grad():
        reference = torch.maximum(previous, k_float.amax(-2, keepdim=True))
    if exceeds_spread(torch.maximum(previous, k_float[..., :1, :]), reference):
        out, state = scan_step(state, features(q, k, causal=True, state=state), values)
        return out[..., :-1].to(v.dtype), state
    keys = (k_float - reference).exp_()
    decayed = State(state.sums * (previous - reference).exp().mT, None)
    queries = at_least_float32(q).softmax(-1) / (keys.cumsum(-2) + decayed.sums[..., -1:].mT)
    out, state = scan_step(decayed, Features(queries, keys), values)
    return out[..., :-1].to(v.dtype), State(state.sums, reference)


def cost(n: int, d: int, p: Params, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: key features times values, and query features times the sums; if causal, also within a chunk."""
    if causal:
        return Cost(*streamed_cost(n, d, d, causal=True, referenced=True))
    m, size = keys or n, default_block_size(d, causal=False)
    outputs = n * d if n > size else 0  # the result of a single block is the output
    peak = max(outputs + min(n, size) * (2 * d + 1), min(m, size) * (d + 1) + d * (d + 1)) + d * (d + 1)
    return Cost(multiply_adds=m * d * (d + 1) + n * d * d, peak_elements=peak)


def anatomy(q: Tensor, k: Tensor, v: Tensor, p: Params, *, causal: bool) -> dict[str, Tensor]:
    """Return the weights with which each of C features averages positions, and with which each query mixes features.

    ``gather``, ``[..., C, n]``: one attention map per feature, over all tokens. ``summaries``, ``[..., C, d_v]``:
    the mean value of each map. ``distribute``, ``[..., n, C]``: the weights of the summaries for each query.
    """
    maps = at_least_float32(k).softmax(-2).mT
    return {"gather": maps, "summaries": maps @ v.to(maps.dtype), "distribute": at_least_float32(q).softmax(-1)}


VARIANT = Variant(
    __name__,
    title="Efficient",
    summary="For each key component, the values of all tokens are averaged, with weights from a softmax of this "
    "component over the tokens. A softmax over the query's components mixes these averages.",
    formula=r"A = \operatorname{softmax}_{\text{features}}(Q)\, \operatorname{softmax}_{\text{positions}}(K)^\top",
    complexity="n d²",
    params=Params,
    intermediates=(
        Intermediate(
            name="gather",
            title="Feature maps",
            symbol="G",
            formula=r"G_{cj} = \frac{e^{K_{jc}}}{\sum_l e^{K_{lc}}}",
            mechanism="Each component of the keys is a feature. For each feature, a softmax over the tokens gives "
            "every token a weight. The weights of one feature sum to 1 and form its map. With a causal mask, each "
            "query has its own maps, and the figure shows those of the last query.",
            rows="feature",
            columns="token",
        ),
        Intermediate(
            name="distribute",
            title="Feature weights",
            symbol="D",
            formula=r"D_{ic} = \frac{e^{Q_{ic}}}{\sum_f e^{Q_{if}}},\qquad A = D\, G",
            mechanism="Each feature has a map: one weight for every token. Each query mixes the maps of all features. "
            "The proportions of this mixture come from a softmax over the query's own components.",
            columns="feature",
        ),
    ),
    note="With a causal mask, the softmax over tokens covers only the tokens up to the query, so it is different for "
    "each query. The attention matrix is then no longer the product of two softmax matrices.",
    source=Paper("Efficient Attention: Attention with Linear Complexities", 2018, "https://arxiv.org/abs/1812.01243"),
)
