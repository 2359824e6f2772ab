"""Evaluates linear attention's feature maps at given numbers, to compare the maps with the exponential."""

import numpy as np
import torch

from attention_core.ops.linear.features import FEATURE_MAPS


def feature_map(name: str, x: np.ndarray, *, size: int) -> np.ndarray:
    """Return the first feature of each of p vectors that differ only in their first entry, float64 ``[p]``.

    Args:
        name: a choice of the linear variant's ``feature_map``.
        x: the first entries of the vectors, ``[p]``; all other entries are zero.
        size: number of entries of each vector, which the feature map ``"softmax"`` depends on.
    """
    vectors = torch.zeros(len(x), size, dtype=torch.float64)
    vectors[:, 0] = torch.from_numpy(np.asarray(x, float))
    return (vectors.exp() if name == "exp" else FEATURE_MAPS[name](vectors))[:, 0].numpy()
