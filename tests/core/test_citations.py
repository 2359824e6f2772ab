"""Tests of every title that the library cites, compared with the title of the publication."""

import pytest

import attention_core as ac
from attention_core.claims import all_claims, trained_claims
from attention_core.variant import Paper

KEXUE = "https://kexue.fm/archives/"
ARXIV = "https://arxiv.org/abs/"
PAPERS = {
    "2512.12602": ("Exact Flow Linear Attention: Exact Solution from Continuous-Time Dynamics", 2025),
    "1409.0473": ("Neural Machine Translation by Jointly Learning to Align and Translate", 2014),
    "1602.02068": ("From Softmax to Sparsemax: A Sparse Model of Attention and Multi-Label Classification", 2016),
    "1706.03762": ("Attention Is All You Need", 2017),
    "1711.07971": ("Non-local Neural Networks", 2017),
    "1801.10198": ("Generating Wikipedia by Summarizing Long Sequences", 2018),
    "1802.05751": ("Image Transformer", 2018),
    "1812.01243": ("Efficient Attention: Attention with Linear Complexities", 2018),
    "1904.10509": ("Generating Long Sequences with Sparse Transformers", 2019),
    "1905.05702": ("Sparse Sequence-to-Sequence Models", 2019),
    "1907.13426": ("Expectation-Maximization Attention Networks for Semantic Segmentation", 2019),
    "1908.07678": ("Asymmetric Non-local Neural Networks for Semantic Segmentation", 2019),
    "1911.02150": ("Fast Transformer Decoding: One Write-Head is All You Need", 2019),
    "1912.11637": ("Explicit Sparse Transformer: Concentrated Attention Through Explicit Selection", 2019),
    "2001.04451": ("Reformer: The Efficient Transformer", 2020),
    "2001.08950": ("PoWER-BERT: Accelerating BERT Inference via Progressive Word-vector Elimination", 2020),
    "2004.05150": ("Longformer: The Long-Document Transformer", 2020),
    "2005.00743": ("Synthesizer: Rethinking Self-Attention in Transformer Models", 2020),
    "2006.03236": ("Funnel-Transformer: Filtering out Sequential Redundancy for Efficient Language Processing", 2020),
    "2006.04768": ("Linformer: Self-Attention with Linear Complexity", 2020),
    "2006.16236": ("Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention", 2020),
    "2007.14062": ("Big Bird: Transformers for Longer Sequences", 2020),
    "2009.14794": ("Rethinking Attention with Performers", 2020),
    "2102.03902": ("Nyströmformer: A Nyström-Based Algorithm for Approximating Self-Attention", 2021),
    "2102.11174": ("Linear Transformers Are Secretly Fast Weight Programmers", 2021),
    "2108.12409": ("Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation", 2021),
    "2202.08791": ("cosFormer: Rethinking Softmax in Attention", 2022),
    "2202.10447": ("Transformer Quality in Linear Time", 2022),
    "2209.11895": ("In-context Learning and Induction Heads", 2022),
    "2210.10340": ("The Devil in Linear Transformer", 2022),
    "2305.13245": ("GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023),
    "2306.14048": ("H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models", 2023),
    "2307.08621": ("Retentive Network: A Successor to Transformer for Large Language Models", 2023),
    "2309.05858": ("Uncovering mesa-optimization algorithms in Transformers", 2023),
    "2309.16354": ("Transformer-VQ: Linear-Time Transformers via Vector Quantization", 2023),
    "2309.17453": ("Efficient Streaming Language Models with Attention Sinks", 2023),
    "2312.06635": ("Gated Linear Attention Transformers with Hardware-Efficient Training", 2023),
    "2401.04658": (
        "Lightning Attention-2: A Free Lunch for Handling Unlimited Sequence Lengths in Large Language Models",
        2024,
    ),
    "2402.04347": ("The Hedgehog & the Porcupine: Expressive Linear Attentions with Softmax Mimicry", 2024),
    "2402.18668": ("Simple linear attention language models balance the recall-throughput tradeoff", 2024),
    "2405.04434": ("DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024),
    "2405.21060": (
        "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality",
        2024,
    ),
    "2406.06484": ("Parallelizing Linear Transformers with the Delta Rule over Sequence Length", 2024),
    "2406.10774": ("Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference", 2024),
    "2406.15786": ("What Matters in Transformers? Not All Attention is Needed", 2024),
    "2407.02490": ("MInference 1.0: Accelerating Pre-filling for Long-Context LLMs via Dynamic Sparse Attention", 2024),
    "2409.04431": ("Theory, Analysis, and Best Practices for Sigmoid Self-Attention", 2024),
    "2410.01104": ("Softmax Is Not Enough (for Sharp Size Generalisation)", 2024),
    "2410.02703": ("Selective Attention Improves Transformer", 2024),
    "2410.05258": ("Differential Transformer", 2024),
    "2410.10254": ("LoLCATs: On Low-Rank Linearizing of Large Language Models", 2024),
    "2411.12537": ("Unlocking State-Tracking in Linear RNNs Through Negative Eigenvalues", 2024),
    "2412.06464": ("Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024),
    "2501.19399": ("Scalable-Softmax Is Superior for Attention", 2025),
    "2502.11089": ("Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse Attention", 2025),
    "2502.13189": ("MoBA: Mixture of Block Attention for Long-Context LLMs", 2025),
    "2503.02130": ("Forgetting Transformer: Softmax Attention with a Forget Gate", 2025),
    "2504.20966": ("Softpick: No Attention Sink, No Massive Activations with Rectified Softmax", 2025),
    "2505.16381": ("PaTH Attention: Position Encoding via Accumulating Householder Transformations", 2025),
    "2506.05233": ("MesaNet: Sequence Modeling by Locally Optimal Test-Time Training", 2025),
    "2508.10925": ("gpt-oss-120b & gpt-oss-20b Model Card", 2025),
    "2510.26692": ("Kimi Linear: An Expressive, Efficient Attention Architecture", 2025),
    "2512.02556": ("DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models", 2025),
    "https://www.evanmiller.org/attention-is-off-by-one.html": ("Attention Is Off By One", 2023),
    # Not on arXiv.
}
"""Full title and year of the first version, by arXiv identifier, or by address for publications not on arXiv."""
ARTICLES = {
    "6853": (
        "Born to save: from standard attention to sparse attention",
        "为节约而生：从标准Attention到稀疏Attention",
        2019,
    ),
    "7546": (
        "Exploring linear attention: must attention have a softmax?",
        "线性Attention的探索：Attention必须有个Softmax吗？",
        2020,
    ),
    "7919": (
        "The even-order Taylor expansions of exp(x) at x = 0 are always positive",
        "exp(x)在x=0处的偶次泰勒展开式总是正的",
        2020,
    ),
    "7921": (
        "Performer: making the complexity of attention linear by random projections",
        "Performer：用随机投影将Attention的复杂度线性化",
        2020,
    ),
    "8180": (
        "Nyströmformer: linearised attention based on matrix decomposition",
        "Nyströmformer：基于矩阵分解的线性化Attention方案",
        2021,
    ),
    "8338": (
        "Upgrading the Transformer 3: from Performer to linear attention",
        "Transformer升级之路：3、从Performer到线性Attention",
        2021,
    ),
    "8601": (
        "Upgrading the Transformer 5: attention as linear attention of infinite dimension",
        "Transformer升级之路：5、作为无限维的线性Attention",
        2021,
    ),
    "8823": ("The scale of attention seen from entropy invariance", "从熵不变性看Attention的Scale操作", 2021),
    "9019": ("I hear attention goes better with softmax", "听说Attention与Softmax更配哦～", 2022),
    "9844": (
        "VQ the key and the Transformer's complexity becomes linear",
        "VQ一下Key，Transformer的复杂度就变成线性了",
        2023,
    ),
    "9889": (
        "Can the attention mechanism really “concentrate its attention”?",
        "注意力机制真的可以“集中注意力”吗？",
        2023,
    ),
    "11033": (
        "A brief history of linear attention: from imitation and innovation to giving back",
        "线性注意力简史：从模仿、创新到反哺",
        2025,
    ),
    "11320": ("Why does linear attention need a short convolution?", "为什么线性注意力要加Short Conv？", 2025),
    "11486": ("Why does DeltaNet need L2 normalisation?", "为什么DeltaNet要加L2 Normalize？", 2025),
    "11563": (
        "The entries of DeltaNet's core inverse matrix always lie in [−1, 1]",
        "DeltaNet的核心逆矩阵的元素总是在[-1, 1]内",
        2026,
    ),
    "11814": ("Taylor expansions of LogSumExp and Softmax", "LogSumExp和Softmax的泰勒展开", 2026),
    "11823": ("Linearising softmax attention into Gated DeltaNet", "将Softmax Attention线性化为Gated DeltaNet", 2026),
}
"""English title, original title and year of each article, by its number at kexue.fm."""


def _citations() -> list[tuple[str, Paper]]:
    variants = [(each.key, paper) for each in ac.all_variants() for paper in (each.source, *each.further)]
    return variants + [(each.key, each.source) for each in (*all_claims(), *trained_claims())]


@pytest.mark.parametrize(("where", "paper"), _citations(), ids=lambda value: getattr(value, "url", value))
def test_titles_are_complete(where: str, paper: Paper) -> None:
    if paper.url.startswith(KEXUE):
        assert (paper.title, paper.original, paper.year) == ARTICLES[paper.url.removeprefix(KEXUE)], where
    else:
        number = paper.url.removeprefix(ARXIV)
        assert number in PAPERS, f"{where} cites {number}: read its title on its own page, and add it to PAPERS"
        assert (paper.title, paper.year) == PAPERS[number], where
        assert not paper.original


def test_heading_names_the_original_title() -> None:
    assert Paper("Title", 2020, "https://example.org").heading == "Title"
    assert Paper("Title", 2020, "https://example.org", "题").heading == "Title / 题"
