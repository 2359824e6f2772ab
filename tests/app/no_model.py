"""Made-up results of the Model page's experiments, for tests of the page that shall not run a language model."""

import math
from operator import attrgetter

from app.jobs import dispatch
from app.lessons import overview
from app.lessons.shipped import lesson_pictures
from attention_core.experiments import continuation, next_token, swap
from attention_core.experiments.continuation import ContinuationRow
from attention_core.experiments.next_token import NextTokenRow
from attention_core.experiments.swap import CopyRow, CopyTask, OutputErrorRow, ReadingRow, ReadingTask
from attention_core.runtime.cache import ByteLRUCache


def made_up(task):
    """Return a made-up row for a task: worse with more replaced layers, and worse for the sink than for the window."""
    depth = len(task.layers) * (0.3 if task.word.startswith("sink") else 1.0)
    if isinstance(task, ReadingTask):
        labels = tuple(task.text.split())[:40]
        losses = tuple(round(1.0 + 0.1 * depth + 0.01 * i, 4) for i in range(len(labels) - 1))
        found = {"labels": labels, "losses": losses} if task.detail else {}
        read = 10 * math.exp(0.1 * depth)
        return ReadingRow(
            word=task.word,
            layers=task.layers,
            tokens=len(labels),
            total=len(labels),
            perplexity=read,
            seconds=1,
            **found,
        )
    if isinstance(task, CopyTask):
        copied = min(1.0 + 0.5 * depth, 11.0) + 0.01 * task.seed
        losses = tuple(copied + 0.01 * i for i in range(task.period - 1)) if task.detail else ()
        return CopyRow(
            word=task.word,
            layers=task.layers,
            seed=task.seed,
            period=task.period,
            first=11.0,
            copied=copied,
            seconds=1,
            losses=losses,
        )
    return OutputErrorRow(word=task.word, layers=task.layers, output=0.01 * len(task.word))


def made_up_next_token(task, *, load=None):
    context = tuple(task.text.split())[: task.token]
    return (
        NextTokenRow(
            token=task.token,
            label=task.text.split()[task.token],
            probabilities=(0.5, 0.002),
            before=((" one", 0.5), (" <b>", 0.1)),
            after=((" two", 0.4), (" $x$", 0.2)),
            layer=task.layers[0],
            head=2,
            moved_weight=0.7,
            context=context,
            row_before=(1 / task.token,) * task.token,
            row_after=(0.0,) * (task.token - 1) + (1.0,),
        ),
    )


def written(task, *, load=None):
    same = (" 1", " <2>", " **3**", "\n")
    other = (" 1", " 4", " $5$", " [6](7)")
    words = other if task.word.startswith("local") else same
    return (
        ContinuationRow(
            word=task.word,
            layers=task.layers,
            seed=task.seed,
            prompt=7,
            ids=tuple(map(len, words)),
            written=words,
            seconds=1.5,
            held=2048,
        ),
    )


def without_a_model(monkeypatch):
    """Replace the Model page's experiments by functions that make up their numbers."""
    # With a new cache, other tests do not read the made-up rows.
    monkeypatch.setattr(dispatch, "_rows", ByteLRUCache(2**24, attrgetter("nbytes")))
    monkeypatch.setattr(swap, "compute", made_up)
    monkeypatch.setattr(swap.records, "recorded_document", lambda: None)
    monkeypatch.setattr(continuation, "recorded_document", lambda: None)
    monkeypatch.setattr(next_token, "run", made_up_next_token)
    monkeypatch.setattr(continuation, "run", written)
    monkeypatch.setattr(overview, "lesson_pictures", lesson_pictures.__wrapped__)
