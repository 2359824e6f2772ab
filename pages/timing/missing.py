"""Sentences of the Timing page about chosen variants that a run did not measure, or measured with other settings."""

from collections.abc import Mapping

from app.words.i18n import _, _n, clauses, enumeration, escape_markdown, paragraph
from app.words.labels import in_words
from attention_core.benchmarking.full_matrix_mask import MaskedFullAttention, attention_from_word
from attention_core.benchmarking.run_records import Run, Skipped
from attention_core.benchmarking.timing import unsupported_reason
from pages.timing.options import TimingOptions, timed_variants
from pages.timing.words import name


def left_out(run: Run, names: Mapping[str, str], *, live: bool) -> list[str]:
    """Return sentences about chosen variants that were not measured at long lengths, one per length and reason.

    A live run was made on this machine in this session.
    """
    missing: dict[tuple[int, str], list[str]] = {}
    without_step: list[str] = []
    for skipped in run.left_out:
        if (key := skipped.variant.partition("~")[0]) in names:
            has_step = run.spec.mode != "decode" or _can_decode(skipped.variant)
            group = missing.setdefault((skipped.n, _reason(run, skipped)), []) if has_step else without_step
            group.append(escape_markdown(in_words(names[key])))
    run_name = _("live") if live else _("recorded")
    no_step = _n(
        "{names} is left out of the {run} run, because this app has no token-by-token form of it.",
        "{names} are left out of the {run} run, because this app has no token-by-token form of them.",
        n=len(without_step),
        run=run_name,
        names=enumeration(without_step),
    )
    return [no_step] * bool(without_step) + [
        _n(
            "{names} is left out of the {run} run. Reason: {reason}",
            "{names} are left out of the {run} run. Reason for each variant: {reason}",
            n=len(skipped_names),
            run=run_name,
            names=enumeration(skipped_names),
            reason=escape_markdown(reason),
        )
        if tokens == run.spec.sizes[0]
        else _n(
            "There is no {run} measurement of {names} at {tokens:,} tokens or more. Reason: {reason}",
            "There are no {run} measurements of {names} at {tokens:,} tokens or more. Reason for each variant: "
            "{reason}",
            n=len(skipped_names),
            names=enumeration(skipped_names),
            run=run_name,
            tokens=tokens,
            reason=escape_markdown(reason),
        )
        for (tokens, reason), skipped_names in missing.items()
    ]


def _can_decode(word: str) -> bool:
    return unsupported_reason(attention_from_word(word), mode="decode", causal=False) is None


def _reason(run: Run, skipped: Skipped) -> str:
    variant = attention_from_word(skipped.variant).variant
    if run.spec.mode != "decode" and run.spec.causal and variant.causal_reason:
        # ``skipped.reason`` comes from the file of the run. It may be an old sentence that has no translation any more,
        # so the reason is taken from the variant instead.
        return _("{name} cannot be causal: {reason}", name=_(variant.title), reason=_(variant.causal_reason))
    return _(skipped.reason, **skipped.fields)


def words_of(run: Run) -> dict[str, list[str]]:
    """Return the settings with which a run measured each variant, as words such as ``local~window~16``, by its key."""
    words: dict[str, list[str]] = {}
    for word in run.spec.variants:
        words.setdefault(word.partition("~")[0], []).append(word)
    return words


def not_measured(run: Run, *, live: bool) -> list[str]:
    """Return the sentence that names the chosen variants that a run did not measure.

    It is returned as a list, which is empty if the run measured all. A live run was made on this machine in this
    session.
    """
    measured = words_of(run)
    missing = [
        escape_markdown(in_words(name(each)))
        for each in timed_variants()
        if each.key not in measured
        and not (isinstance(each, MaskedFullAttention) and TimingOptions.masked.value is None)
    ]
    text = _("The live run did not measure {names}.") if live else _("The recorded run did not measure {names}.")
    return [_(text, names=enumeration(missing))] if missing else []


def other_settings(run: Run, *, live: bool) -> list[str]:
    """Return the sentence about variants that a run measured with other settings than the chosen ones.

    It is returned as a list, which is empty if there are no such variants.
    """
    measured, others = words_of(run), []
    for each in timed_variants():
        if (words := measured.get(each.key)) and each.word not in words:
            own = attention_from_word(words[0])
            # Names have only a variant's main setting. If it is the same, the texts name the settings that differ.
            unnamed = [
                setting.name
                for setting in each.params.settings()
                if name(own) == name(each) and getattr(own.params, setting.name) != getattr(each.params, setting.name)
            ]
            others.append(
                _(
                    "{own} instead of {chosen}",
                    own=f"**{escape_markdown(in_words(name(own, unnamed)))}**",
                    chosen=escape_markdown(in_words(name(each, unnamed))),
                )
            )
    if not others:
        return []
    text = _("The live run measured {names}.") if live else _("The recorded run measured {names}.")
    more = _("To measure your settings, press “Measure on this server”.")
    return [":material/info: " + paragraph(_(text, names=clauses(others)), more)]
