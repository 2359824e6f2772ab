"""The Layers view: perplexity and copying over the number of replaced layers, or with one replaced layer at a time."""

from collections.abc import Sequence

from app.words.i18n import _, _n, paragraph
from attention_core.experiments import swap
from attention_core.experiments.swap import FLOORS, CopyRow, SwapRow, SwapTask
from attention_core.experiments.swap.derived import Both, beats_all, first_above, originals, pairs
from attention_core.formatting import number
from pages.model import layer_map, sweep, words
from pages.model.options import Question, called, depth
from pages.model.view import View


def _tasks(question: Question) -> tuple[SwapTask, ...]:
    return swap.layer_tasks(question.text, _with_floors(question), question.options.edge, depth(), live=question.live)


def _lines(question: Question, rows: Sequence[SwapRow]) -> dict[str, list[Both]]:
    return {
        word: found for word in _with_floors(question) if (found := by_layers(rows, word, single=_single(question)))
    }


def _with_floors(question: Question) -> list[str]:
    return list(dict.fromkeys([*question.words, *FLOORS]))


def _single(question: Question) -> bool:
    return question.options.edge == "single"


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    if _single(question):
        layer_map.draw(_lines(question, rows), rows, key=key)
    else:
        sweep.draw(_lines(question, rows), rows, key=key, x_title=_("replaced layers"))


def _notes(question: Question, rows: Sequence[SwapRow]) -> str:
    return paragraph(
        _(
            "{mean} and {random} are baselines whose weights do not depend on the text. A variant that is no "
            "better than these baselines gains nothing from attention.",
            mean=called(FLOORS[0]),
            random=called(FLOORS[1]),
        ),
        "" if _single(question) else _("The baselines are drawn as dashed grey lines."),
        _(
            "Copying is measured on one random sequence of {n} tokens, which the model is given twice in a row.",
            n=swap.PERIOD,
        ),
        words.origin(rows),
    )


def by_layers(rows: Sequence[SwapRow], word: str, *, single: bool) -> list[Both]:
    """Return one variant's numbers by the number of replaced layers or, with ``single``, by the layer."""
    own = [row for row in rows if row.word == word and row.layers]
    return pairs(own, lambda row: float(row.layers[0] if single else len(row.layers)))


def in_words(lines: dict[str, list[Both]], rows: Sequence[SwapRow], edge: str) -> str:
    """Return how many layers each variant can replace before perplexity rises and before copying is lost."""
    read, copy = originals(rows)
    if read is None or copy is None:
        return ""
    sentences, floors = [], [lines[floor] for floor in FLOORS if floor in lines]
    for word, found in lines.items():
        if word not in FLOORS and edge == "single":
            sentences.append(
                paragraph(_most_harmful(called(word), found, read.perplexity, copy), _beaten(found, floors))
            )
        elif word not in FLOORS:
            sentences.append(_several(called(word), found, read.perplexity, copy))
    return "  \n".join(filter(None, sentences))


def _several(name: str, found: Sequence[Both], read: float, copy: CopyRow) -> str:
    reads = first_above(found, "perplexity", words.WORSE * read)
    copies = first_above(found, "copied", (copy.first + copy.copied) / 2)
    return paragraph(
        _(
            "**{name}**: perplexity is at most {worse:g}× that of the original model for every tested number of "
            "replaced layers.",
            name=name,
            worse=words.WORSE,
        )
        if reads is None
        else _n(
            "**{name}**: perplexity exceeds {worse:g}× that of the original model once {n} layer is replaced.",
            "**{name}**: perplexity exceeds {worse:g}× that of the original model once {n} layers are replaced.",
            n=round(reads),
            name=name,
            worse=words.WORSE,
        ),
        _("At least half of the ability to copy remains for every tested number of replaced layers.")
        if copies is None
        else _n(
            "More than half of the ability to copy is lost once {n} layer is replaced.",
            "More than half of the ability to copy is lost once {n} layers are replaced.",
            n=round(copies),
        ),
    )


def _most_harmful(name: str, found: Sequence[Both], read: float, copy: CopyRow) -> str:
    able = [p for p in found if p.perplexity is not None and p.copied is not None]
    if not able:
        return ""
    reads, copies = max(able, key=lambda p: p.perplexity or 0.0), max(able, key=lambda p: p.copied or 0.0)
    return paragraph(
        _(
            "**{name}**: perplexity is highest if layer {layer} is replaced ({after}, compared with {before} "
            "in the original model).",
            name=name,
            layer=f"{reads.x:.0f}",
            before=number(read, 3),
            after=number(reads.perplexity or 0.0, 3),
        ),
        _(
            "The copying loss is highest if layer {layer} is replaced ({after} nats per token, compared with "
            "{before}).",
            layer=f"{copies.x:.0f}",
            before=number(copy.copied, 2),
            after=number(copies.copied or 0.0, 2),
        ),
    )


def _beaten(found: Sequence[Both], floors: Sequence[Sequence[Both]]) -> str:
    """Return in how many layers a variant beats the content-blind baselines; empty if not comparable."""
    reads, copies = (beats_all([found, *floors], name) for name in ("perplexity", "copied"))
    if not floors or not reads or not copies:
        return ""
    return _(
        "Its perplexity is lower than that of the baselines in {reads} of {n} layers, and its copying loss is "
        "lower in {copies} of {m}.",
        reads=sum(reads),
        n=len(reads),
        copies=sum(copies),
        m=len(copies),
    )


LAYERS = View(
    tasks=_tasks,
    describe=lambda question, rows: in_words(_lines(question, rows), rows, question.options.edge),
    draw=_draw,
    notes=_notes,
)
