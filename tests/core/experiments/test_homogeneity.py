import pytest

from attention_core.experiments import homogeneity
from attention_core.experiments.homogeneity import FACTORS, VARIANTS
from attention_core.inputs import SyntheticSource, SyntheticSpec

SOFTMAX, BY_SUM, BY_LENGTH = VARIANTS


@pytest.fixture(scope="module", params=[False, True], ids=["both ways", "causal"])
def rows(request):
    source = SyntheticSource(SyntheticSpec(n=48, heads=2))
    return [r for t in homogeneity.tasks(source, n=48, causal=request.param) for r in homogeneity.run(t)]


def by_factor(rows, variant, measure, head=0):
    return {row.factor: getattr(row, measure) for row in rows if (row.variant, row.head) == (variant, head)}


def test_relu2_divided_by_its_sum_does_not_depend_on_the_factor(rows):
    entropy, change = by_factor(rows, BY_SUM, "entropy"), by_factor(rows, BY_SUM, "change")
    assert set(entropy) == set(FACTORS)
    assert max(entropy.values()) - min(entropy.values()) < 1e-6
    assert max(change.values()) < 1e-6
    assert {change[factor] for factor in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)} == {0.0}


def test_the_entropy_of_softmax_falls_with_each_larger_factor(rows):
    entropy = by_factor(rows, SOFTMAX, "entropy")
    values = [entropy[factor] for factor in FACTORS]
    assert values == sorted(values, reverse=True)
    assert values[0] - values[-1] > 1
    assert by_factor(rows, SOFTMAX, "change")[4.0] > 0.1


def test_relu2_divided_by_length_keeps_its_entropy_and_grows_quadratically(rows):
    entropy, change = by_factor(rows, BY_LENGTH, "entropy"), by_factor(rows, BY_LENGTH, "change")
    assert max(entropy.values()) - min(entropy.values()) < 1e-6
    # Its entries grow with λ²: the largest change is (λ² - 1) times the largest entry.
    assert change[4.0] / change[2.0] == pytest.approx(15 / 3, rel=1e-4)
    assert change[1.0] == 0


def test_row_sums_grow_with_the_squared_factor_for_relu2_divided_by_length_only(rows):
    for variant, power in ((SOFTMAX, 0), (BY_SUM, 0), (BY_LENGTH, 2)):
        low, high = by_factor(rows, variant, "row_low"), by_factor(rows, variant, "row_high")
        assert low[4.0] == pytest.approx(4.0**power * low[1.0], rel=1e-4)
        assert high[4.0] == pytest.approx(4.0**power * high[1.0], rel=1e-4)
    assert by_factor(rows, SOFTMAX, "row_high")[8.0] == pytest.approx(1, abs=1e-5)
    assert by_factor(rows, BY_LENGTH, "row_low")[1.0] < by_factor(rows, BY_LENGTH, "row_high")[1.0]


def test_a_factor_of_one_changes_nothing(rows):
    assert {row.change for row in rows if row.factor == 1.0} == {0.0}
