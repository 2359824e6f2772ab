"""Tests of second derivatives: they are complete, or requesting them raises an error."""

import pytest
import torch
from seeded import normal

import attention_core as ac
from attention_core.learning.model import ModelSpec, TinyModel

STEP = 1e-5


def derivative_along(gradient, x, direction):
    """Return the derivative of ``gradient`` at x along a direction, by central differences."""
    after, before = (gradient((x + sign * STEP * direction).requires_grad_()) for sign in (1, -1))
    return (after - before) / (2 * STEP)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("variant", ac.all_variants(), ids=lambda v: v.key)
def test_second_derivatives_of_each_variant_are_complete_or_refused(variant, causal):
    if causal and variant.causal_reason:
        return
    attention = ac.get(variant.key)
    v, weight, direction = normal(2, 24, 8, seed=1), normal(2, 24, 8, seed=2), normal(2, 2, 24, 8, seed=3)

    def gradient(x, **options):
        out = attention.attend(x[0], x[1], v, causal=causal)
        return torch.autograd.grad((weight * out).sum(), x, **options)[0]

    x = normal(2, 2, 24, 8).requires_grad_()  # queries and keys
    try:
        found = torch.autograd.grad((gradient(x, create_graph=True) * direction).sum(), x)[0]
    except ac.LabError:
        return
    except RuntimeError as error:
        if "is not implemented" in str(error):  # torch's own kernel refuses second derivatives
            return
        raise
    # The matrix of second derivatives is symmetric, so its product with a direction is the derivative along it.
    torch.testing.assert_close(found, derivative_along(gradient, x.detach(), direction), rtol=1e-5, atol=1e-7)


def test_second_derivatives_of_a_short_convolution_are_refused():
    model = TinyModel(ModelSpec(task="digits", word="softmax"))
    loss = model(normal(2, 9, 1, dtype=torch.float32)).sum()
    with pytest.raises(ac.LabError, match="create_graph"):
        torch.autograd.grad(loss, list(model.parameters()), create_graph=True, allow_unused=True)
