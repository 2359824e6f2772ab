"""The registry of attention variants: it imports every file under ``variants/<family>/`` and finds variants by key."""

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Any

import attention_core.variants
from attention_core.attention import Attention
from attention_core.errors import SettingError, UnknownVariantError, name_hint
from attention_core.variant import Variant

Variants = str | Attention | Sequence[str | Attention]
"""One variant or several, each as a word such as ``nystrom~landmarks~16`` or as an ``Attention``."""


@cache
def discover() -> dict[str, Variant]:
    """Import the file of each variant once and return the variants by key: softmax first, then by family and title.

    Raises:
        TypeError: if a file does not define its own ``VARIANT``, or if two families have a file of the same name.
    """
    variants: dict[str, Variant] = {}
    package = attention_core.variants
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if info.ispkg:
            continue
        variant = getattr(importlib.import_module(info.name), "VARIANT", None)
        if not isinstance(variant, Variant) or variant.module != info.name:
            raise TypeError(f"{info.name} must define VARIANT = Variant(__name__, ...)")
        if variant.key in variants:
            raise TypeError(f"two families have a variant {variant.key!r}")
        variants[variant.key] = variant
    order = families()
    return dict(
        sorted(variants.items(), key=lambda e: (e[0] != "softmax", order.index(e[1].family), e[1].title.casefold()))
    )


def families() -> tuple[str, ...]:
    """Return the names of the families, in the order in which pages show them.

    Example:
        >>> import attention_core as ac
        >>> ac.families()
        ('dense', 'sparse', 'kernel', 'gated', 'low_rank', 'cache', 'mixed')
    """
    return ("dense", "sparse", "kernel", "gated", "low_rank", "cache", "mixed")


def all_variants() -> tuple[Variant, ...]:
    """Return all variants, softmax first, then by family and title.

    Example:
        >>> import attention_core as ac
        >>> [variant.key for variant in ac.all_variants() if variant.family == "cache"]
        ['gqa', 'heavy_hitters', 'mla', 'quantised_keys']
    """
    return tuple(discover().values())


def recurrent() -> tuple[Variant, ...]:
    """Return the variants that are recurrent networks, those with a step function and a state of constant size."""
    return tuple(variant for variant in all_variants() if variant.decoder is not None)


def smaller_caches() -> tuple[Variant, ...]:
    """Return the variants whose cache for generation is smaller than all keys and values but is not a decoder state."""
    return tuple(variant for variant in all_variants() if variant.cache is not None)


def matrix_states() -> tuple[Variant, ...]:
    """Return the recurrent variants whose state is one matrix: a normalised sum over past tokens, or fast weights."""
    return tuple(v for v in recurrent() if v.decoder is not None and (v.decoder.normalised or v.decoder.rule_inputs))


def variant(key: str) -> Variant:
    """Return the variant with this key.

    Raises:
        UnknownVariantError: for an unknown key; the message names the most similar key.

    Example:
        >>> import attention_core as ac
        >>> ac.variant("nystrom").title
        'Nyström'
    """
    known = discover()
    if key not in known:
        raise UnknownVariantError(
            "There is no attention variant {key!r}. {hint}", key=key[:40], hint=name_hint(key, known)
        )
    return known[key]


def get(key: str, **settings: Any) -> Attention:  # noqa: ANN401 - Setting.check validates each value
    """Return a variant with settings, ready to call.

    Args:
        key: key of the variant, such as ``"nystrom"``.
        **settings: settings that differ from their defaults; ``get(key).help()`` lists them.

    Raises:
        UnknownVariantError: for an unknown key; the message names the most similar key.
        SettingError: for an unknown setting or a value out of bounds.

    Example:
        >>> import torch
        >>> import attention_core as ac
        >>> q, k, v = torch.randn(3, 4, 128, 32)  # [heads, tokens, size]
        >>> ac.get("nystrom", landmarks=64)(q, k, v).shape
        torch.Size([4, 128, 32])
    """
    chosen = variant(key)
    return Attention(chosen, chosen.params.build(**settings))


def attentions(variants: Variants) -> list[Attention]:
    """Return one variant or several, each given as a word or as an ``Attention``; errors as in ``from_word``."""
    several = [variants] if isinstance(variants, str | Attention) else variants
    return [from_word(each) if isinstance(each, str) else each for each in several]


def from_word(word: str) -> Attention:
    """Return the variant with settings from a word such as ``nystrom~landmarks~16``, the inverse of ``Attention.word``.

    Raises:
        UnknownVariantError: for an unknown key.
        SettingError: for an unknown setting, a value out of bounds, or a setting without a value.

    Example:
        >>> import attention_core as ac
        >>> ac.from_word("local~window~4")
        local(window=4, columns=0)
    """
    key, *parts = word.split("~")
    chosen = variant(key)
    if len(parts) % 2:
        raise SettingError(
            "{name} has no value. Write a value after each setting, as in local~window~8.", name=parts[-1][:40]
        )
    return Attention(chosen, chosen.params.from_text(dict(zip(parts[::2], parts[1::2], strict=True))))
