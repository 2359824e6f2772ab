import pytest
import torch
from torch import Tensor, nn
from transformers.models.nystromformer.configuration_nystromformer import NystromformerConfig
from transformers.models.nystromformer.modeling_nystromformer import NystromformerSelfAttention

import attention_core as ac


def inputs(n: int, d: int = 4, heads: int = 3) -> list[Tensor]:
    source = torch.Generator().manual_seed(n)
    return [torch.randn(2, heads, n, d, generator=source, dtype=torch.float64) for _ in range(3)]


class Given(nn.Module):
    """A substitute for a projection that returns ``x`` as ``[B, n, H d]`` for any input."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x.transpose(1, 2).flatten(2)

    def forward(self, _: Tensor) -> Tensor:
        return self.x


def transformers_nystromformer(q: Tensor, k: Tensor, v: Tensor, m: int) -> Tensor:
    batch, heads, n, d = q.shape
    config = NystromformerConfig(
        hidden_size=heads * d,
        num_attention_heads=heads,
        num_landmarks=m,
        segment_means_seq_len=n,
        inv_coeff_init_option=False,
    )
    module = NystromformerSelfAttention(config).eval()
    module.conv_kernel_size = None  # Its skip connection is no part of the attention.
    # This option uses the norms of each matrix; the other option uses one norm for the batch.
    module.init_option = "exact"
    module.query, module.key, module.value = Given(q), Given(k), Given(v)
    (out,) = module(torch.zeros(batch, n, heads * d))
    return out.unflatten(-1, (heads, d)).transpose(1, 2)


@pytest.mark.parametrize(("n", "m"), [(64, 8), (60, 12), (33, 11), (16, 1)])
def test_nystrom_equals_the_nystromformer_of_transformers(n: int, m: int):
    q, k, v = inputs(n)
    attention = ac.get("nystrom", landmarks=m, iterations=6)
    wanted = transformers_nystromformer(q, k, v, m)
    # transformers starts the iteration from a float32 identity.
    torch.testing.assert_close(attention.attend(q, k, v), wanted, rtol=1e-6, atol=1e-8)


def test_iterations_approach_the_exact_inverse():
    q, k, _ = (2 * x for x in inputs(32, d=16))
    exact = ac.get("nystrom", landmarks=8, inverse="exact").weights(q, k)
    errors = [(ac.get("nystrom", landmarks=8, iterations=t).weights(q, k) - exact).norm() for t in (2, 4, 6, 12)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6 * exact.norm()


@pytest.mark.parametrize("method", ["segment_means", "kmeans"])
def test_the_first_output_depends_on_later_tokens(method: str):
    """Check the reason why the variant is not causal: a late token changes the first output."""
    q, k, v = inputs(40)
    attention = ac.get("nystrom", landmarks=8, method=method)
    changed = k.clone()
    changed[..., -1, :] += 1
    moved = attention.attend(q, changed, v) - attention.attend(q, k, v)
    assert moved[..., 0, :].abs().min() > 1e-6


@pytest.mark.parametrize("method", ["segment_means", "kmeans"])
@pytest.mark.parametrize("inverse", ["iterative", "exact"])
def test_the_product_of_the_parts_is_the_matrix(method: str, inverse: str):
    q, k, v = inputs(41)
    attention = ac.get("nystrom", landmarks=6, method=method, inverse=inverse)
    parts = attention.variant.anatomy(q, k, v, attention.params, causal=False)
    matrix = parts["left"] @ parts["inverse"] @ parts["right"]
    torch.testing.assert_close(matrix, attention.weights(q, k))
    for name in ("left", "middle", "right"):
        torch.testing.assert_close(parts[name].sum(-1), torch.ones(parts[name].shape[:-1], dtype=q.dtype))
    assert parts["query_landmarks"].shape == parts["key_landmarks"].shape == (2, 3, 6, 4)
    wanted = (torch.eye(6, dtype=q.dtype) - parts["middle"] @ parts["inverse"]).norm(dim=(-2, -1)) / 6**0.5
    torch.testing.assert_close(parts["residuals"][..., -1], wanted, rtol=1e-6, atol=1e-12)
    assert parts["residuals"].shape == (2, 3, 7 if inverse == "iterative" else 1)


def test_k_means_landmarks_have_a_smaller_error_on_clustered_tokens():
    source = torch.Generator().manual_seed(5)
    topics = 3 * torch.randn(6, 8, generator=source, dtype=torch.float64)
    x = topics[torch.randint(6, (96,), generator=source)] + 0.1 * torch.randn(96, 8, generator=source)
    x = x[None]
    wanted = ac.get("softmax").weights(x, x)
    by_place, by_kind = (
        (ac.get("nystrom", landmarks=12, method=method).weights(x, x) - wanted).norm()
        for method in ("segment_means", "kmeans")
    )
    assert by_kind < by_place
