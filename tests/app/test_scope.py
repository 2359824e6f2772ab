"""Tests that every page's subtitle and files state from which heads, tokens and variants their numbers come."""

import csv
import io

import pytest
from driver import chosen as variants
from driver import open_page

import attention_core as ac
from app.ui import export, export_metadata
from app.ui.input_forms import UPLOAD
from app.ui.scope import Scope
from attention_core.experiments.causal_gradient import COMPARED_TOKENS

TEXT = {
    "text": " ".join(["one two three four five six seven eight nine ten"] * 30) + "."
}  # 303 tokens with [CLS], [SEP]
SYNTHETIC = {"input": "synthetic", "n": 128, "heads": 3}
HEAD, AVERAGE = {"head": 1}, {"head": -1}


def upload():
    qkv = ac.inputs.from_synthetic(ac.inputs.SyntheticSpec(n=24, heads=4))
    source = ac.inputs.UploadSource.of("mine.npz", ac.inputs.to_npz(qkv))
    return {"input": "upload", UPLOAD: source}


@pytest.fixture
def files(monkeypatch):
    """Return the data and metadata of each file that the page offers, by file name."""
    found, now = {}, export_metadata.read_origin

    def download(label, data, file_name, *, kind="secondary", **how):
        found[file_name] = (data, now(label, **how))

    monkeypatch.setattr(export, "download", download)
    return found


def subtitle(at):
    [text] = [c.value for c in at.main.caption if c.value.endswith("](#input)")]
    return text.removeprefix("[").removesuffix("](#input)").split(" · ")


def rows_of(files, name):
    return list(csv.DictReader(io.StringIO(files[name][0]().decode("utf-8-sig"))))


def opened(page, *states):
    at = open_page(page, **{name: value for state in states for name, value in state.items()})
    assert not at.error
    return at


ENTROPY = {"h_longest": 128, "h_seeds": 1, "h_scales": [], "variants": variants("softmax")}


@pytest.mark.parametrize(
    ("tokens", "n", "text"),
    [(1, 1, "1 token"), (303, 303, "303 tokens"), (1024, 1024, "1,024 tokens"), (1024, 4096, "1,024 of 4,096 tokens")],
)
def test_large_numbers_of_tokens_have_separators(tokens, n, text):
    assert Scope(tokens=tokens, n=n).describe_tokens() == text


SWEEPS = {"entropy": "entropy_length", "normalizer": "normalizer_length"}


@pytest.mark.parametrize("view", SWEEPS)
@pytest.mark.parametrize(
    ("state", "heads"),
    [
        (TEXT | HEAD, "median of 12 heads"),
        (TEXT | HEAD | {"h_heads": "one"}, "head 1"),
        (TEXT | AVERAGE | {"h_heads": "one"}, "median of 12 heads"),
        (TEXT | {"h_line": "mean"}, "mean of 12 heads"),
        (SYNTHETIC | HEAD | {"h_seeds": 2}, "median of 3 heads, 2 seeds"),
        (SYNTHETIC | HEAD | {"h_heads": "one", "h_seeds": 2}, "head 1, median of 2 seeds"),
        (upload() | HEAD, "median of 4 heads"),
    ],
)
def test_entropy_names_the_heads_and_lengths_of_its_sweeps(files, view, state, heads):
    at = opened("entropy", ENTROPY, state, {"h_view": view})
    rows, (_data, origin) = rows_of(files, f"{SWEEPS[view]}.csv"), files[f"{SWEEPS[view]}.csv"]
    lengths, measured = {int(row["n"]) for row in rows}, {int(row["head"]) for row in rows}
    text = subtitle(at)
    assert f"{min(lengths):,} to {max(lengths):,} tokens" in text
    assert heads in text
    assert len(measured) == (1 if heads.startswith("head") else int(heads.split()[2]))
    assert origin["head"] == ("head 1" if len(measured) == 1 else f"all {len(measured)} heads")
    assert origin["tokens"] == f"{min(lengths):,} to {max(lengths):,} tokens"


def test_entropy_names_the_longest_length_of_a_synthetic_sequence():
    at = opened("entropy", SYNTHETIC, ENTROPY, {"h_longest": 2048})
    assert "16 to 2,048 tokens" in subtitle(at)


@pytest.mark.parametrize(
    ("state", "tokens"), [(TEXT, "256 of 303 tokens"), (SYNTHETIC, "128 tokens"), (upload(), "24 tokens")]
)
def test_scaled_logits_name_the_first_tokens(files, state, tokens):
    at = opened("entropy", state, {"h_view": "factor"})
    assert tokens in subtitle(at)
    assert files["homogeneity.csv"][1]["tokens"] == tokens
    assert files["homogeneity.csv"][1]["settings"].split() == list(
        dict.fromkeys(row["variant"] for row in rows_of(files, "homogeneity.csv"))
    )


def test_distance_names_all_heads(files):
    at = opened("entropy", TEXT, {"h_view": "distance"})
    assert "median of 12 heads" in subtitle(at)
    assert "303 tokens" in subtitle(at)
    assert files["distance.csv"][1]["head"] == "all 12 heads"


@pytest.mark.parametrize("against", ["cost", "budget", "length"])
@pytest.mark.parametrize(
    ("state", "heads"),
    [
        ({"text": "A short text, read by a model."} | HEAD, "head 1"),
        ({"text": "A short text, read by a model."} | AVERAGE, "median of 12 heads"),
        (SYNTHETIC | {"n": 32} | AVERAGE, "median of 3 heads"),
        (upload() | AVERAGE, "median of 4 heads"),
    ],
)
def test_error_names_the_heads_and_lengths_of_its_points(files, against, state, heads):
    at = opened(
        "error", state, {"against": against, "causal": True, "variants": variants("softmax", "local", "linformer")}
    )
    rows, origin = rows_of(files, "error.csv"), files["error.csv"][1]
    lengths, measured = sorted({int(row["n"]) for row in rows}), {int(row["head"]) for row in rows}
    sentence = subtitle(at)
    tokens = f"{lengths[0]:,} to {lengths[-1]:,} tokens" if len(lengths) > 1 else f"{lengths[0]} tokens"
    assert heads in sentence
    assert tokens in sentence
    assert (len(lengths) > 1) == (against == "length")
    assert origin["head"] == ("head 1" if heads == "head 1" else f"all {len(measured)} heads")
    assert origin["settings"] == "softmax local"  # Linformer cannot be causal, so it is not measured.
    assert origin["causal"] == "yes"


@pytest.mark.parametrize("state", [HEAD, AVERAGE])
def test_masks_names_one_head_or_all(state):
    sentence = subtitle(opened("masks", state, {"text": "Some words.", "variants": variants("softmax", "topk")}))
    assert ("head 1" if state is HEAD else "all 12 heads") in sentence


@pytest.mark.parametrize(
    ("compared", "stack", "named"),
    [("bigbird", ("local",), False), ("topk", ("local",), True), ("bigbird", ("local", "topk"), True)],
)
def test_masks_names_the_model_only_if_a_mask_depends_on_queries_and_keys(compared, stack, named):
    state = {"text": "Some words.", "variants": variants("softmax", compared), "stack": stack}
    model = ["MiniLM-L6", "layer 2", "head 3"]
    assert subtitle(opened("masks", state)) == [*(model if named else []), "5 tokens"]


def test_a_file_of_the_whole_input_names_all_of_it(files):
    opened("matrices", TEXT, HEAD, {"special": False, "more": "download"})
    assert files["matrices.npz"][1]["head"] == "head 1"
    assert files["matrices.npz"][1]["tokens"] == "301 of 303 tokens"
    whole = files["qkv.npz"][1]
    assert (whole["head"], whole["tokens"]) == ("all 12 heads", "303 tokens")
    assert not {"settings", "causal"} & whole.keys()


CAUSAL = {
    "state": ("head 0", "head 1"),
    "generation": ("all 12 heads", "all 12 heads"),
    "fading": ("average of 12 heads", "head 1"),
    "leak": ("all 12 heads", "head 1"),
    "algorithms": ("all 12 heads", "head 1"),
    "gradient": ("all 12 heads", "head 1"),
}


@pytest.mark.parametrize("view", CAUSAL)
@pytest.mark.parametrize("state", [AVERAGE, HEAD])
def test_each_causal_chapter_names_its_heads(files, view, state):
    at = opened("causal", state, {"text": "A few words are enough.", "c_view": view, "variants": variants("softmax")})
    assert CAUSAL[view][state is HEAD] in subtitle(at)
    for _data, origin in files.values():
        assert origin["head"] == CAUSAL[view][state is HEAD]
        assert origin["causal"] == "yes"


@pytest.mark.parametrize(
    ("view", "first"),
    [("generation", "Times on random inputs"), ("algorithms", "Costs on random inputs"), ("fading", "MiniLM-L6")],
)
def test_a_causal_chapter_names_the_input_of_its_charts(view, first):
    assert subtitle(opened("causal", {"text": "A few words are enough.", "c_view": view}))[0] == first


@pytest.mark.parametrize("state", [AVERAGE, HEAD])
def test_leaks_name_the_tokens_that_are_replaced(files, state):
    at = opened("causal", TEXT, state, {"c_view": "leak", "variants": variants("softmax")})
    shown = 1 + max(int(row["t"]) for row in rows_of(files, "leaks.csv"))
    assert f"{shown} of 303 tokens" in subtitle(at)


def test_algorithms_name_the_tokens_that_are_compared():
    long = {"input": "synthetic", "n": COMPARED_TOKENS + 1, "heads": 1, "head": 0}
    assert "512 of 513 tokens" in subtitle(opened("causal", long, {"c_view": "algorithms"}))


def test_a_wide_state_names_the_tokens_that_are_followed(files):
    # With 32 values per head, the second-order Taylor series has 561 features, each with 32 values in the state.
    wide = {"c_view": "state", "c_state": ac.get("taylor2")}
    at = opened("causal", TEXT, wide)
    followed = len(rows_of(files, "state.csv"))
    assert 1 < followed < 303
    assert f"{followed} of 303 tokens" in subtitle(at)
    assert files["state.csv"][1]["settings"] == "taylor2"


def test_fading_names_its_own_curves(files):
    opened("causal", {"c_view": "fading", "text": "A few words are enough."})
    drawn = list(dict.fromkeys(row["variant"] for row in rows_of(files, "fading.csv")))
    assert files["fading.csv"][1]["settings"].split() == drawn


@pytest.mark.parametrize(("state", "head"), [(AVERAGE, "head 0"), (HEAD, "head 1")])
def test_inside_names_its_head_and_variant(files, state, head):
    at = opened("inside", state, {"text": "Some words.", "causal": True, "inside": ac.get("nystrom", landmarks=4)})
    assert head in subtitle(at)
    origin = files["nystrom-inside.npz"][1]
    assert (origin["head"], origin["settings"], origin["causal"]) == (head, "nystrom~landmarks~4", "no")


def test_timing_names_the_timed_variants(files):
    opened("timing", {"variants": variants("softmax", "linear"), "causal": True, "t_mode": "decode"})
    origin = files["timing.csv"][1]
    assert origin["settings"] == "softmax linear"
    assert origin["causal"] == "no"
    assert "head" not in origin


def test_model_names_its_own_variants_text_and_model(files):
    opened("model", {"variants": variants("softmax", "reformer"), "m_text": "story"})
    origin = files["model.csv"][1]
    assert origin["settings"].split() == ["local~window~64", "sink~window~64~sinks~1"]
    assert origin["causal"] == "yes"
    assert origin["model"] == "SmolLM2-135M"
    assert origin["text"]
    assert origin["layers"] == "0-29"


@pytest.mark.parametrize(
    ("scope", "heads", "in_file", "tokens"),
    [
        (Scope(head=3, heads=12, n=16, tokens=16), "head 3", "head 3", "16 tokens"),
        (Scope(heads=1, n=16, tokens=15), "average of 1 head", "average of 1 head", "15 of 16 tokens"),
        (Scope(heads=1, aggregation="median", n=1, tokens=1), "head 0", "head 0", "1 token"),
        (
            Scope(heads=4, aggregation="mean", seeds=3, n=8, tokens=8),
            "mean of 4 heads, 3 seeds",
            "all 4 heads",
            "8 tokens",
        ),
        (
            Scope(head=0, heads=4, aggregation="mean", seeds=3, n=8, tokens=8),
            "head 0, mean of 3 seeds",
            "head 0",
            "8 tokens",
        ),
        (Scope(heads=4, aggregation="each", n=9, tokens=9, shortest=9), "all 4 heads", "all 4 heads", "9 tokens"),
        (Scope(heads=4, n=9, tokens=2000, shortest=4), "average of 4 heads", "average of 4 heads", "4 to 2,000 tokens"),
    ],
)
def test_the_text_of_a_scope(scope, heads, in_file, tokens):
    assert (scope.describe_heads(), scope.describe_file_heads(), scope.describe_tokens()) == (heads, in_file, tokens)
