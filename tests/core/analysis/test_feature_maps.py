import numpy as np
import pytest

import attention_core as ac
from attention_core.analysis.low_rank.feature_maps import feature_map

X = np.array([-700.0, -2.0, 0.0, 0.5, 3.0])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("elu+1", np.where(X > 0, X + 1, np.exp(X))),
        ("relu", np.maximum(X, 0)),
        ("exp", np.exp(X)),
        ("softmax", np.exp(X) / (np.exp(X) + 3)),
    ],
)
def test_each_feature_map_follows_its_formula(name, wanted):
    np.testing.assert_allclose(feature_map(name, X, size=4), wanted, rtol=1e-12)


def test_every_choice_of_the_variant_has_a_curve():
    [setting] = [s for s in ac.variant("linear").params.settings() if s.name == "feature_map"]
    for name in setting.choices:
        assert feature_map(name, X, size=2).shape == X.shape
