"""Sentences of Reformer's story, from its buckets, its sort and its chunks."""

from collections.abc import Sequence

from app.words.i18n import _, _n, enumeration, escape_markdown, paragraph, quote

MAX_NAMED = 5
"""Largest number of tokens of a bucket that a sentence lists."""


def filled_sentence(number: int, n: int, filled: int, fullest: Sequence[str]) -> str:
    """Return the sentence about the buckets of a hashing round.

    Args:
        number: number of the round.
        n: number of tokens.
        filled: number of buckets with tokens.
        fullest: the tokens of the largest bucket.
    """
    return _n(
        "In hashing round {number}, {tokens} tokens fall into **{n} bucket**. The largest bucket has {most} of them: "
        "{names}.",
        "In hashing round {number}, {tokens} tokens fall into **{n} buckets**. The largest bucket has {most} of "
        "them: {names}.",
        n=filled,
        number=number,
        tokens=n,
        most=len(fullest),
        names=quoted_tokens(fullest),
    )


def held_sentence(reference: str, held: float, at_random: float) -> str:
    """Return the sentence about how well a round's hash finds the pairs with much weight.

    Args:
        reference: name of the reference.
        held: the share of the reference's weight on pairs of two tokens in one bucket.
        at_random: the expected share if the tokens were in random order.
    """
    return _(
        "Pairs of tokens in one bucket hold {held:.0%} of the weight of {reference} (tokens shuffled among the "
        "buckets: {at_random:.0%}).",
        held=held,
        reference=reference,
        at_random=at_random,
    )


def quoted_tokens(tokens: Sequence[str]) -> str:
    """Return the first few tokens in quotes, and how many more there are."""
    names = [quote(escape_markdown(token)) for token in tokens[:MAX_NAMED]]
    more = len(tokens) - MAX_NAMED
    return enumeration([*names, _("{more} more", more=more) if more > 0 else ""])


def sort_sentence(first: str, second: str, distance: int, token: str, moved: int) -> str:
    """Return the sentences about the tokens that the sort moves.

    Args:
        first: a token of a bucket.
        second: the next token in the sorted order, in the same bucket.
        distance: the distance of both tokens in the text.
        token: the token that moves farthest.
        moved: the number of positions by which it moves.
    """
    if not moved:
        return _("All tokens keep their places.")
    return paragraph(
        _(
            "**“{first}”** and **“{second}”** are {n} tokens apart in the text and become neighbours in the sorted "
            "order.",
            n=distance,
            first=first,
            second=second,
        )
        if distance > 1
        else "",
        _n(
            "“{token}” moves farthest, by {n} position.",
            "“{token}” moves farthest, by {n} positions.",
            n=moved,
            token=token,
        ),
    )


def cut_sentence(chunks: int, size: int, *, causal: bool) -> str:
    """Return the sentence about the number and size of the chunks."""
    if causal:
        return _n(
            "Each bucket is split separately into chunks of at most {size} tokens. There is {n} chunk in total.",
            "Each bucket is split separately into chunks of at most {size} tokens. There are {n} chunks in total.",
            n=chunks,
            size=size,
        )
    return _n(
        "The sorted tokens form {n} chunk of at most {size} tokens.",
        "The sorted tokens are split into {n} chunks of at most {size} tokens, regardless of bucket boundaries.",
        n=chunks,
        size=size,
    )
