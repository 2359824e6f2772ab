"""Differential attention: softmax of the first half of a head's dimensions minus λ times softmax of the second half.

The paper treats weight that both halves give to the same key as noise, and the subtraction cancels it. Weight that only
the first half gives remains. Weight that only the second half gives becomes negative.
"""

from torch import Tensor

from attention_core.ops.softmax.blockwise import n_pairs
from attention_core.ops.softmax.exact import exact_attention
from attention_core.ops.softmax.masked import masked_softmax, visible_pairs
from attention_core.variant import Cost, Paper, Params, Trainable, Variant, param


class DifferentialParams(Params):
    """Settings of differential attention."""

    taken: float = param(
        0.5,
        low=0.0,
        high=1.0,
        step=0.05,
        help="λ, the factor of the second softmax matrix, which is subtracted from the first. At 0, only the first "
        "matrix remains. At 1, the weights of each row sum to zero.",
    )


def halves(q: Tensor, k: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], float]:
    """Return ``(q₁, k₁)``, ``(q₂, k₂)``, ``[..., n, d / 2]`` each, and the logit scale; for odd d, q₁, k₁ are wider."""
    d = q.shape[-1]
    half = (d + 1) // 2
    return (q[..., :half], k[..., :half]), (q[..., half:], k[..., half:]), (d / 2) ** -0.5


def factor(p: DifferentialParams) -> Tensor | float:
    """Return λ: the setting, plus a learned number for each head in a trained model, ``[H, 1, 1]``."""
    return p.taken + p.learned.get("factor", 0.0)


def weights(q: Tensor, k: Tensor, p: DifferentialParams, *, causal: bool) -> Tensor:
    """Compute ``softmax(q₁ k₁ᵀ / √(d/2)) - λ softmax(q₂ k₂ᵀ / √(d/2))``, ``[..., n, n]``, from the two ``halves``."""
    (q1, k1), (q2, k2), scale = halves(q, k)
    allowed = visible_pairs(q, causal=causal)
    return masked_softmax(q1 @ k1.mT * scale, allowed) - factor(p) * masked_softmax(q2 @ k2.mT * scale, allowed)


def attend(q: Tensor, k: Tensor, v: Tensor, p: DifferentialParams, *, causal: bool) -> Tensor:
    """Compute both halves with the fused kernel: O(n² d) time, O(n d) memory."""
    (q1, k1), (q2, k2), scale = halves(q, k)
    first = exact_attention(q1, k1, v, causal=causal, scale=scale)
    return first - factor(p) * exact_attention(q2, k2, v, causal=causal, scale=scale)


def cost(n: int, d: int, p: DifferentialParams, *, causal: bool, keys: int | None = None) -> Cost:
    """Return the cost: two attentions of two products each; the kernel pads the halves to the values' width."""
    return Cost(
        multiply_adds=4 * d * n_pairs(n, causal=causal, keys=keys), peak_elements=n * (3 * d + 1) + (keys or n) * d
    )


VARIANT = Variant(
    __name__,
    title="Differential",
    summary="Each query and key is cut into two halves, which give two softmax matrices, and λ times the second "
    "matrix is subtracted from the first.",
    formula=r"A = \operatorname{softmax}\left(\frac{Q_1 K_1^\top}{\sqrt{d/2}}\right)"
    r" - \lambda \operatorname{softmax}\left(\frac{Q_2 K_2^\top}{\sqrt{d/2}}\right)",
    complexity="n² d",
    params=DifferentialParams,
    trainable=(Trainable(name="factor", title="factors λ of the second softmax", per="head"),),
    rows_sum_to_one=False,
    signed=True,
    source=Paper("Differential Transformer", 2024, "https://arxiv.org/abs/2410.05258"),
    note="If both halves of a query give weight to the same key, the subtraction reduces this key's weight. The larger "
    "λ is, the more it is reduced. In the paper, λ is learned, and the two halves are trained together. The Learn page "
    "can do this too; on other pages, λ is the value of the setting “taken”.",
)
