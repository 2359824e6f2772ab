"""Softmax attention and the relative error in numpy, with which tests compare what the library computes."""

import numpy as np


def softmax(q, k, *, causal=False):
    """Return the weights of softmax attention, ``[..., n, m]`` float64, of arrays or tensors."""
    q, k = (np.asarray(x, np.float64) for x in (q, k))
    logits = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        logits = np.where(np.tri(q.shape[-2], dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def error(found, wanted):
    """Return the norm of the difference between two arrays, divided by the norm of the expected one."""
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
