"""The peers: implementations of attention by other projects, with which the benchmark compares this library."""

from benchmarks.peers import compiled, gated, hugging_face, libraries, xformers_parts
from benchmarks.peers.adaptor import Peer

ALL_SEEN = {"bucket_size": 256, "rounds": 1}
"""Settings with which a Reformer has two chunks in the check, so that every token attends to all others."""

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("performer-pytorch linear", "performer_pytorch", libraries.performer_linear),
        Peer("performer-pytorch causal linear", "performer_pytorch", libraries.performer_linear_causal),
        Peer("performer-pytorch", "performer_pytorch", libraries.performer),
        Peer("performer-pytorch causal", "performer_pytorch", libraries.performer_causal),
        Peer("performer-pytorch efficient", "performer_pytorch", libraries.performer_efficient),
        Peer("linear-attention-transformer", "linear_attention_transformer", libraries.linear_attention_transformer),
        Peer("nystrom-attention", "nystrom_attention", libraries.nystrom, check_heads=1),
        Peer("linformer", "linformer", libraries.linformer),
        Peer("reformer-pytorch", "reformer_pytorch", libraries.reformer, check_settings=ALL_SEEN),
        Peer("local-attention", "local_attention", libraries.local),
        Peer("taylor-series-linear-attention", "taylor_series_linear_attention", libraries.taylor),
        Peer("taylor-series-linear-attention, symmetric", "taylor_series_linear_attention", libraries.taylor_symmetric),
        Peer("x-transformers", "x_transformers", libraries.top_k),
        Peer("FLASH-pytorch GAU", "flash_pytorch", libraries.gau),
        Peer("FLASH-pytorch", "flash_pytorch", libraries.flash),
        Peer("fla chunked linear", "fla", libraries.fla_linear),
        Peer("fla chunked retention", "fla", libraries.fla_retention),
        Peer("fla chunked scalar decay", "fla", gated.fla_scalar_decay),
        Peer("fla recurrent gla", "fla", gated.fla_gla),
        Peer("fla chunked delta rule", "fla", gated.fla_delta_rule),
        Peer("fla chunked gated delta rule", "fla", gated.fla_gated_delta_rule),
        Peer("fla chunked kda", "fla", gated.fla_kda),
        Peer("transformers Mamba-2", "transformers", gated.mamba_2),
        Peer("transformers Qwen3-Next", "transformers", gated.qwen3_next),
        Peer("transformers Kimi Linear", "transformers", gated.kimi_linear),
        Peer("xformers favor", "xformers", xformers_parts.favor),
        Peer("xformers nystrom", "xformers", xformers_parts.nystrom),
        Peer("xformers orthoformer", "xformers", xformers_parts.orthoformer),
        Peer("xformers linformer", "xformers", xformers_parts.linformer),
        Peer("transformers Nystromformer", "transformers", hugging_face.nystromformer, check_heads=1),
        Peer("transformers Longformer", "transformers", hugging_face.longformer),
        Peer("transformers BigBird", "transformers", hugging_face.bigbird),
        Peer("transformers Reformer", "transformers", hugging_face.reformer, check_settings=ALL_SEEN),
        # ``longest`` is set because the search for empty blocks needs n x n numbers; ``counted=False``, because
        # counting the tensors would disable compilation.
        Peer("flex_attention", "torch", compiled.flex, counted=False, longest=8192, compiles=True),
    )
}
