"""Contract tests of every registered variant, with its defaults and with each setting changed separately."""

from collections.abc import Callable

import pytest
from contract import PER_SETTING, PER_VARIANT, check_growth, settings_of

import attention_core as ac
from attention_core.attention import Attention
from attention_core.variant import Variant

VARIANTS = ac.all_variants()


def label(a: Attention) -> str:
    changed = ",".join(f"{name}={value}" for name, value in a.params.changed().items())
    return f"{a.key}[{changed}]" if changed else a.key


CASES = [Attention(v, p) for v in VARIANTS for p in settings_of(v)]


@pytest.mark.parametrize("check", PER_SETTING, ids=lambda c: c.__name__)
@pytest.mark.parametrize("attention", CASES, ids=label)
def test_each_attention_fulfils_the_contract(attention: Attention, check: Callable[[Attention], None]):
    check(attention)


@pytest.mark.parametrize("check", PER_VARIANT, ids=lambda c: c.__name__)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_each_variant_fulfils_the_contract(variant: Variant, check: Callable[[Variant], None]):
    check(variant)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.key)
def test_the_cost_of_each_variant_grows_as_stated(variant: Variant):
    check_growth(Attention(variant, variant.params()))
