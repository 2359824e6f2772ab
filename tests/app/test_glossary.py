"""Tests of the glossary: technical terms have a definition, each spelling has only one, and reruns do not send it."""

import gettext
from itertools import chain

from driver import open_page

from app.words import glossary
from tests.catalogue_faults import forms as catalogue_forms
from tests.catalogue_faults import template

WANTED = {
    *("logit", "nat", "landmark", "effective rank", "misplaced weight", "decode step", "feature map", "perplexity"),
    *("KV cache", "causal", "entropy", "head", "kernel"),
}


def forms():
    return [form for _definition, known in glossary.translated_entries("en") for form in known]


def test_every_technical_term_on_pages_has_a_definition():
    assert set(forms()) >= WANTED


def test_a_spelling_belongs_to_one_definition():
    lowered = [form.lower() for form in forms()]
    assert len(set(lowered)) == len(lowered)
    assert all(form.strip() == form and form for form in forms())
    assert len({definition for definition, _forms in glossary.translated_entries("en")}) == len(glossary.ENTRIES)


def test_definitions_are_sentences_that_do_not_begin_with_their_term():
    for definition, known in glossary.translated_entries("en"):
        assert definition[0].isupper()
        assert definition.endswith(".")
        assert not definition.lower().startswith(tuple(form.lower() for form in known))


def test_each_term_occurs_in_another_text():
    own = {text for entry in glossary.ENTRIES for text in (entry.forms, entry.definition)}
    texts = [form for message in template() for form in catalogue_forms(message.id) if form not in own]
    spoken = "\n".join(texts).lower()
    unused = [entry.forms for entry in glossary.ENTRIES if not any(f.lower() in spoken for f in entry.forms.split("|"))]
    assert not unused


def test_terms_and_definitions_are_in_the_visitors_language(monkeypatch):
    class Spoken(gettext.NullTranslations):
        def gettext(self, message):
            return {"logit|logits": "Logit|Logits", glossary.ENTRIES[0].definition: "Einer von mehreren."}.get(
                message, message
            )

    monkeypatch.setattr(glossary, "catalogue", lambda language: {"de": Spoken()}[language])
    entries = glossary.translated_entries("de")
    assert entries[0][0] == "Einer von mehreren."
    assert ["Logit", "Logits"] in [known for _definition, known in entries]


def test_definitions_are_sent_only_with_the_script():
    at = open_page("masks", input="synthetic", n=12, d=4, heads=1, head=0)
    scripts = [
        each.proto for each in at.get("bidi_component") if each.proto.component_name.startswith("attention_lab_page")
    ]
    assert len(scripts) == 1
    shown = chain.from_iterable((each.value for each in kind) for kind in (at.markdown, at.caption))
    assert not any(definition in words for words in shown for definition, _forms in glossary.translated_entries("en"))
    assert glossary.ENTRIES[0].definition not in scripts[0].json
