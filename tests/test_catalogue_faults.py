"""Tests that the included translations are complete, keep placeholders and markup, and use the agreed terms."""

from io import BytesIO

import pytest
from babel.messages import Catalog, Message
from babel.messages.mofile import write_mo
from catalogue_faults import LOCALES, ROOT, faults, shipped, shipped_faults, template, term_faults, terms
from pseudo_language import pseudo_catalogue

import attention_core as ac
from app.words.glossary import ENTRIES

DOCUMENT = (ROOT / "docs" / "terms.zh-CN.md").read_text("utf-8")
MESSAGES = {
    "{n} of {m:,} keys": "{m:,} 个键中的 {n} 个",
    "**{name}** uses $n^2$ and `torch`": "**{name}** 使用 $n^2$ 和 `torch`",
    ("{n} token", "{n} tokens"): ("{n} 个 token",),
    "[Paper](https://arxiv.org/abs/1)": "[论文](https://arxiv.org/abs/1)",
    "100% of it": "100%",
    "\\{x\\} {": "\\{x\\} {",
}


def catalogue(messages, **changes):
    result = Catalog(locale="zh_CN")
    for english, words in (messages | changes).items():
        result.add(english, words)
    return result


def test_every_shipped_language_is_complete_and_uses_the_terms():
    found = list(shipped_faults())
    assert not found, "\n".join(["translate these messages (CONTRIBUTING.md, “A sentence on screen”):", *found])


def test_every_shipped_language_is_compiled():
    for tag, found in shipped():
        compiled = BytesIO()
        write_mo(compiled, found)
        path = LOCALES / tag.replace("-", "_") / "LC_MESSAGES" / "messages.mo"
        is_compiled = path.read_bytes() == compiled.getvalue()
        assert is_compiled, f"run: pybabel compile -d app/locale -l {tag.replace('-', '_')}"


def test_a_correct_catalogue_has_no_faults():
    assert list(faults(catalogue(MESSAGES), catalogue(dict.fromkeys(MESSAGES, "")))) == []
    assert list(faults(pseudo_catalogue(), template())) == []
    assert len(template()) > 3000


@pytest.mark.parametrize(
    ("english", "words", "fault"),
    [
        ("{n} of {m:,} keys", "", "missing: {n} of {m:,} keys"),
        ("{n} of {m:,} keys", "{n} 个键", "fields ['m:,']: {n} 个键"),
        ("{n} of {m:,} keys", "{m} 个键中的 {n} 个", "fields ['m', 'm:,']: {m} 个键中的 {n} 个"),
        ("{n} of {m:,} keys", "{m:,}{n}{name}", "fields ['name']: {m:,}{n}{name}"),
        (
            "**{name}** uses $n^2$ and `torch`",
            "{name} 使用 $n^2$ 和 `torch`",
            "markup ['**']: {name} 使用 $n^2$ 和 `torch`",
        ),
        (
            "**{name}** uses $n^2$ and `torch`",
            "**{name}** 使用 $n^3$ 和 `torch`",
            "markup ['$n^2$', '$n^3$']: **{name}** 使用 $n^3$ 和 `torch`",
        ),
        ("**{n} hold.** See below", "**{n} 个成立。**见下", "bold ends in a mark: **{n} 个成立。**见下"),
        ("{n} of {m:,} keys", "{m:,} 个键中的{n} 个", "no space next to a value: {m:,} 个键中的{n} 个"),
        (
            "**{name}** uses $n^2$ and `torch`",
            "**{name}**使用 $n^2$ 和 `torch`",
            "no space next to a value: **{name}**使用 $n^2$ 和 `torch`",
        ),
        (("{n} token", "{n} tokens"), ("{m} 个 token",), "fields ['m', 'n']: {m} 个 token"),
        (("one token", "{n} tokens"), ("一个 token",), "fields ['n']: 一个 token"),
        (
            "[Paper](https://arxiv.org/abs/1)",
            "[论文](https://example.com)",
            "markup ['](https://arxiv.org/abs/1)', '](https://example.com)']: [论文](https://example.com)",
        ),
    ],
)
def test_each_fault_is_reported(english, words, fault):
    assert list(
        faults(catalogue(MESSAGES | {english: words}), catalogue(dict.fromkeys(MESSAGES | {english: ""}, "")))
    ) == [fault]


def test_missing_and_fuzzy_messages_are_faults():
    found = catalogue(MESSAGES)
    found.delete("100% of it")
    found.get("{n} of {m:,} keys").flags.add("fuzzy")
    assert list(faults(found, catalogue(dict.fromkeys(MESSAGES, "")))) == [
        "fuzzy: {n} of {m:,} keys",
        "missing: 100% of it",
    ]


def test_obsolete_messages_are_faults():
    found = catalogue(MESSAGES)
    found.obsolete["An old text"] = Message("An old text", "旧文本")
    [fault] = faults(found, catalogue(dict.fromkeys(MESSAGES, "")))
    assert fault == "obsolete (run pybabel update with --ignore-obsolete): An old text"


def test_a_message_with_a_context_needs_its_own_translation():
    english, found = Catalog(), Catalog(locale="zh_CN")
    english.add("window", context="setting of a variant")
    found.add("window", "窗口")
    assert list(faults(found, english)) == ["missing: window"]
    found.add("window", "窗口", context="setting of a variant")
    assert list(faults(found, english)) == []


@pytest.mark.parametrize(
    ("english", "words", "found"),
    [
        ("The entropy of each row", "每一行的熵", []),
        ("The entropy of each row", "每一行的信息量", ["term entropy (熵): 每一行的信息量"]),
        ("Attention matrix of {entropy}", "{entropy} 的注意力矩阵", []),
        ("Attention matrix", "关注矩阵", ["term attention matrix (注意力矩阵): 关注矩阵"]),
        ("keyboard and keys", "键盘", []),
        ("Local", "局部", []),
        ("Local", "本地", ["name Local: 本地, not 局部"]),
        ("A local restaurant", "本地的餐馆", []),
        ("`entropy` and $entropy$", "`entropy` 和 $entropy$", []),
        (("{n} head", "{n} heads"), ("{n} 个首部",), ["term heads (头): {n} 个首部"]),
        ("The kernel", "核", []),
    ],
)
def test_a_term_must_have_a_translation_from_the_table(english, words, found):
    assert list(term_faults(catalogue({english: words}), *terms(DOCUMENT))) == found


def test_a_translator_may_exempt_a_message_from_a_term():
    found = Catalog(locale="zh_CN")
    found.add("Press any key", "按任意按钮", user_comments=["a button of the keyboard", "free: key"])
    assert list(term_faults(found, *terms(DOCUMENT))) == []


def test_the_table_has_every_variant_and_every_glossary_entry_once():
    words, names = terms(DOCUMENT)
    unnamed = [variant.title for variant in ac.all_variants() if variant.title not in names]
    assert not unnamed, f"add a row to “Names of variants” in docs/terms.zh-CN.md for {unnamed}"
    forms = [form for entry in ENTRIES for form in entry.forms.lower().split("|")]
    unlisted = [form for form in forms if form not in words]
    assert not unlisted, f"add a row to “Terms” in docs/terms.zh-CN.md for {unlisted}"
    listed = [english for line in DOCUMENT.splitlines() if line.count("|") == 5 for english in [line.split("|")[1]]]
    assert len({*listed}) + 2 == len(listed), "each term has one row; the heads and the lines of two tables are equal"
