"""The panel in the sidebar where the visitor chooses the input that all pages share, such as a text or a file."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

import attention_core as ac
from app.jobs import cached
from app.matrix_board import thumbnail_board
from app.state.session import SharedOptions
from app.ui import navigation
from app.ui.input_forms import forms, use_model
from app.ui.scope import Scope
from app.words.i18n import N_, _, _n, enumeration, escape_markdown, paragraph, sentence
from attention_core.analysis.matrix.score_dependence import depends_only_on_scores
from attention_core.errors import InputError
from attention_core.inputs import TextSource
from attention_core.inputs.models import e5, smollm2
from attention_core.inputs.positions import ALIBI, OWN
from attention_core.inputs.source import Source, UploadSource
from attention_core.inputs.text import UNKNOWN

AVERAGE = -1
HEADS_ICON = ":material/zoom_in:"


class NoInputError(Exception):
    """Raised to end the drawing of a page without input, after a message that says why."""


@dataclass(frozen=True)
class ChosenInput:
    """The input that the visitor chose, read and ready to use.

    Attributes:
        source: immutable description of where the input comes from.
        qkv: queries, keys and values of the input.
        head: index of the head; None for the average of all heads.
    """

    source: Source
    qkv: ac.inputs.QKV
    head: int | None


def show(*, hides_special: bool, open_heads: Callable[[], None] | None = None) -> None:
    """Draw the widgets with which the visitor chooses the input, its layer and its head.

    Args:
        hides_special: whether the page leaves out the tokenizer's own tokens if the visitor chooses so; other pages
            always use all tokens.
        open_heads: callback that opens the large view of all heads on this page; None to link to the page with that
            view.
    """
    forms_by_key = forms()
    form = forms_by_key[SharedOptions.input.draw(format_func=lambda key: forms_by_key[key].title)]
    form.draw()
    SharedOptions.positions.draw(on_change=_match_causal)
    try:
        if (source := form.source(SharedOptions.current())) is None:
            return
        if SharedOptions.input.value == "text" or SharedOptions.model.value in [
            info.key for info in ac.inputs.models.BUILT_IN
        ]:
            # A chosen layer that the model does not have is reset. Counting the layers of a model that is not built in
            # loads the model. This is done only for a text, because other kinds of input do not need the model.
            SharedOptions.layer.restrict_to(range(ac.inputs.models.layer_count(SharedOptions.model.value)))
        # ``restrict_to`` may have reset the layer, so the source is made again.
        qkv = cached.record(source := form.source(SharedOptions.current()) or source)
    except ac.LabError:
        return  # The page reads the same input and shows the error; the sidebar has no room for a sentence.
    hides_tokens = hides_special and not SharedOptions.special.value
    _draw_heads(source, qkv, special=not hides_tokens, open_heads=open_heads)
    shown = len(shown_tokens(qkv)) if hides_tokens else qkv.n
    st.caption(describe_size(qkv, shown=shown))
    for notice in qkv.notices:
        st.info(escape_markdown(sentence(notice)), icon=":material/info:")
    if isinstance(source, TextSource) and UNKNOWN in qkv.tokens:
        _offer_other_model(source.model)


def _offer_other_model(current_model: str) -> None:
    """Draw a button that switches to another model, for a text with unknown tokens: the encoder E5 if installed."""
    for model in (e5, smollm2):
        if model.INFO.key != current_model and model.WEIGHTS.are_installed():
            title = model.INFO.title
            st.button(_("Read the text with {title}", title=title), on_click=use_model, args=(model.INFO.key,))
            return


def describe_size(qkv: ac.inputs.QKV, *, shown: int) -> str:
    """Return text on the size of the input and its hidden tokens; ``shown`` is the number of tokens shown."""
    heads = _n("{n} head × {d} dims", "{n} heads × {d} dims", n=qkv.heads, d=qkv.q.shape[-1])
    if qkv.crosses:
        return f"{_n('{n} query', '{n} queries', n=qkv.n)} · {_n('{n} key', '{n} keys', n=qkv.m)} · {heads}"
    if shown == qkv.n:
        return f"{_n('{n} token', '{n} tokens', n=shown)} · {heads}"
    visible = _n("{n} token shown", "{n} tokens shown", n=shown)
    hidden = _n("{n} special token hidden, rows rescaled", "{n} special tokens hidden, rows rescaled", n=qkv.n - shown)
    return f"{visible} · {hidden} · {heads}"


def scope(chosen: ChosenInput, *, hides_special: bool = False) -> Scope:
    """Return the scope of numbers that come from the chosen head, or the average of all heads, on the whole input.

    Args:
        chosen: the input.
        hides_special: whether the page leaves out the tokenizer's own tokens if the visitor chooses so.
    """
    qkv = chosen.qkv
    if qkv.crosses:
        return Scope(head=chosen.head, heads=qkv.heads, n=qkv.m, tokens=qkv.m, queries=qkv.n)
    tokens = len(shown_tokens(qkv)) if hides_special and not SharedOptions.special.value else qkv.n
    return Scope(head=chosen.head, heads=qkv.heads, n=qkv.n, tokens=tokens)


def headline(source: Source, scope: Scope) -> str | None:
    """Return a one-line description of a view as Markdown: ``MiniLM-L6 · layer 2 · head 3 · 54 of 56 tokens``.

    Return None if the view does not depend on the input.
    """
    return (
        None
        if scope.subtitle is None
        else scope.subtitle
        or " · ".join(
            [
                forms()[source.key].name(),
                *([_("layer {layer}", layer=SharedOptions.layer.value)] if source.layer_count > 1 else []),
                *([scope.describe_heads()] if scope.heads else []),
                scope.describe_tokens(),
                *describe_positions(source),
            ]
        )
    )


def describe_positions(source: Source) -> list[str]:
    """Return one phrase on how the chosen position encoding changes queries and keys; an empty list if it does not."""
    if source.positions == ALIBI:
        return [_("with ALiBi")]
    if (source.rope is None) == (source.own_rope is None):
        return []
    return [_("without RoPE") if source.rope is None else _("with RoPE")]


def shown_tokens(qkv: ac.inputs.QKV) -> tuple[str, ...]:
    """Return the tokens without those that the tokenizer added, such as [CLS]; all tokens if it added every one."""
    return tuple(t for t, special in zip(qkv.names, qkv.special, strict=True) if not special) or qkv.names


def require_input(
    *, switch: bool = True, uses_unmasked: bool = False, cross_reason: str = "", kind: str = ""
) -> ChosenInput:
    """Return the chosen input, or show a message and raise an error that ends the drawing of the page.

    Args:
        switch: whether the page follows the causal switch. If the switch is off for a causal model, such a page also
            says how much attention goes to later tokens, which the model never sees.
        uses_unmasked: whether the page also computes attention without the causal mask while the switch is on.
        cross_reason: why the page cannot use keys of another sequence, translated; empty if it can.
        kind: as in ``read_input``.

    Raises:
        NoInputError: after the message. The app catches the error and then writes the address bar. After
            ``st.stop``, the app could not write it.
    """
    form = forms()[kind or SharedOptions.input.value]
    try:
        chosen = read_input(SharedOptions.current(), kind)
        if chosen is None:
            if form.make:
                form.make()
            else:
                st.info(form.missing, icon=":material/upload:")
            raise NoInputError
        if chosen.qkv.crosses:
            _check_cross_input(cross_reason)
        if chosen.source.positions == ALIBI:
            _check_alibi(uses_unmasked=uses_unmasked, is_causal=SharedOptions.causal.value or not switch)
    except ac.LabError as error:
        st.error(escape_markdown(sentence(error)), icon=":material/error:")
        raise NoInputError from error
    qkv = chosen.qkv
    if switch and qkv.causal and not SharedOptions.causal.value and qkv.n > 1:
        share = cached.future_share(chosen.source, head=chosen.head)
        st.caption(f":material/visibility: {future_share_message(share, chosen.head)}")
    if chosen.source.positions == ALIBI:
        variants = [each for each in SharedOptions.variants.value if not each.variant.causal_reason]
        names = [[_(each.title) for each in variants if depends_only_on_scores(each) == x] for x in (True, False)]
        st.caption(describe_alibi(*names))
    return chosen


def has_cross_input() -> bool:
    """Return whether the chosen input has keys of another sequence, which only an upload can have."""
    if SharedOptions.input.value != UploadSource.key:
        return False
    with suppress(ac.LabError):  # The page reads the same input and shows the error.
        chosen = read_input(SharedOptions.current())
        return chosen is not None and chosen.qkv.crosses
    return False


def _check_cross_input(cross_reason: str) -> None:
    if cross_reason:
        text = N_(
            "The keys and the queries of this file come from different sequences. {reason} Choose another input in the "
            "panel on the left."
        )
        raise InputError(text, reason=cross_reason)
    if SharedOptions.causal.value:
        raise InputError(
            N_(
                "The keys and the queries of this file come from different sequences, so no key comes before or after "
                "a query. Switch Causal off."
            )
        )


def _check_alibi(*, uses_unmasked: bool, is_causal: bool) -> None:
    if uses_unmasked:
        raise InputError(
            N_(
                "ALiBi needs a causal mask, but this page also uses variants without a mask. Choose other positions in "
                "the panel on the left."
            )
        )
    if not is_causal:
        raise InputError(
            N_("ALiBi needs a causal mask. Switch Causal on, or choose other positions in the panel on the left.")
        )


def describe_alibi(exact: Sequence[str], inexact: Sequence[str]) -> str:
    """Return text that says what ALiBi does to queries and keys, and for which variants it is exact.

    Args:
        exact: names of the variants whose weights depend only on ``q·k / √d``.
        inexact: names of the other variants.
    """
    return paragraph(
        _(
            "**ALiBi** subtracts 2^(−8h/H) × distance from each score q·k / √d. Here, h is the number of the head, "
            "from 1 to H, and distance is measured in tokens. The subtraction is done by two additional coordinates of "
            "queries and keys."
        ),
        _(
            "ALiBi is exact for variants whose weights depend only on the scores q·k / √d: {names}.",
            names=enumeration(exact),
        )
        if exact
        else "",
        _(
            "ALiBi is not exact for variants in which the two coordinates that it adds to queries and keys also "
            "affect features, norms or gates: {names}.",
            names=enumeration(inexact),
        )
        if inexact
        else "",
    )


def read_input(options: SharedOptions, kind: str = "") -> ChosenInput | None:
    """Return the input for some options; None if it is a file that has not been uploaded.

    Args:
        options: the shared options.
        kind: the kind of input that the page shows, without the chosen position encoding; empty for the visitor's
            choice of both.

    Raises:
        LabError: if the input cannot be read.
    """
    source = forms()[kind or options.input].source(options)
    if source is None:
        return None
    if kind:
        source = replace(source, positions=OWN)
    qkv = cached.record(source)
    return ChosenInput(source, qkv, None if options.head == AVERAGE else min(options.head, qkv.heads - 1))


def is_ready() -> bool:
    """Return whether the chosen input needs no further computation."""
    form = forms()[SharedOptions.input.value]
    try:
        return form.make is None or form.source(SharedOptions.current()) is not None
    except ac.LabError:
        return True  # The page reads the same input and shows the error.


def future_share_message(share: float, head: int | None) -> str:
    """Return a message for a causal model without its mask: which share of the attention goes to later tokens.

    Args:
        share: the share, from 0 to 1.
        head: index of the head; None for the average over heads.
    """
    return _(
        "This model masks later tokens, but **Causal** is switched off. Later tokens now receive {share:.0%} of the "
        "softmax weight {where}. Switch **Causal** on to hide them, as the model does.",
        share=share,
        where=_("on average over heads") if head is None else _("in head {head}", head=head),
    )


def _draw_heads(source: Source, qkv: ac.inputs.QKV, *, special: bool, open_heads: Callable[[], None] | None) -> None:
    """Draw the pickers for layer and head, as lists and as pictures."""
    draw_layer_and_head(source, qkv)
    selected = (SharedOptions.layer.value if source.layer_count > 1 else 0, SharedOptions.head.value)
    causal = (SharedOptions.causal.value or source.positions == ALIBI) and not qkv.crosses
    # The pictures show all layers. With layer 0 as the key, they are cached once, not once per chosen layer.
    pictures = cached.head_miniatures(source.at_layer(0), causal, special)
    thumbnail_board(pictures, selected=selected, key="heads.board", on_choose=select_head)
    label = _("All heads")
    if open_heads:
        st.button(label, icon=HEADS_ICON, type="tertiary", key="heads.open", on_click=open_heads)
    else:
        navigation.link("matrices", label, icon=HEADS_ICON, fields={"more": ["heads"]})


def draw_layer_and_head(source: Source, qkv: ac.inputs.QKV) -> None:
    """Draw the lists of layers and heads."""
    SharedOptions.head.restrict_to(range(AVERAGE, qkv.heads))
    layers = source.layer_count
    if layers > 1:
        SharedOptions.layer.set(min(SharedOptions.layer.value, layers - 1))
    SharedOptions.head.set(min(SharedOptions.head.value, qkv.heads - 1))
    columns = iter(st.columns(2))
    if layers > 1:
        with next(columns):
            SharedOptions.layer.draw(options=range(layers))
    with next(columns):
        SharedOptions.head.draw(
            options=range(AVERAGE, qkv.heads), format_func=lambda head: _("average") if head == AVERAGE else str(head)
        )


def select_head(choice: tuple[int, int]) -> None:
    """Select another layer and head."""
    layer, head = choice
    SharedOptions.head.set(head)
    with suppress(ac.LabError):  # The next run draws the page, which shows this error.
        source = forms()[SharedOptions.input.value].source(SharedOptions.current())
        # Synthetic data and uploads have a single layer. The layer that was chosen for a text is then left unchanged.
        if source and source.layer_count > 1:
            SharedOptions.layer.set(layer)


def _match_causal() -> None:
    if SharedOptions.positions.value == ALIBI:
        SharedOptions.causal.set(True)  # ALiBi is only defined with a causal mask.
