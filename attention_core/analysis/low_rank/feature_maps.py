"""Evaluates linear attention's feature maps at given numbers, to compare the maps with the exponential."""

import numpy as np
import torch

from attention_core.ops.linear.features import FEATURE_MAPS


def feature_map(name: str, x: np.ndarray, *, size: int) -> np.ndarray:
    """Evaluate a feature map ``φ(x)`` at each number of ``[p]``, in float64.

    Args:
        name: a choice of the linear variant's ``feature_map``.
        x: values of one entry of a query or key.
        size: number of entries of the vector, which ``"softmax"`` needs; the other entries are zero.
    """
    vectors = torch.zeros(len(x), size, dtype=torch.float64)
    vectors[:, 0] = torch.from_numpy(np.asarray(x, float))
    return (vectors.exp() if name == "exp" else FEATURE_MAPS[name](vectors))[:, 0].numpy()
