"""Tests of the comparison of all variants on two devices, with the CPU as both."""

import math

import pytest

import attention_core as ac
from attention_core.attention import Attention
from benchmarks.device_contract import TOLERANCE, errors, main, settings_of


def test_one_device_agrees_with_itself_in_every_setting_and_direction(capsys):
    assert main("cpu", [ac.get("local").variant, ac.get("nystrom").variant]) == 0
    cases = 2 * len(list(settings_of(ac.get("local").variant))) + len(list(settings_of(ac.get("nystrom").variant)))
    assert f"{cases} cases on cpu, 0 errors above their tolerance\noutput: at most 0.0e+00" in capsys.readouterr().out


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize(("off", "status"), [(1.0, 0), (1.01, 1), (math.nan, 1)])
def test_an_error_above_its_tolerance_is_printed(kind, off, status, capsys):
    found = dict.fromkeys(TOLERANCE, 0.0) | {kind: off * TOLERANCE[kind]}
    assert main("cpu", [ac.get("additive").variant], lambda *_args, **_kwargs: found) == status
    assert (f"additive: the {kind} differs by" in capsys.readouterr().out) == bool(status)


def test_a_device_with_other_results_is_reported():
    class Wrong(Attention):
        calls = 0

        def attend(self, q, k, v, *, causal=False):
            Wrong.calls += 1
            return super().attend(q, k, v, causal=causal) * (1 + 1e-3 * (Wrong.calls % 2))

    softmax = ac.get("softmax")
    found = errors(Wrong(softmax.variant, softmax.params), "cpu", causal=True)
    assert found["output"] == pytest.approx(1e-3, rel=0.01)
    assert found["matrix"] == 0
