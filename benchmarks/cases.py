"""The cases that the benchmark measures, each a variant with fixed settings, causal or not.

The list has every registered variant, with the settings that implementations of other projects use, and further forms.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import attention_core as ac
from attention_core.attention import Attention
from attention_core.registry import variant
from attention_core.variant import Variant

HEADS = 8
HEAD_SIZE = 64
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)


@dataclass(frozen=True)
class Case:
    """One variant with fixed settings, causal or not, which the benchmark measures at every size.

    Attributes:
        label: its name in reports, unique.
        key: the variant's key.
        settings: settings that differ from the defaults.
        root: settings whose value is √n.
        causal: whether it is causal; it is then compared with causal full attention.
        peers: names of the peers measured in the same rounds, with equal settings.
        bound: the key in ``bounds.BOUNDS`` of the lower bound of its time; empty for none.
    """

    label: str
    key: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    root: tuple[str, ...] = ()
    causal: bool = False
    peers: tuple[str, ...] = ()
    bound: str = ""

    def settings_at(self, n: int) -> dict[str, Any]:
        """Return the settings at n tokens."""
        return {**self.settings, **dict.fromkeys(self.root, math.isqrt(n))}

    def attention(self, settings: Mapping[str, Any]) -> Attention:
        """Return the variant with these settings."""
        return ac.get(self.key, **settings)


WINDOWED = ("local-attention", "transformers Longformer", "flex_attention")

MAIN = (
    Case("additive", "additive", bound="pairs, reciprocals and their contraction"),
    Case("local ±64", "local", {"window": 64}, peers=WINDOWED, bound="bare windows"),
    Case("atrous 64", "atrous", {"stride": 64}),
    Case("sparse 64/64", "sparse", {"window": 64, "stride": 64}, peers=("flex_attention",)),
    Case(
        "longformer ±64, 1 global", "longformer", {"window": 64, "global_tokens": 1}, peers=("transformers Longformer",)
    ),
    Case(
        "bigbird ±64, 1 global, 3 random",
        "bigbird",
        {"window": 64, "global_tokens": 1, "random_keys": 3},
        bound="bare windows",
    ),
    Case(
        "sink 64, 4 sinks", "sink", {"window": 64, "sinks": 4}, peers=("flex_attention",), bound="bare windows before"
    ),
    Case("topk 32", "topk", {"k": 32}, peers=("x-transformers",), bound="logits, best of an eighth, k values"),
    Case(
        "reformer 64, 4 rounds",
        "reformer",
        {"bucket_size": 64, "rounds": 4},
        peers=("reformer-pytorch", "transformers Reformer"),
    ),
    Case("centred_taylor", "centred_taylor", bound="two products of d²/2 features"),
    Case("retention", "retention", bound="bare chunks, forth and back"),
    Case("linear elu+1", "linear", peers=("performer-pytorch linear",), bound="two products of d features"),
    Case("cosformer", "cosformer", bound="two products of 2 d features"),
    Case("hedgehog", "hedgehog", bound="two products of 2 d features"),
    Case(
        "taylor2",
        "taylor2",
        peers=("taylor-series-linear-attention", "taylor-series-linear-attention, symmetric"),
        bound="two products of d²/2 features",
    ),
    Case(
        "efficient",
        "efficient",
        peers=("linear-attention-transformer", "performer-pytorch efficient"),
        bound="two products of d features",
    ),
    Case(
        "performer 256",
        "performer",
        {"features": 256},
        peers=("performer-pytorch", "xformers favor"),
        bound="projections, exponentials, two products",
    ),
    Case("emanet 64", "emanet", {"bases": 64}),
    Case("linformer 256", "linformer", {"rank": 256}, peers=("linformer", "xformers linformer")),
    Case("landmark 64", "landmark", {"landmarks": 64}, peers=("xformers orthoformer",)),
    Case(
        "nystrom 64",
        "nystrom",
        {"landmarks": 64},
        peers=("nystrom-attention", "transformers Nystromformer", "xformers nystrom"),
    ),
    Case("relu2", "relu2", peers=("FLASH-pytorch GAU",)),
    Case("flash_mixed 256", "flash_mixed", {"chunk": 256}, peers=("FLASH-pytorch",)),
)
"""The main form of each variant. A variant without an entry here is measured with its defaults."""

MORE = (
    Case("local ±128", "local", {"window": 128}, peers=WINDOWED),
    Case("sparse √n/√n", "sparse", root=("window", "stride")),
    Case("sparse fixed 64, 1 summary", "sparse", {"pattern": "fixed", "stride": 64, "summary": 1}),
    Case(
        "bigbird ±48, 64 global, 64 random",
        "bigbird",
        {"window": 48, "global_tokens": 64, "random_keys": 64},
        peers=("transformers BigBird",),
    ),
    Case("linear elu+1 causal", "linear", causal=True, peers=("fla chunked linear", "performer-pytorch causal linear")),
    Case("retention causal", "retention", causal=True, peers=("fla chunked retention",), bound="bare chunks"),
    Case(
        "scalar decay causal",
        "scalar_decay",
        causal=True,
        peers=("fla chunked scalar decay", "transformers Mamba-2"),
        bound="bare chunks",
    ),
    Case("gla causal", "gla", causal=True, peers=("fla recurrent gla",)),
    Case("deltanet causal", "deltanet", causal=True, peers=("fla chunked delta rule",)),
    Case(
        "gated deltanet causal",
        "gated_deltanet",
        causal=True,
        peers=("fla chunked gated delta rule", "transformers Qwen3-Next"),
    ),
    Case("kda causal", "kda", causal=True, peers=("fla chunked kda", "transformers Kimi Linear")),
    Case("performer 256 causal", "performer", {"features": 256}, causal=True, peers=("performer-pytorch causal",)),
    Case("linformer 256 gaussian", "linformer", {"rank": 256, "projection": "gaussian"}, peers=("linformer",)),
)


def cases(only: Iterable[str] = ()) -> list[Case]:
    """Return all cases of the registered variants, by family, or only those of some keys."""
    keys = list(only) or [v.key for v in ac.all_variants()]
    selected = []
    for key in keys:
        variant(key)  # raises an error if the key is unknown
        main = [case for case in MAIN if case.key == key] or [Case(key, key)]
        selected += main + [case for case in MORE if case.key == key]
    return selected


def linear(v: Variant) -> bool:
    """Return whether a variant's time is linear in n."""
    return not any(word in v.complexity for word in ("n²", "n / r", "log"))
