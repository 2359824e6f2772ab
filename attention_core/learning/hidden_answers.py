"""How often a variant's fixed mask hides the answer from the token that asks for it."""

from attention_core import registry
from attention_core.learning.learning_task import IGNORED
from attention_core.learning.tasks import task
from attention_core.learning.train import TrainSpec, evaluation_batch


def hidden_share(spec: TrainSpec, length: int | None = None) -> float:
    """Return the share of questions whose answer is at no token to which the asking token can attend in one layer.

    It is 0 for a task whose answers are not symbols of the sequence, and for a variant without a fixed mask.

    Args:
        spec: the training run, which determines the task, the variant and the sequences.
        length: tokens of a sequence; those of training for None.
    """
    wanted, length = task(spec.model.task), length or spec.length
    mask = registry.from_word(spec.model.word).mask(length, causal=wanted.causal)
    if mask is None or not wanted.shows_answers:
        return 0.0
    batch = evaluation_batch(spec, length, spec.items)
    asked = batch.targets != IGNORED
    is_answer = batch.inputs[:, None, :] == batch.targets[:, :, None]
    return float((~(is_answer & mask).any(-1))[asked].float().mean())
