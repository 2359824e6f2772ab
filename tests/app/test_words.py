"""Tests that all texts on screen are in the message catalogue, and that words typed by visitors stay unchanged."""

import gettext
import io
import re
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import attention_core as ac
from app.words import extraction, i18n
from attention_core import claims
from attention_core.claims.conditions import MEASURED_UNMASKED
from attention_core.errors import InputError
from attention_core.inputs import SyntheticSource, SyntheticSpec, UploadSource, from_synthetic, to_npz
from attention_core.inputs.positions import ALREADY_APPLIED, NOTHING_TO_REMOVE
from attention_core.metrics import Passport, Ranks

ROOT = Path(__file__).parent.parent.parent


def core_words():
    return {
        message
        for path in (ROOT / "attention_core").rglob("*.py")
        for _, _, message, _ in extraction.core(path.open("rb"), (), (), {})
    }


def test_the_catalogue_has_the_messages_of_the_core():
    words = core_words()
    for variant in ac.all_variants():
        assert {variant.title, variant.summary} <= words
        assert variant.reference is None or variant.reference_name in words
        assert variant.causal_reason is None or variant.causal_reason in words
        for setting in variant.params.settings():
            names = [name.replace("_", " ") for name in (setting.name, *setting.choices)]
            assert {setting.help, *((i18n.SETTING, name) for name in names)} <= words
    assert any("The text is empty" in message for message in words)


def test_the_catalogue_has_the_texts_of_claims():
    words = core_words()
    assert {MEASURED_UNMASKED, *(verdict.value for verdict in claims.Verdict)} <= words
    for claim in (*claims.all_claims(), *claims.trained_claims()):
        assert {claim.statement, claim.experiment, claim.rule, claim.finding, claim.details} - {""} <= words
        assert {claim.theorem} - {""} <= words
        assert {each.label for each in claim.quantities} <= words
        assert {each.unit for each in claim.quantities} - {""} <= words
        assert {claim.figure.x.title, claim.figure.y.title} <= words


def test_the_catalogue_has_the_texts_of_sources():
    source = SyntheticSource(SyntheticSpec(n=4, d=4, heads=1))
    assert {source.rope_notice().template, source.lengths_notice(source.load()).template} <= core_words()
    assert {ALREADY_APPLIED.template, NOTHING_TO_REMOVE.template} <= core_words()


def test_the_catalogue_has_the_columns_of_a_passport():
    assert {column.label for kind in (Ranks, Passport) for column in kind.columns().values()} <= core_words()


def test_the_catalogue_has_the_names_of_lines_in_claims_figures():
    words = core_words()
    source = UploadSource.of("arrays.npz", to_npz(from_synthetic(SyntheticSpec(n=256, heads=1))))
    for task in claims.tasks(source):
        claim = claims.claim(task.key)
        # Claims with a language model have lines with names of variants. Another claim needs an image.
        if claim.uses_decoder or claim.uses_image:
            continue
        figure = claim.figure
        [outcome] = claims.run(task)
        assert not outcome.untestable_reason
        for row in outcome.rows:
            named = getattr(row, figure.by), getattr(row, figure.x.attribute)
            assert {word for word in named if isinstance(word, str)} <= words


def test_the_catalogue_has_the_messages_of_the_pages():
    for folder, said in (("pages", "Gallery"), ("app", "The link contains values that this page does not accept.")):
        found = extract_from_dir(str(ROOT / folder), [("**.py", extraction.screen)])
        assert said in {message for _, _, message, _, _ in found}


def test_plurals_and_marked_words_are_extracted():
    text = b'_("a")\n_n("{n} token", "{n} tokens", n=n)\nN_("later")\nother("no")\nf"{_(\'b\' if x else \'c\')}"\n'
    text += b'_(C_("d", "e"))\n'
    found = [(function, message) for _, function, message, _ in extraction.screen(io.BytesIO(text), {}, (), {})]
    assert found == [
        ("gettext", "a"),
        ("ngettext", ("{n} token", "{n} tokens")),
        ("gettext", "later"),
        ("pgettext", ("d", "e")),
        *(("gettext", word) for word in ("b", "c")),
    ]


@pytest.mark.parametrize(("n", "words"), [(0, "0 tokens of x"), (1, "1 token of x"), (2, "2 tokens of x")])
def test_one_and_several_have_different_messages(n, words):
    assert i18n._n("{n} token of {name}", "{n} tokens of {name}", n=n, name="x") == words


def test_a_paragraph_omits_empty_sentences():
    assert i18n.paragraph("One.", "", "Two.") == "One. Two."
    assert i18n.paragraph("", "") == ""


def test_a_catalogue_changes_the_words_and_not_the_values(tmp_path, monkeypatch):
    folder = tmp_path / "xx" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    po = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\nmsgid "{n} tokens"\nmsgstr "Zeichen: {n}"\n'
    (folder / "messages.po").write_text(po)
    with (folder / "messages.po").open("rb") as source, (folder / "messages.mo").open("wb") as target:
        write_mo(target, read_po(source))
    known = gettext.translation("messages", tmp_path, languages=["xx"])
    monkeypatch.setattr(i18n, "catalogue", lambda language: known)
    assert i18n._("{n} tokens", n=7) == "Zeichen: 7"
    assert i18n.sentence(InputError("{n} tokens", n=3)) == "Zeichen: 3"
    assert i18n._("not in the catalogue") == "not in the catalogue"
    assert i18n._("") == ""


def test_typed_words_are_not_markup():
    assert i18n.escape_markdown("**a** <b> :red[x] $y$ `c` [l](u)") == (
        r"\*\*a\*\* \<b\> \:red\[x\] \$y\$ \`c\` \[l\](u)"
    )


@pytest.mark.parametrize("words", ["me@example.com", "www.example.com", "WWW.x.org", "https://x.org"])
def test_a_typed_address_is_broken_by_an_invisible_character(words):
    text = i18n.escape_markdown(words)
    assert text != words
    assert text.replace("\u2060", "").replace("\\", "") == words


def test_a_typed_entity_is_unchanged():
    assert i18n.escape_markdown("&lt;b&gt;") == r"\&lt;b\&gt;"


def test_no_message_is_a_fragment_of_a_sentence():
    texts = [
        (path.name, line, each)
        for folder in ("app", "pages")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, _, messages, _ in extraction.screen(path.open("rb"), (), (), {})
        for each in ([messages] if isinstance(messages, str) else messages)
    ]
    assert len(texts) > 800
    icon = re.compile(r":material/\w+: ")
    assert [text for text in texts if re.match(r"[\s,;:.)]", icon.sub("", text[2]))] == []
    assert [text for text in texts if re.search(r"[\s,;(]$", text[2])] == []
