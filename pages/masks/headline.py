"""The Masks page's headline: how many layers connect all tokens, how many pairs these layers allow, and why.

A stack is a sequence of layers, each with a variant's mask. It connects a pair of tokens if information can pass from
one token to the other through the layers of the stack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd

from app.words.finding import Finding, Lines
from app.words.i18n import _, _n, commas, enumeration, paragraph
from attention_core.analysis.masks.pattern import Pattern
from attention_core.analysis.masks.stack import Reach
from pages.masks.patterns import is_window, pair_sum, percent, reads_means, relative_cost
from pages.masks.reach import StackReach

MAX_MULTIPLES = 3
"""Largest number of distances that a sentence lists."""
MAX_NAMED = 3
"""Largest number of variants whose numbers of layers the headline lists without a stack."""


@dataclass(frozen=True, kw_only=True)
class RepeatedVariant:
    """A variant that connects all tokens if it is used in every layer of a model.

    Attributes:
        layers: the number of layers needed.
        cost: sum of the pairs allowed in these layers, as a share of all pairs; None if queries read some keys only as
            block means, which cost less.
        hubs: number of tokens that attend to all tokens, and that all tokens attend to.
    """

    layers: int
    cost: float | None
    hubs: int = 0


def findings(stack_reach: StackReach) -> Lines:
    """Return what the stack and each variant connect, and why; empty texts without a stack and without patterns."""
    masks, reach = stack_reach.masks, stack_reach.reach
    if masks.key_labels is not None:
        return [[Finding(fewest_pairs({_(a.title): p.pairs / p.possible for a, p in masks.sparse.items()}))]]
    if len(masks.labels) == 1:
        return [[Finding(_("A single token attends only to itself. Use at least two tokens."))]]
    others = {_(a.title): p for a, p in masks.sparse.items() if {a} != set(stack_reach.stack)}
    repeated = {
        name: RepeatedVariant(
            layers=p.diameter, cost=None if reads_means(p) else relative_cost([p], p.diameter), hubs=_hubs(p)
        )
        for name, p in others.items()
        if p.diameter is not None
    }
    steps = {name: p.step for name, p in others.items() if p.diameter is None}
    if reach is None:
        return [[Finding(single_variants(repeated), never_connected(steps))]]
    layers = list(zip((_(a.title) for a in stack_reach.stack), stack_reach.patterns, strict=True))
    cost = 0.0
    if reach.complete is not None:
        cost = relative_cost(stack_reach.patterns, reach.complete)
    equally_deep = equally_deep_variants(repeated, compared_layers(reach, stack_reach.depth))
    reason = connection_reason(layers, reach.complete, n=len(masks.labels))
    hub = hub_sentence({name: hubs for name in equally_deep if (hubs := repeated[name].hubs)})
    text = connected_pairs([name for name, _pattern in layers], reach, stack_reach.depth, cost, equally_deep)
    if not {*stack_reach.stack} & {*masks.sparse}:  # The visitor has chosen variants other than those of the stack.
        text = paragraph(single_variants(repeated), text)
    # The sentence about variants that never connect all tokens is left out if there are other explanations, because the
    # captions of the panels also show these variants.
    explanation = paragraph(reason, hub) or never_connected(steps)
    if masks.view.causal:
        first_tokens = {name: hubs for name, p in others.items() if (hubs := blind_hubs(p))}
        explanation = paragraph(explanation, causal_hub_sentence(first_tokens))
    return [[Finding(text, explanation)]]


def _hubs(pattern: Pattern) -> int:
    return int((pattern.allowed.all(0) & pattern.allowed.all(1)).sum()) if pattern.diameter == 2 else 0


def blind_hubs(pattern: Pattern) -> int:
    """Return the number of a causal pattern's global tokens that all later tokens read, but that read no others.

    It is 0 if the pattern connects all tokens in two layers, or if another token comes before a global one.
    """
    rule = pattern.primitives.get("global")
    if rule is None or pattern.diameter in (1, 2):
        return 0
    is_global = [bool(column[j:].all()) for j, column in enumerate(rule.T)]
    count = sum(is_global)
    return count if all(is_global[:count]) else 0


def compared_layers(reach: Reach, depth: int) -> int:
    """Return the number of layers after which a stack connects all tokens, but at most the number shown."""
    return min(reach.complete or depth, depth)


def equally_deep_variants(repeated: Mapping[str, RepeatedVariant], layers: int) -> dict[str, float]:
    """Return the variants that connect all tokens with as many layers as the stack, or as shown if the stack does not.

    Only variants that allow fewer pairs in all layers than one softmax layer are returned with their costs, the
    cheapest first.

    Args:
        repeated: the variants that connect all tokens alone, by their names.
        layers: number of layers of the stack that are compared, from ``compared_layers``.
    """
    costs = {name: each.cost for name, each in repeated.items() if each.layers == layers and each.cost is not None}
    return {name: cost for name, cost in sorted(costs.items(), key=lambda each: each[1]) if round(cost, 2) < 1}


def connected_pairs(names: Sequence[str], reach: Reach, depth: int, cost: float, others: Mapping[str, float]) -> str:
    """Return which variants and stacks connect all tokens cheaply, and which pairs a stack connects at a depth.

    Args:
        names: names of the stack's layers, which are repeated.
        reach: reach of the stack.
        depth: number of layers shown.
        cost: sum of the pairs allowed in the layers that connect all tokens, as a share of all pairs.
        others: the same share for each variant that connects all tokens with as many layers, by its name.
    """
    stack, layers = " → ".join(names), compared_layers(reach, depth)
    shares = {twice(name) if layers == 2 else name: share for name, share in others.items()}
    if reach.complete is None or depth < reach.complete:
        return paragraph(
            cheap_layers(layers, shares),
            _n(
                "**After {n} layer, the stack {stack} connects {share} of the pairs of tokens.**",
                "**After {n} layers, the stack {stack} connects {share} of the pairs of tokens.**",
                n=depth,
                stack=stack,
                share=percent(reach.shares[depth]),
            ),
            "" if reach.complete is None else _("All tokens are connected after {n} layers.", n=reach.complete),
        )
    if others and round(cost, 2) < 1:
        last = _("the stack {layers}", layers=stack)
        if reach.complete == 2:
            last = " → ".join(names[:2]) if names[1:] else twice(stack)
        return cheap_layers(layers, shares | {last: cost})
    return paragraph(
        cheap_layers(layers, shares),
        _n(
            "**The stack {stack} connects all tokens in {n} layer.**",
            "**The stack {stack} connects all tokens in {n} layers.**",
            n=reach.complete,
            stack=stack,
        ),
        pair_sum(reach.complete, cost),
    )


def cheap_layers(layers: int, shares: Mapping[str, float]) -> str:
    """Return the sentence about what connects all tokens with few allowed pairs, cheapest first; empty without any.

    Args:
        layers: the number of layers.
        shares: sum of the pairs allowed in these layers, as a share of all pairs, by the layers' names.
    """
    cheapest_first = sorted(shares.items(), key=lambda each: each[1])
    if not cheapest_first:
        return ""
    (first, least), *others = cheapest_first
    options = [
        _("{name} allows {share} of softmax's pairs", name=first, share=f"{least:.0%}"),
        *(_("{name} {share}", name=name, share=f"{share:.0%}") for name, share in others),
    ]
    return _("**{n} sparse layers connect all tokens: {options}.**", n=layers, options=commas(options))


def twice(name: str) -> str:
    """Return the phrase for two layers with the same variant, such as ``Local twice``."""
    return _("{name} twice", name=name)


def alternatives(options: Sequence[str]) -> str:
    """Return options as a list in words."""
    *others, last = options or [""]
    first = commas(others)
    return _("{first}, or {second}", first=first, second=last) if first else last


def connection_reason(layers: Sequence[tuple[str, Pattern]], complete: int | None, *, n: int) -> str:
    """Return the sentence about why a stack connects all tokens, or why it never does.

    The sentence is empty if the distances in allowed pairs do not explain the result.

    Args:
        layers: name and pattern of each layer of the stack. The stack is repeated to make deeper models.
        complete: number of layers after which all tokens are connected; None if this never happens.
        n: number of tokens.
    """
    if complete is None:
        step = gcd(*(pattern.step for _name, pattern in layers))
        if step == 0:
            return _("The stack never connects all tokens, because each token attends only to itself.")
        if step == 1:
            return _("The stack never connects all tokens.")
        return _(
            "The stack never connects all tokens, because information moves only over distances that are multiples of "
            "{step} tokens.",
            step=step,
        )
    if complete == 1:
        return ""
    layers = layers[:complete]
    largest_step = max(pattern.step for _name, pattern in layers)
    if largest_step > 1:
        others = dict.fromkeys(name for name, pattern in layers if pattern.step % largest_step)
        if len(layers) == 2 and len(others) == 1 and complete == 2:
            # Two layers then suffice: each distance between tokens is the sum of a distance that one pattern allows
            # and a distance that the other allows.
            strided = next(name for name, pattern in layers if pattern.step == largest_step)
            return _(
                "**{strided}** reads keys {distances} tokens away, and **{other}** fills the gaps between them.",
                strided=strided,
                distances=multiples(largest_step, n - 1),
                other=next(iter(others)),
            )
        return _n(
            "The stack connects all tokens because **{names}** also moves information over distances that are not "
            "multiples of {step} tokens.",
            "The stack connects all tokens because **{names}** also move information over distances that are not "
            "multiples of {step} tokens.",
            n=len(others),
            names=enumeration(others),
            step=largest_step,
        )
    farthest = max(pattern.farthest for _name, pattern in layers)
    if all(is_window(pattern) for _name, pattern in layers) and complete == ceil((n - 1) / farthest):
        return _n(
            "With fewer than {complete} layers, the stack cannot connect the first and the last of the {tokens} "
            "tokens, because information moves at most {n} token per layer.",
            "With fewer than {complete} layers, the stack cannot connect the first and the last of the {tokens} "
            "tokens, because information moves at most {n} tokens per layer.",
            complete=complete,
            tokens=n,
            n=farthest,
        )
    return ""


def multiples(step: int, max_distance: int) -> str:
    """Return the multiples of ``step`` up to ``max_distance`` as a list in words, but only the first three of many."""
    distances = [str(distance) for distance in range(step, max_distance + 1, step)]
    if len(distances) <= MAX_MULTIPLES:
        return enumeration(distances)
    return _("{first}, {second}, {third} …", first=distances[0], second=distances[1], third=distances[2])


def hub_sentence(hubs: Mapping[str, int]) -> str:
    """Return how variants with these numbers of global tokens connect all tokens in two layers; empty without any."""
    if not hubs:
        return ""
    return _n(
        "**{names}**'s global token alone connects all tokens: it reads all tokens in layer 1, and all tokens read it "
        "in layer 2.",
        "The global tokens of **{names}** alone connect all tokens: they read all tokens in layer 1, and all tokens "
        "read them in layer 2.",
        n=sum(hubs.values()),
        names=enumeration(hubs),
    )


def causal_hub_sentence(hubs: Mapping[str, int]) -> str:
    """Return why the first tokens as global tokens do not connect all tokens with a causal mask; empty without any."""
    if not hubs:
        return ""
    return _n(
        "**{names}**'s global token is the first token. With a causal mask, it cannot read later tokens and pass on "
        "their information, so two layers of {names} alone do not connect all tokens.",
        "The global tokens of **{names}** are at the beginning of the text. With a causal mask, they cannot read later "
        "tokens and pass on their information, so two layers of {names} alone do not connect all tokens.",
        n=sum(hubs.values()),
        names=enumeration(hubs),
    )


def single_variants(repeated: Mapping[str, RepeatedVariant]) -> str:
    """Return the sentence about how many layers each variant alone needs to connect all tokens.

    It is empty without variants, and for more than ``MAX_NAMED`` variants.
    """
    if not 0 < len(repeated) <= MAX_NAMED:
        return ""
    options = [
        _n(
            "{n} layer of {name} ({result})",
            "{n} layers of {name} ({result})",
            n=each.layers,
            name=name,
            result=_("partly as means") if each.cost is None else f"{each.cost:.0%}",
        )
        for name, each in sorted(repeated.items(), key=lambda item: item[1].layers)
    ]
    return paragraph(
        _("**All tokens are connected by {options}.**", options=alternatives(options)),
        _("Percentages: pairs allowed in these layers together (one softmax layer: 100%).")
        if any(each.cost is not None for each in repeated.values())
        else "",
    )


def never_connected(steps: Mapping[str, int]) -> str:
    """Return why variants with a stride never connect all tokens; the captions of the panels name the other variants.

    Args:
        steps: greatest common divisor of the distances between the tokens of allowed pairs, by the variant's name.
    """
    return paragraph(
        *(
            _(
                "**{name}** alone never connects all tokens, because information moves only over distances that are "
                "multiples of {step} tokens.",
                name=name,
                step=step,
            )
            for name, step in steps.items()
            if step > 1
        )
    )


def fewest_pairs(shares: Mapping[str, float]) -> str:
    """Return the sentence about the variant that allows the fewest pairs; empty without variants."""
    if not shares:
        return ""
    fields = {"name": min(shares, key=shares.__getitem__), "share": min(shares.values())}
    if len(shares) == 1:
        return _("**{name} allows {share:.1%} of the query–key pairs.**", **fields)
    return _("**{name} allows the fewest query–key pairs: {share:.1%}.**", **fields)
