"""Pooled keys: neighbouring tokens share one key and one value."""

from app.inside import pooling
from app.inside.closing import beside_softmax
from app.inside.step import Seen, Step


def steps(seen: Seen) -> tuple[Step, ...]:
    """Pool, look, multiply, leak, compare."""
    return (pooling.cover(seen), pooling.look(seen), pooling.blur(seen), pooling.leak(seen), beside_softmax(seen))
