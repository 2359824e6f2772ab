"""Any other model of the Hugging Face hub by its name: safetensors only, never its own code.

The files are fetched first and then read from this machine alone. A folder of this machine is never taken, so a name
cannot reach outside the hub's cache.
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
from attention_core.inputs.models.info import NAME, Loaded, ModelInfo
from attention_core.inputs.models.recorder import RECORDER, making, record

WORDS = ["*.json", "*.txt", "*.model"]
WEIGHTS = ["model*.safetensors"]


def read(name: str) -> Loaded:
    """Fetch a model from the hub, or take it from the hub's cache on this machine, and load it.

    Args:
        name: ``owner/name``.

    Raises:
        ModelError: if the name is malformed, or the model cannot be had or cannot be read.
    """
    if not limits.current().hub_models:
        raise ModelError("Only the built-in models can be used on this server; choose one of them.")
    if not NAME.fullmatch(name):
        raise ModelError(
            "{name!r} is not the name of a model; write it as owner/name, for example distilbert/distilgpt2.",
            name=name[:80],
        )
    folder = _fetch(name, WORDS)
    with _reading(name):
        _check_kind(name, folder)
        words = _words(folder)
    if not list(_fetch(name, WEIGHTS).glob("model*.safetensors")):
        raise ModelError("{name} has no weights as safetensors; choose a model that has them.", name=name)
    with _reading(name):
        model = _network(name, folder)
        layers = record(model, [0, 0])
    if not layers:
        raise ModelError(
            "{name} does not attend through transformers' attention interface, so its queries and keys cannot be "
            "read; choose a model like BERT, GPT-2 or Llama.",
            name=name,
        )
    heads, _, head_size = layers[0].q.shape
    longest = words.model_max_length
    info = ModelInfo(
        key=name,
        title=name,
        layers=len(layers),
        heads=heads,
        head_size=head_size,
        positions=min(longest, getattr(model.config.get_text_config(), "max_position_embeddings", longest)),
        causal=layers[0].causal,
        note="From the Hugging Face hub, as its author made it.",
        credit=f"{name} on the Hugging Face hub",
        rotary=bool(getattr(model.config.get_text_config(), "rope_parameters", None)),
    )
    return Loaded(info, model, words.backend_tokenizer, words.unk_token_id)


def _check_kind(name: str, folder: Path) -> None:
    """Refuse, before its weights are fetched, a model that is too large or no plain encoder or decoder."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if config.is_encoder_decoder:
        raise ModelError(
            "{name} pairs an encoder with a decoder; choose a model that is one of the two, like BERT or GPT-2.",
            name=name,
        )
    with making(), torch.device("meta"):
        parameters = AutoModel.from_config(config, trust_remote_code=False).num_parameters()
    most = limits.current().model_parameters
    if parameters > most:
        raise ModelError(
            "{name} has {count:,} parameters; choose a model of at most {most:,}.",
            name=name,
            count=parameters,
            most=most,
        )


def _words(folder: Path) -> PreTrainedTokenizerFast:
    words = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    words.backend_tokenizer.no_truncation()
    words.backend_tokenizer.no_padding()
    return words


def _network(name: str, folder: Path) -> PreTrainedModel:
    # Weights that are not in the file are drawn at random: the generator is given back as it was.
    with making(), torch.random.fork_rng(devices=[]):
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
            "The file of {name} lacks {count} of the model's weights, such as {first}; choose another model.",
            name=name,
            count=len(missing),
            first=missing[0],
        )
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


def _fetch(name: str, patterns: list[str]) -> Path:
    """The folder that holds a model's files of these patterns, fetched where they are not here yet."""
    try:
        try:
            # Asked first because a download waits for minutes where a network swallows every packet.
            HfApi().model_info(name, timeout=limits.current().hub_seconds)
            reachable = True
        except (GatedRepoError, RepositoryNotFoundError):
            raise
        except Exception:  # each kind of network failure has its own class; what is already here can still be used
            reachable = False
        folder = snapshot_download(
            name, allow_patterns=patterns, ignore_patterns=["*/*"], local_files_only=not reachable
        )
    except GatedRepoError as error:
        raise ModelError(
            "{name} asks for a login; accept its terms on the hub and run: hf auth login", name=name
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelError("There is no model {name} on the Hugging Face hub; check its spelling.", name=name) from error
    except Exception as error:  # a download can fail in any way, and every way means the same here
        raise ModelError(
            "{name} is not on this machine and the Hugging Face hub cannot be reached; check the network or choose a "
            "built-in model.",
            name=name,
        ) from error
    return Path(folder)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turn whatever a stranger's files do to their readers into one sentence, with the cause kept for the log."""
    try:
        yield
    except LabError:
        raise
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise ModelError(
                "{name} needs program code of its own, which is never run here; choose another model.", name=name
            ) from error
        raise ModelError(
            "{name} cannot be read as a text model with a fast tokenizer ({kind}); choose a model like BERT, GPT-2 or "
            "Llama.",
            name=name,
            kind=type(error).__name__,
        ) from error
