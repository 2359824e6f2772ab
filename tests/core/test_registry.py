"""Tests of the registry: it finds variants by their files, and a faulty file raises an error and is never skipped."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import attention_core as ac
import attention_core.variants
from attention_core import registry
from attention_core.attention import Attention
from attention_core.benchmarking.full_matrix_mask import attention_from_word
from attention_core.errors import NotCausalError, NotCrossError, SettingError, ShapeError, UnknownVariantError
from attention_core.variant import Variant

GOOD = (Path(attention_core.variants.__path__[0]) / "dense" / "softmax.py").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder in which the registry searches for variants instead of its own."""
    package = attention_core.variants
    before = {name: module for name, module in sys.modules.items() if name.startswith(package.__name__ + ".")}
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    kept = dict(vars(package))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(package.__name__ + ".")]:
        del sys.modules[name]
    sys.modules.update(before)
    vars(package).clear()
    vars(package).update(kept)


def put(folder: Path, family: str, name: str, text: str) -> None:
    (folder / family).mkdir(exist_ok=True)
    (folder / family / "__init__.py").touch()
    (folder / family / f"{name}.py").write_text(text)


def discover() -> dict[str, Variant]:
    return registry.discover.__wrapped__()


def test_discovery_finds_every_file(folder: Path):
    put(folder, "dense", "softmax", GOOD)
    put(folder, "kernel", "alpha", GOOD)
    put(folder, "dense", "zeta", GOOD.replace('title="Softmax"', 'title="beta"'))
    assert list(discover()) == ["softmax", "zeta", "alpha"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "alpha must define VARIANT"),
        ("VARIANT = 'softmax'", "alpha must define VARIANT"),
        (
            f"{GOOD}import dataclasses\nVARIANT = dataclasses.replace(VARIANT, module='a.b')",
            "alpha must define VARIANT",
        ),
        (GOOD.replace("def attend(", "def atend("), "alpha must define attend"),
    ],
)
def test_wrong_file_fails(folder: Path, text: str, message: str):
    put(folder, "dense", "alpha", text)
    with pytest.raises(TypeError, match=message):
        discover()


def test_broken_file_fails_with_its_own_error(folder: Path):
    put(folder, "dense", "alpha", "import no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        discover()


def test_same_key_in_two_families_fails(folder: Path):
    put(folder, "dense", "softmax", GOOD)
    put(folder, "kernel", "softmax", GOOD)
    with pytest.raises(TypeError, match="two families have a variant 'softmax'"):
        discover()


def test_all_variants_are_listed_in_order():
    variants = ac.all_variants()
    assert variants[0].key == "softmax"
    families = [v.family for v in variants[1:]]
    assert families == sorted(families, key=ac.families().index)
    assert {"linear", "efficient", "local", "atrous", "sparse", "topk", "nystrom"} <= {v.key for v in variants}
    for v in variants:
        assert ac.variant(v.key) is v


def test_get_makes_an_attention_with_its_settings():
    assert ac.get("local", window=5) == Attention(ac.variant("local"), ac.variant("local").params(window=5))
    assert ac.get("local", window=5.0).params.window == 5


def test_unknown_key_names_the_nearest():
    with pytest.raises(UnknownVariantError, match=r"'nystrm'\. Did you mean 'nystrom'\?"):
        ac.get("nystrm")


def test_unknown_key_far_from_all_lists_them():
    with pytest.raises(UnknownVariantError, match=r"Choose one of: .*atrous.*softmax"):
        ac.get("%%%")


def test_unknown_setting_names_the_nearest():
    with pytest.raises(SettingError, match=r"no setting 'windw'\. Did you mean 'window'\?"):
        ac.get("local", windw=3)
    with pytest.raises(SettingError, match=r"no setting 'windw'\. Did you mean 'window'\?"):
        ac.get("local").with_settings(windw=3)


def test_unknown_setting_of_a_variant_without_settings_is_refused():
    with pytest.raises(SettingError, match="This variant has no settings"):
        ac.get("efficient", window=3)


@pytest.mark.parametrize(
    "value", [0, -1, 10**6, pytest.param(10**400, id="huge"), 2.5, "4", True, None, float("nan"), float("inf")]
)
def test_wrong_values_are_refused_with_the_bounds(value: object):
    with pytest.raises(SettingError, match=r"window is .*1\D+4096"):
        ac.get("local", window=value)


def test_numbers_of_numpy_are_accepted_as_settings():
    for attention in (ac.get("local", window=np.int64(8)), ac.get("local").with_settings(window=np.float32(8))):
        assert type(attention.params.window) is int
        assert attention == ac.get("local", window=8)
    assert ac.get("retention", decay=np.float64(0.5)).word == "retention~decay~0.5"
    with pytest.raises(SettingError, match="window is True"):
        ac.get("local", window=np.True_)


def test_trained_tensors_are_compared_by_identity_and_have_known_names():
    gate = torch.zeros(2, 9, 1)
    one, same, other = (ac.get("fox").with_learned({"gate": each}) for each in (gate, gate, gate.clone()))
    assert one == same != other
    assert len({one, same, other, ac.get("fox")}) == 3
    assert one.params != ac.get("mesa").with_learned({"gate": gate}).params
    with pytest.raises(SettingError, match=r"no trainable tensor 'gates' at these settings.*: gate"):
        ac.get("fox").with_learned({"gates": gate})
    with pytest.raises(SettingError, match="Softmax has no trainable tensors"):
        ac.get("softmax").with_learned({"gate": gate})


def test_links_with_unknown_settings_or_invalid_values_are_refused():
    params = ac.variant("local").params
    with pytest.raises(SettingError, match="Did you mean 'window'"):
        params.from_text({"widnow": "3"})
    with pytest.raises(SettingError, match="window"):
        params.from_text({"window": "__import__('os')"})


def test_shapes_are_checked_before_anything_runs():
    import torch

    attention = ac.get("linear")
    q, v = torch.zeros(3, 4), torch.zeros(3, 2)
    assert attention.attend(q, q, v).shape == (3, 2)
    for wrong in ((q, q[:2], v), (q, q, v[:2]), (q[0], q[0], q[0]), (q[:0], q[:0], v[:0]), (q, q, v.double())):
        with pytest.raises(ShapeError):
            attention.attend(*wrong)
    with pytest.raises(ShapeError):
        attention.weights(q.long(), q.long())


def test_the_cost_of_a_non_causal_variant_refuses_a_causal_mask():
    with pytest.raises(NotCausalError, match="landmarks"):
        ac.get("nystrom").cost(8, 4, causal=True)


def test_repr_is_one_line_that_names_every_setting():
    assert repr(ac.get("deltanet")) == "deltanet(keys='unit', strength=1.0)"
    assert repr(ac.get("softpick")) == "softpick()"
    assert repr(ac.variant("deltanet")) == "Variant('deltanet')"
    assert repr(attention_from_word("fused.local~window~3")) == "fused.local(window=3, columns=0)"


def test_snippet_runs():
    space: dict[str, object] = {}
    for v in ac.all_variants():
        exec(ac.get(v.key).snippet(), space)
        assert space["attention"] == ac.get(v.key)


def test_the_earlier_name_of_model_patching_still_works():
    assert ac.surgery.swapped is ac.model_patching.swapped


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_is_softmax_unless_the_variant_defines_its_own(causal):
    q, k = torch.randn(2, 3, 7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(ac.get("local").reference(q, k, causal=causal), ac.get("softmax").weights(q, k, causal=causal))
    own = ac.get("reformer")
    assert torch.equal(own.reference(q, k, causal=causal), own.variant.reference(q, k, own.params, causal=causal))
    with pytest.raises(NotCrossError):
        own.reference(q, k[..., 1:, :])
    with pytest.raises(ShapeError):
        own.reference(q, k[..., 1:])
