"""What variants are called."""

import attention_core as ac
from app.naming import label


def test_only_softmax_is_labelled_by_what_sets_it_apart():
    assert label(ac.get("softmax")) == "Softmax"
    assert label(ac.get("softmax", temperature=2.0)) == "Softmax · temperature 2.0"
    assert label(ac.get("performer", features=8, kind="trig")) == "Performer · features 8"
