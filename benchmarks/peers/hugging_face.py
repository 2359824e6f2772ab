"""Peers from transformers: the attention modules of four models, with the given q, k, v instead of projections.

A peer is an implementation by another project. All of these take tokens ``[B, n, H d]``, read heads as strided views
and return a packed copy, whose time is included.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers.adaptor import Built, CopyingProjection, FixedProjection, Settings, explicit, packed


def nystromformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Nystromformer. Its inverse starts from one maximum over all heads, so it equals ours only with one head."""
    from transformers import NystromformerConfig
    from transformers.models.nystromformer.modeling_nystromformer import NystromformerSelfAttention

    heads, n, d = q.shape[1:]
    config = NystromformerConfig(
        hidden_size=heads * d, num_attention_heads=heads, num_landmarks=p["landmarks"], segment_means_seq_len=n
    )
    module = NystromformerSelfAttention(config).eval()
    module.conv_kernel_size = None
    module.query, module.key, module.value = (FixedProjection(packed(x)) for x in (q, k, v))
    x = packed(q)
    return Built(lambda: module(x))


def longformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Longformer. It scales queries in place, so they are copied; global tokens have their own q, k, v."""
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    (batch, heads, n, d), tokens = q.shape, p.get("global_tokens", 0)
    config = LongformerConfig(
        hidden_size=heads * d, num_attention_heads=heads, attention_window=[2 * p["window"]], num_hidden_layers=1
    )
    module = LongformerSelfAttention(config, 0).eval()
    by_token = [packed(x).transpose(0, 1).contiguous() for x in (q, k, v)]
    module.query, module.key, module.value = (
        CopyingProjection(by_token[0]),
        FixedProjection(by_token[1]),
        FixedProjection(by_token[2]),
    )
    module.query_global = CopyingProjection(by_token[0][:tokens])
    module.key_global, module.value_global = FixedProjection(by_token[1]), FixedProjection(by_token[2])
    x = packed(q)
    mask = torch.zeros(batch, n)
    mask[:, :tokens] = 1

    def call() -> Tensor:
        return module(
            x, attention_mask=mask, is_index_masked=mask < 0, is_index_global_attn=mask > 0, is_global_attn=tokens > 0
        )[0]

    return Built(call)


def bigbird(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build BigBird: each block attends to three around it, the first, the last and random blocks. Sizes are as ours.

    The first and last block attend to all blocks. The module draws its own random keys, so its output cannot equal
    ours; softmax over the pairs that it reports is expected. In evaluation mode it would draw no keys and count the
    first block several times. It therefore stays in training mode, which changes nothing else in this module.
    """
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel

    (batch, heads, n, d), block = q.shape, p["global_tokens"] // 2
    config = BigBirdConfig(
        hidden_size=heads * d,
        num_attention_heads=heads,
        block_size=block,
        num_random_blocks=p["random_keys"] // block,
        max_position_embeddings=n,
    )
    module = BigBirdBlockSparseAttention(config, seed=0)
    module.query, module.key, module.value = (FixedProjection(packed(x)) for x in (q, k, v))
    x = packed(q)
    blocked, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(batch, n), block)

    def call() -> tuple[Tensor, Tensor]:
        return module(x, band, rows, columns, blocked, blocked)

    def expected() -> Tensor:
        return explicit(q @ k.mT * d**-0.5, v, call()[1] > 0)

    return Built(call, expected)


def reformer(q: Tensor, k: Tensor, v: Tensor, p: Settings) -> Built:
    """Build Reformer, which counts a pair once for each round that finds it.

    If one chunk holds all tokens, it equals full attention with shared queries and keys.
    """
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import LSHSelfAttention

    heads, n, d = q.shape[1:]
    config = ReformerConfig(
        hidden_size=heads * d,
        num_attention_heads=heads,
        attention_head_size=d,
        lsh_attn_chunk_length=p["bucket_size"],
        num_hashes=p["rounds"],
        lsh_num_chunks_before=1,
        lsh_num_chunks_after=0,
        is_decoder=False,
        max_position_embeddings=n,
        num_buckets=None,
    )
    module = LSHSelfAttention(config, 0).eval()
    module.query_key, module.value = FixedProjection(packed(q)), FixedProjection(packed(v))
    x = packed(q)

    def expected() -> Tensor:
        return explicit(q @ F.normalize(q, dim=-1).mT, v, ~torch.eye(n, dtype=torch.bool))

    return Built(lambda: module(x).hidden_states, expected)
