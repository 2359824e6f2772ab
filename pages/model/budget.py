"""The Curves view of the Model page: perplexity and copying over each variant's budget.

The budget is the setting that trades cost for accuracy, such as a window.
"""

from collections.abc import Sequence
from functools import partial

from app.words.finding import Finding, Lines
from app.words.i18n import _, enumeration, paragraph
from app.words.labels import setting_name
from attention_core import registry
from attention_core.experiments import swap
from attention_core.experiments.swap import SwapRow, SwapTask
from attention_core.experiments.swap.derived import CurvePoint, curve_points, original_rows, preserved_from
from attention_core.model_patching import UNIFORM
from pages.model import sweep, words
from pages.model.options import Question
from pages.model.view import View


def _missing(question: Question) -> str:
    if _with_budget(question):
        return ""
    return _("The selected variants have no budget setting. Add a variant with a window, with sinks or with top-k.")


def _with_budget(question: Question) -> list[str]:
    return [word for word in question.words if word != UNIFORM and registry.from_word(word).variant.budget]


def _tasks(question: Question) -> tuple[SwapTask, ...]:
    words, n = _with_budget(question), swap.PERIOD * 2
    return swap.budget_tasks(question.text, words, question.layers, n, live=question.live)


def _lines(question: Question, rows: Sequence[SwapRow]) -> dict[str, list[CurvePoint]]:
    return {word: points for word in _with_budget(question) if (points := by_budget(rows, word))}


def _draw(question: Question, rows: Sequence[SwapRow], key: str) -> None:
    names = _settings(question)
    x_title, mark = enumeration(names), None
    if names == [setting_name("window")]:
        x_title = _("window (tokens)")
        mark = (swap.COPY_DISTANCE, _("distance to copy: {n}", n=swap.COPY_DISTANCE))
    name_of = partial(curve_name, words=_with_budget(question))
    sweep.draw(_lines(question, rows), rows, key=key, x_title=x_title, log_x=True, name_of=name_of, mark=mark)


def _settings(question: Question) -> list[str]:
    """Return the names on screen of the variants' budgets, each once."""
    return list(dict.fromkeys(_setting(word) for word in _with_budget(question)))


def _notes(question: Question, rows: Sequence[SwapRow]) -> str:
    windows = [point.x for points in _lines(question, rows).values() for point in points]
    return paragraph(
        reaching_window(windows) if _settings(question) == [setting_name("window")] else "",
        _(
            "A variant preserves perplexity if its perplexity is at most {same:g} times that of the original model. It "
            "preserves copying if it loses at most {copied:.0%} of the gain from copying.",
            same=words.SAME_RATIO,
            copied=words.PRESERVED_LOSS,
        ),
        _("The gain from copying is the loss of a token on its first occurrence minus the loss on its copy."),
        words.results_origin(rows),
    )


def reaching_window(windows: Sequence[float]) -> str:
    """Return the sentence about the smallest tested window that reaches the token to copy."""
    distance = _("In the copying test, the token to copy is {n} tokens back.", n=swap.COPY_DISTANCE)
    least = min((each for each in windows if each >= swap.COPY_DISTANCE), default=None)
    if least is None:
        return distance
    return paragraph(distance, _("The smallest tested window that reaches it is {least:.0f}.", least=least))


def by_budget(rows: Sequence[SwapRow], word: str) -> list[CurvePoint]:
    """Return one variant's perplexity and copying loss by budget."""
    budgets = {each.word: budget_value(each.word) for each in swap.budget_variants(word, swap.PERIOD * 2)}
    return curve_points([row for row in rows if row.layers], lambda row: budgets.get(row.word))


def _setting(word: str) -> str:
    """Return the name of a variant's budget on screen, such as "window"."""
    setting = registry.from_word(word).variant.budget
    assert setting is not None
    return setting_name(setting.name)


def curve_name(word: str, words: Sequence[str]) -> str:
    """Return the name of a variant's line: the variant, and what distinguishes it from the other lines.

    These are the name of its budget, if ``words`` have different budgets, and its other changed settings, if another of
    the ``words`` has the same variant.
    """
    attention = registry.from_word(word)
    setting = attention.variant.budget
    assert setting is not None
    others = attention.params.changed().keys() - {setting.name}
    values = (f"{setting_name(name)} {_(str(getattr(attention.params, name)))}" for name in sorted(others))
    has_twin = sum(registry.from_word(each).key == attention.key for each in words) > 1
    budgets = {_setting(each) for each in words}
    return " · ".join(
        [_(attention.title), *([setting_name(setting.name)] if len(budgets) > 1 else []), *(values if has_twin else [])]
    )


def budget_value(word: str) -> float:
    """Return the value of a variant's budget, such as 64."""
    attention = registry.from_word(word)
    assert attention.variant.budget is not None
    return float(getattr(attention.params, attention.variant.budget.name))


def describe_budgets(lines: dict[str, list[CurvePoint]], rows: Sequence[SwapRow]) -> Lines:
    """Return the findings about the budgets that preserve perplexity and copying; equal ones share a finding."""
    reading_row, copy_row = original_rows(rows)
    if reading_row is None or copy_row is None:
        return []
    copied_limit = copy_row.copied + words.PRESERVED_LOSS * (copy_row.first - copy_row.copied)
    limits = {"perplexity": words.SAME_RATIO * reading_row.perplexity, "copied": copied_limit}
    names_by_values: dict[tuple[str, ...], list[str]] = {}
    for word, points in lines.items():
        values = (_setting(word), *(_values_within(word, points, *limit) for limit in limits.items()))
        names_by_values.setdefault(values, []).append(curve_name(word, list(lines)))
    return [[_preserved(enumeration(names), reading_row.tokens, *values)] for values, names in names_by_values.items()]


def _values_within(word: str, points: Sequence[CurvePoint], name: str, limit: float) -> str:
    """Return the tested budgets with which a measurement is within a limit, such as ``window ≥ 64``; empty for none.

    Args:
        word: the variant.
        points: its measurements by budget.
        name: the measurement, "perplexity" or "copied" (the copying loss).
        limit: the largest value allowed.
    """
    setting = _setting(word)
    if (least := preserved_from(points, name, limit)) is not None:
        return f"{setting} ≥ {least:g}"
    # A smaller value of some settings, such as a stride, is more exact, so the points are also tried in reverse order.
    if (most := preserved_from(points[::-1], name, limit)) is not None:
        return f"{setting} ≤ {most:g}"
    inner = [f"{point.x:g}" for point in points if getattr(point, name) is not None and getattr(point, name) <= limit]
    return f"{setting} ∈ {{{', '.join(inner)}}}" if inner else ""


def _preserved(names: str, n: int, setting: str, reads: str, copies: str) -> Finding:
    """Return the budgets of variants with which they read a text of ``n`` tokens, and copy, about as well."""
    values = {"names": names, "setting": setting, "n": n, "reads": reads, "copies": copies}
    if not reads and not copies:
        text = _(
            "**With {names}, no tested {setting} is enough to predict or copy text about as well as the original "
            "model.**",
            **values,
        )
        return Finding(text)
    if not reads:
        return Finding(
            _(
                "**With {names}, {copies} is enough to copy repeated text about as well as the original model.**",
                **values,
            ),
            _("With {names}, no tested {setting} is enough to predict this text about as well (perplexity).", **values),
        )
    predicts = _(
        "**With {names}, {reads} is enough to predict this text of {n} tokens about as well as the original model "
        "(perplexity).**",
        **values,
    )
    if not copies:
        copying = _("With {names}, no tested {setting} is enough to copy repeated text about as well.", **values)
        return Finding(predicts, copying)
    if reads == copies:
        text = _(
            "**With {names}, {reads} is enough to predict this text of {n} tokens and to copy repeated text about as "
            "well as the original model.**",
            **values,
        )
        return Finding(text)
    return Finding(predicts, _("To copy repeated text about as well, {names} must have {copies}.", **values))


BUDGET = View(
    tasks=_tasks,
    missing=_missing,
    describe=lambda question, rows: describe_budgets(_lines(question, rows), rows),
    draw=_draw,
    notes=_notes,
)
