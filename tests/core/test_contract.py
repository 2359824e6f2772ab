"""Contract tests of every registered variant, with its defaults and with each setting changed separately."""

from collections.abc import Callable

import pytest
from contract import PER_SETTING, PER_VARIANT, check_growth, settings_of

import attention_core as ac
from attention_core.variant import Attention, Variant

VARIANTS = ac.all_variants()


def label(a: Attention) -> str:
    changed = ",".join(f"{name}={value}" for name, value in a.params.changed().items())
    return f"{a.key}[{changed}]" if changed else a.key


CASES = [Attention(v, p) for v in VARIANTS for p in settings_of(v)]


@pytest.mark.parametrize("check", PER_SETTING, ids=lambda c: c.__name__)
@pytest.mark.parametrize("attention", CASES, ids=label)
def test_with_settings(attention: Attention, check: Callable[[Attention], None]):
    check(attention)


@pytest.mark.parametrize("check", PER_VARIANT, ids=lambda c: c.__name__)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_variant(variant: Variant, check: Callable[[Variant], None]):
    check(variant)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_growth(variant: Variant):
    check_growth(Attention(variant, variant.params()))
