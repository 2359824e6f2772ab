"""What linear attention's feature maps make of a number, beside the exponential they stand in for."""

import numpy as np
import torch

from attention_core.ops.linear.features import MAPS


def feature_map(name: str, x: np.ndarray, *, size: int) -> np.ndarray:
    """``φ(x)`` at each number of ``[p]``, float64.

    Args:
        name: a choice of the linear variant's ``feature_map``.
        x: what stands in one entry of a query or key.
        size: entries of the vector, for ``"softmax"``, which looks at all of them: the others are taken to be zero.
    """
    vectors = torch.zeros(len(x), size, dtype=torch.float64)
    vectors[:, 0] = torch.from_numpy(np.asarray(x, float))
    found: np.ndarray = (vectors.exp() if name == "exp" else MAPS[name](vectors))[:, 0].numpy()
    return found
