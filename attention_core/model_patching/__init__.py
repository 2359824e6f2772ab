"""Replace the attention in chosen layers of a trained model by any variant, without training, and measure the effect.

``swapped`` is the main function; the replacement lasts until its ``with`` block ends.

Example:
    >>> import attention_core as ac
    >>> smol = ac.inputs.models.load("smollm2")
    >>> ids = smol.tokenizer.encode("the cat saw the dog and the cat ran").ids
    >>> with ac.model_patching.swapped(smol.model, {layer: ac.get("local", window=4) for layer in range(30)}):
    ...     losses = ac.model_patching.losses(smol, ids)
    >>> len(losses) == len(ids) - 1, ac.model_patching.perplexity(losses) > 1
    (True, True)

The layers and the replacement can be written as words, as on the command line. ``uniform`` is the mean of the values::

    >>> layers = ac.model_patching.layer_range("10-12", 30)
    >>> with ac.model_patching.swapped(smol.model, dict.fromkeys(layers, ac.model_patching.from_word("uniform"))):
    ...     first, again = ac.model_patching.copy_losses(smol, period=16, seed=0)
    >>> layers, len(first), len(again), len(ac.model_patching.repeated(smol, period=16, seed=0))
    ((10, 11, 12), 15, 15, 32)
    >>> ac.model_patching.unembedding(smol).shape
    torch.Size([49152, 576])

Load a model of your own with ``attn_implementation="attention_lab_record"``, a name that importing this module
registers with transformers::

    model = AutoModel.from_pretrained(path, attn_implementation="attention_lab_record")
    with ac.model_patching.swapped(model, {0: ac.get("local", window=64)}):
        hidden = model(input_ids=ids).last_hidden_state
"""

from attention_core.inputs.models import registration
from attention_core.model_patching.copying import copy_losses, repeated
from attention_core.model_patching.predictions import losses, perplexity, unembedding
from attention_core.model_patching.swap import MEAN, UNIFORM, Attends, from_word, layer_range, swapped

registration.register()

__all__ = [
    "MEAN",
    "UNIFORM",
    "Attends",
    "copy_losses",
    "from_word",
    "layer_range",
    "losses",
    "perplexity",
    "repeated",
    "swapped",
    "unembedding",
]
