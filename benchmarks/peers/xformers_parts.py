"""Peers (implementations by other projects) from the components that xformers shipped until 2024.

They have no head dimension, so the heads become part of the batch.
"""

import torch
from torch import Tensor

from benchmarks.peers.adaptor import Built, Settings, explicit, folded


def favor(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build FAVOR+. Its random features differ from ours, so the expected output is computed with its features."""
    from xformers.components.attention.favor import FavorAttention

    module = FavorAttention(dim_features=p["features"]).eval()

    def expected() -> Tensor:
        similarity = module.feature_map(q).double() @ module.feature_map(k).double().mT
        return (similarity / similarity.sum(-1, keepdim=True)).to(v.dtype) @ v

    return Built(lambda: module(folded(q), folded(k), folded(v)), expected)


def nystrom(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Nyström attention. Its inverse has six iterations, which start from each matrix's norms, as in ours."""
    from xformers.components.attention.nystrom import NystromAttention

    module = NystromAttention(0.0, q.shape[1], num_landmarks=p["landmarks"]).eval()
    return Built(lambda: module(folded(q), folded(k), folded(v)))


def orthoformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Orthoformer. Segment means of the queries replace its own landmarks, because they are cheaper."""
    from xformers.components.attention.ortho import LandmarkSelection, OrthoFormerAttention

    m, d = p["landmarks"], q.shape[-1]
    module = OrthoFormerAttention(0.0, num_landmarks=m, landmark_selection=LandmarkSelection.KMeans).eval()
    module._cluster_landmarks = lambda x: x.unflatten(-2, (m, -1)).mean(-2)

    def expected() -> Tensor:
        landmarks = q.unflatten(-2, (m, -1)).mean(-2)
        return explicit(q @ landmarks.mT * d**-0.5, explicit(landmarks @ k.mT * d**-0.5, v))

    return Built(lambda: module(folded(q), folded(k), folded(v)), expected)


def linformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Linformer with random projections instead of learned ones; the expected output uses the same ones."""
    from xformers.components.attention.linformer import LinformerAttention

    n, d = q.shape[-2:]
    module = LinformerAttention(0.0, n, k=p["rank"]).eval()

    def expected() -> Tensor:
        with torch.no_grad():
            return explicit(q @ (module.E.weight @ k).mT * d**-0.5, module.F.weight @ v)

    return Built(lambda: module(folded(q), folded(k), folded(v)), expected)
