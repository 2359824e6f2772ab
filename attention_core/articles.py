"""Publications that several variants and claims cite, as ``Paper`` constants.

A title translated from another language comes with the original title.
"""

from attention_core.variant import Paper

STANDARD_TO_SPARSE = Paper(
    "Born to save: from standard attention to sparse attention",
    2019,
    "https://kexue.fm/archives/6853",
    "为节约而生：从标准Attention到稀疏Attention",
    "Su",
)
MUST_IT_HAVE_SOFTMAX = Paper(
    "Exploring linear attention: must attention have a softmax?",
    2020,
    "https://kexue.fm/archives/7546",
    "线性Attention的探索：Attention必须有个Softmax吗？",
    "Su",
)
EVEN_TAYLOR = Paper(
    "The even-order Taylor expansions of exp(x) at x = 0 are always positive",
    2020,
    "https://kexue.fm/archives/7919",
    "exp(x)在x=0处的偶次泰勒展开式总是正的",
    "Su",
)
PERFORMER = Paper(
    "Performer: making the complexity of attention linear by random projections",
    2020,
    "https://kexue.fm/archives/7921",
    "Performer：用随机投影将Attention的复杂度线性化",
    "Su",
)
NYSTROMFORMER = Paper(
    "Nyströmformer: linearised attention based on matrix decomposition",
    2021,
    "https://kexue.fm/archives/8180",
    "Nyströmformer：基于矩阵分解的线性化Attention方案",
    "Su",
)
PERFORMER_TO_LINEAR = Paper(
    "Upgrading the Transformer 3: from Performer to linear attention",
    2021,
    "https://kexue.fm/archives/8338",
    "Transformer升级之路：3、从Performer到线性Attention",
    "Su",
)
INFINITE_DIMENSION = Paper(
    "Upgrading the Transformer 5: attention as linear attention of infinite dimension",
    2021,
    "https://kexue.fm/archives/8601",
    "Transformer升级之路：5、作为无限维的线性Attention",
    "Su",
)
ENTROPY_INVARIANCE = Paper(
    "The scale of attention seen from entropy invariance",
    2021,
    "https://kexue.fm/archives/8823",
    "从熵不变性看Attention的Scale操作",
    "Su",
)
BETTER_WITH_SOFTMAX = Paper(
    "I hear attention goes better with softmax",
    2022,
    "https://kexue.fm/archives/9019",
    "听说Attention与Softmax更配哦～",
    "Su",
)
VQ_KEYS = Paper(
    "VQ the key and the Transformer's complexity becomes linear",
    2023,
    "https://kexue.fm/archives/9844",
    "VQ一下Key，Transformer的复杂度就变成线性了",
    "Su",
)
CONCENTRATE = Paper(
    "Can the attention mechanism really “concentrate its attention”?",
    2023,
    "https://kexue.fm/archives/9889",
    "注意力机制真的可以“集中注意力”吗？",
    "Su",
)
BRIEF_HISTORY = Paper(
    "A brief history of linear attention: from imitation and innovation to giving back",
    2025,
    "https://kexue.fm/archives/11033",
    "线性注意力简史：从模仿、创新到反哺",
    "Su",
)
WHY_SHORT_CONV = Paper(
    "Why does linear attention need a short convolution?",
    2025,
    "https://kexue.fm/archives/11320",
    "为什么线性注意力要加Short Conv？",
    "Su",
)
L2_NORMALISATION = Paper(
    "Why does DeltaNet need L2 normalisation?",
    2025,
    "https://kexue.fm/archives/11486",
    "为什么DeltaNet要加L2 Normalize？",
    "Su",
)
CORE_INVERSE = Paper(
    "The entries of DeltaNet's core inverse matrix always lie in [−1, 1]",
    2026,
    "https://kexue.fm/archives/11563",
    "DeltaNet的核心逆矩阵的元素总是在[-1, 1]内",
    "Su",
)
TAYLOR_EXPANSIONS = Paper(
    "Taylor expansions of LogSumExp and Softmax",
    2026,
    "https://kexue.fm/archives/11814",
    "LogSumExp和Softmax的泰勒展开",
    "Su",
)
SOFTMAX_TO_GDN = Paper(
    "Linearising softmax attention into Gated DeltaNet",
    2026,
    "https://kexue.fm/archives/11823",
    "将Softmax Attention线性化为Gated DeltaNet",
    "Su",
)
SIMPLE_LINEAR = Paper(
    "Simple linear attention language models balance the recall-throughput tradeoff",
    2024,
    "https://arxiv.org/abs/2402.18668",
    authors="Arora et al.",
)
EXACT_FLOW = Paper(
    "Exact Flow Linear Attention: Exact Solution from Continuous-Time Dynamics",
    2025,
    "https://arxiv.org/abs/2512.12602",
)
