"""Sentences of the Learn page about a training run: sizes of models and batches, learning rates and duration."""

import math
from collections.abc import Sequence

import attention_core as ac
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph
from app.words.labels import label
from attention_core.learning.model import ModelSpec
from attention_core.learning.rates import GRID, is_tuned, tuned_rate
from attention_core.learning.tasks import task as task_of
from attention_core.learning.train import TrainSpec
from pages.learn.outcomes import Outcome


def model_and_batches(spec: TrainSpec) -> str:
    """Return the sentences about the size of a model and the sequences of a training step."""
    task = task_of(spec.model.task)
    return paragraph(
        _(
            "Each model has {layers}, {heads} of size {size} per layer, and no feed-forward part.",
            layers=_n("{n} layer", "{n} layers", n=spec.model.layers),
            heads=_n("{n} head", "{n} heads", n=spec.model.heads),
            size=spec.model.width // spec.model.heads,
        ),
        _(task.training, batch=spec.batch, length=spec.length, examples=task.examples),
    )


def trained_tensors(models: Sequence[ModelSpec]) -> str:
    """Return the sentence that lists the trained parameters, and the variants that have them."""
    names: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        for each in model.trainable:
            name = escape_markdown(label(ac.registry.from_word(model.word)))
            if name not in (tensors := names.setdefault(each.title, [])):
                tensors.append(name)
    if not names:
        return _(
            "The projections to queries, keys and values are trained. The settings of the variants are not trained."
        )
    return _(
        "The projections to queries, keys and values are trained, and so are {tensors}. The other settings "
        "of the variants are not trained.",
        tensors=enumeration(
            _("{title} ({names})", title=_(title), names=enumeration(tensors)) for title, tensors in names.items()
        ),
    )


def learning_rates(results: Sequence[Outcome]) -> str:
    """Return the sentences about the learning rate of each variant, and how it was chosen."""
    tuned: list[str] = []
    transferred: list[str] = []
    default: list[str] = []
    for outcome in results:
        model, rate = outcome.rows[0].spec.model, outcome.rows[0].spec.rate
        text = f"{escape_markdown(outcome.name)} {rate:g}"
        (tuned if is_tuned(model) else default if tuned_rate(model) is None else transferred).append(text)
    return paragraph(
        _(
            "For each variant, the learning rates {grid} were tried in runs with another seed. The one with the "
            "lowest loss is used: {rates}.",
            grid=enumeration(f"{rate:g}" for rate in GRID),
            rates=enumeration(tuned),
        )
        if tuned
        else "",
        _("These rates were tuned with the default model: {rates}.", rates=enumeration(transferred))
        if transferred
        else "",
        _("Learning rates that were not tuned: {rates}.", rates=enumeration(default)) if default else "",
        _("Recorded runs and runs on this server use the same learning rates."),
    )


def duration(seconds: Sequence[float | None]) -> str:
    """Return the text about how long the training of some models takes.

    Args:
        seconds: CPU seconds of each model; None if they are not known.
    """
    known_seconds = [each for each in seconds if each is not None]
    values = {"seconds": math.ceil(sum(known_seconds)), "count": len(known_seconds)}
    if not known_seconds:
        return _n(
            "This run trains {n} model. No run of this variant is recorded, so its training time is not known.",
            "This run trains {n} models. No runs of these variants are recorded, so their training time is not known.",
            n=len(seconds),
        )
    if len(known_seconds) < len(seconds):
        text = N_(
            "This run trains {n} models. The training time is known from recorded runs for {count} of them: about "
            "{seconds} CPU seconds in total."
        )
        return _(text, n=len(seconds), **values)
    return _n(
        "This run trains {n} model. The training time, estimated from recorded runs, is about {seconds} CPU seconds.",
        "This run trains {n} models. The training time, estimated from recorded runs, is about {seconds} CPU seconds "
        "in total.",
        n=len(seconds),
        **values,
    )
