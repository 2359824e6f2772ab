"""Loads models of the Hugging Face hub by name: only safetensors files are read, and a model's own code is never run.

The files are downloaded first and then read locally. A name is never taken as a local folder, so it cannot reach files
outside the hub's cache.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from attention_core import limits
from attention_core.errors import LabError, ModelError
from attention_core.inputs.models.info import NAME, LoadedModel, ModelInfo, unrecordable_error
from attention_core.inputs.models.recorder import RECORDER, model_loading_lock, record

TOKENIZER_FILES = ["*.json", "*.txt", "*.model"]
WEIGHT_FILES = ["model*.safetensors"]


def read(name: str) -> LoadedModel:
    """Load a model from the hub's local cache, downloading it first if necessary.

    Args:
        name: ``owner/name``.

    Raises:
        ModelError: if the name is malformed, or the model is not available or not supported.
    """
    if not limits.current().hub_models:
        raise ModelError("Only the built-in models can be used on this server. Choose one of them.")
    if not NAME.fullmatch(name):
        raise ModelError(
            "{name!r} is not the name of a model. Write it as owner/name, for example distilbert/distilgpt2.",
            name=name[:80],
        )
    folder = _fetch(name, TOKENIZER_FILES)
    with _as_model_error(name):
        _check_kind(name, folder)
        tokenizer = _tokenizer(folder)
    if not list(_fetch(name, WEIGHT_FILES).glob("model*.safetensors")):
        raise ModelError("{name} has no safetensors weights. Choose a model that has them.", name=name)
    with _as_model_error(name):
        model = _model(name, folder)
        layers = record(model, [0, 0])
    if not layers:
        raise unrecordable_error(name)
    heads, _, head_size = layers[0].q.shape
    max_positions = tokenizer.model_max_length
    info = ModelInfo(
        key=name,
        title=name,
        layers=len(layers),
        heads=heads,
        head_size=head_size,
        positions=min(max_positions, getattr(model.config.get_text_config(), "max_position_embeddings", max_positions)),
        causal=layers[0].causal,
        note="The model was downloaded from the Hugging Face hub and not changed.",
        credit=f"{name} on the Hugging Face hub",
        rotary=bool(getattr(model.config.get_text_config(), "rope_parameters", None)),
    )
    return LoadedModel(info, model, tokenizer.backend_tokenizer, tokenizer.unk_token_id)


def _check_kind(name: str, folder: Path) -> None:
    """Raise ModelError for a model that is too large or an encoder-decoder, before its weights are downloaded."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if config.is_encoder_decoder:
        raise ModelError(
            "{name} has an encoder and a decoder. Choose a model with only one of the two, such as BERT or GPT-2.",
            name=name,
        )
    with model_loading_lock(), torch.device("meta"):
        parameters = AutoModel.from_config(config, trust_remote_code=False).num_parameters()
    limit = limits.current().model_parameters
    if parameters > limit:
        raise ModelError(
            "{name} has {count:,} parameters. Choose a model of at most {most:,}.",
            name=name,
            count=parameters,
            most=limit,
        )


def _tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def _model(name: str, folder: Path) -> PreTrainedModel:
    # transformers initialises weights that are missing in the file with random numbers. ``fork_rng`` restores torch's
    # random generator afterwards, so that loading a model changes no other random numbers.
    with model_loading_lock(), torch.random.fork_rng(devices=[]):
        model, report = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation=RECORDER,
            output_loading_info=True,
        )
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise ModelError(
            "The file of the model {name} lacks {count} weights, for example {first}. Choose another model.",
            name=name,
            count=len(missing),
            first=missing[0],
        )
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


def _fetch(name: str, patterns: list[str]) -> Path:
    """Return the folder with a model's files that match the patterns, downloading them if necessary."""
    try:
        try:
            # A request with a short timeout tests the network first, because a download would wait for minutes in a
            # network that drops all packets.
            HfApi().model_info(name, timeout=limits.current().hub_seconds)
            reachable = True
        except (GatedRepoError, RepositoryNotFoundError):
            raise
        except Exception:  # any network failure: the files may already be on this machine
            reachable = False
        folder = snapshot_download(
            name, allow_patterns=patterns, ignore_patterns=["*/*"], local_files_only=not reachable
        )
    except GatedRepoError as error:
        raise ModelError(
            "{name} requires a login. Accept the model's terms on the Hugging Face hub, then run: hf auth login",
            name=name,
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError("There is no model {name} on the Hugging Face hub. Check its spelling.", name=name) from error
    except Exception as error:  # any other failure of a download, which raises errors of many classes
        raise ModelError(
            "{name} is not on this machine and the Hugging Face hub cannot be reached. Check the network or choose a "
            "built-in model.",
            name=name,
        ) from error
    return Path(folder)


@contextmanager
def _as_model_error(name: str) -> Iterator[None]:
    """Turn any error from reading a third-party model into one ModelError, with the cause kept for the log."""
    try:
        yield
    except LabError:
        raise
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise ModelError(
                "{name} needs its own program code. The lab never runs a model's own code. Choose another model.",
                name=name,
            ) from error
        raise ModelError(
            "{name} is not a text model, or it has no fast tokenizer (error: {kind}). Choose a model such as BERT, "
            "GPT-2 or Llama.",
            name=name,
            kind=type(error).__name__,
        ) from error
