"""Tests of the language on screen: a link or the browser sets it, every link keeps it, and numbers stay the same."""

import json
import pickle
import re
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from driver import visit
from pseudo_language import catalogue_of, installed
from test_addresses import SMALL, TWO, shown

import attention_core as ac
from app.page_script import mounting
from app.ui.scope import Scope
from app.words import i18n
from app.words.i18n import C_
from app.words.labels import paper_heading, paper_title
from attention_core import articles
from attention_core.errors import InputError, Name, Names, Notice, SettingError, name_hint

CHINESE = {
    C_("name of this language", "English"): "简体中文",
    "Matrices": "注意力矩阵",
    "What does each variant attend to?": "每种变体关注什么？",
    "Softmax": "标准注意力",
    C_(i18n.SETTING, "window"): "窗口",
    "perplexity": "困惑度",
    C_("two sentences", "{first} {next}"): "{first}{next}",
    C_("two items of a list", "{first}, {next}"): "{first}、{next}",
    "{others} and {last}": "{others} 和 {last}",
    "{name} reaches {share}": "{name} 可达 {share}",
    "in {name} of {others}": "{others} 的 **{name}** 中",
    "{title} {name}": "{title} {name}",
    C_("two phrases of a list", "{first}; {next}"): "{first}；{next}",
    C_("end of a sentence", "{words}."): "{words}。",
    "There is no setting {name!r}. {hint}": "没有设置 {name!r}。{hint}",
    "Choose one of: {names}.": "可选的有：{names}。",
    "The file is not valid: {reason}": "文件无效：{reason}",
    "{name} is {value!r}. Choose {kind} from {low} to {high}.": "{name} 为 {value!r}。请选 {low} 到 {high} 的 {kind}。",
    "a whole number": "整数",
}
SCREEN = f"{SMALL}&{TWO}"


@pytest.fixture
def chinese():
    with installed(zh_CN=catalogue_of(CHINESE, "zh_CN")):
        yield


def speak(monkeypatch, browser, chosen=None):
    """Set the language of the browser, and the language that the visitor chose."""
    monkeypatch.setattr(i18n, "_run", threading.local())
    monkeypatch.setattr(i18n.st, "context", type("Context", (), {"locale": browser}))
    monkeypatch.setattr(i18n.st, "session_state", {i18n.LANGUAGE: chosen})
    monkeypatch.setattr(i18n.st.runtime, "exists", lambda: True)
    i18n.set_language()


@pytest.mark.parametrize(
    ("browser", "chosen", "tag"),
    [
        ("zh-CN", "browser", "zh-CN"),
        ("zh", None, "zh-CN"),
        ("zh-TW", "browser", "zh-CN"),
        ("zh-Hant-HK", "browser", "zh-CN"),
        ("ZH_cn", None, "zh-CN"),
        ("de-DE", "browser", "en"),
        ("", None, "en"),
        (None, None, "en"),
        ("zh-CN", "en", "en"),
        ("en-GB", "zh", "zh-CN"),
        ("en-GB", "no such", "en"),
        ("en-GB", "../../etc", "en"),
    ],
)
def test_the_chosen_language_precedes_the_browsers_and_english(chinese, monkeypatch, browser, chosen, tag):
    speak(monkeypatch, browser, chosen)
    assert i18n.language_tag() == tag
    assert i18n._("Softmax") == ("标准注意力" if tag == "zh-CN" else "Softmax")


def test_lists_sentences_and_quotes_follow_the_language(chinese, monkeypatch):
    speak(monkeypatch, "en")
    assert i18n.paragraph("One.", "", "Two.") == "One. Two."
    assert i18n.enumeration(["a", "", "b", "c"]) == "a, b and c"
    assert i18n.enumeration(["a"]) == "a"
    assert i18n.clauses(iter(["a, b", "c"])) == "a, b; c"
    assert i18n.end_sentence("a, b") == "a, b."
    assert i18n.enumeration([]) == i18n.paragraph() == ""
    assert i18n.quote("שלום") == "“\u2068שלום\u2069”"
    speak(monkeypatch, "zh")
    assert i18n.paragraph("甲。", "", "乙。") == "甲。乙。"
    assert i18n.enumeration(["甲", "{first}", "{next}"]) == "甲、{first} 和 {next}"
    assert i18n.enumeration(["甲", "乙"]) == "甲和乙"
    assert i18n.clauses(["甲、乙", "丙"]) == "甲、乙；丙"
    assert i18n.end_sentence("甲") == "甲。"


@pytest.mark.parametrize(
    ("name", "share", "words"),
    [
        ("局部", "全部 token", "局部可达全部 token"),
        ("Nyström", "51%", "Nyström 可达 51%"),
        ("局部 填补", "“它 的”", "局部 填补可达“它 的”"),
        ("空洞（步长 8）", "51%", "空洞（步长 8）可达 51%"),
        ("**空洞**", "**一半**", "**空洞**可达**一半**"),
        ("**空洞（步长 8）**", "**“它”**", "**空洞（步长 8）** 可达 **“它”**"),
        ('[24 对](#?x "数")', "[全部](/y)", '[24 对](#?x "数")可达[全部](/y)'),
        ("[top-k](/x)", "[51%](/y)", "[top-k](/x) 可达 [51%](/y)"),
    ],
)
def test_a_template_has_spaces_only_around_latin_values(chinese, monkeypatch, name, share, words):
    speak(monkeypatch, "zh")
    assert i18n._("{name} reaches {share}", name=name, share=share) == words
    assert i18n._("{title} {name}", title="局部", name="空洞") == "局部 空洞"
    speak(monkeypatch, "en")
    assert i18n._("{name} reaches {share}", name=name, share=share) == f"{name} reaches {share}"


def test_plural_messages_have_spaces_only_around_latin_values(monkeypatch):
    one, many = "{names} also at least halves this error.", "{names} also at least halve this error."
    speak(monkeypatch, "zh")
    assert i18n._n(one, many, n=1, names="局部").startswith("局部也")
    assert i18n._n(one, many, n=1, names="Nyström").startswith("Nyström 也")


def test_bold_values_touch_chinese_words_and_keep_a_space_to_latin_ones(chinese, monkeypatch):
    speak(monkeypatch, "zh")
    assert i18n._("in {name} of {others}", name="局部", others="两行") == "两行的**局部**中"
    assert i18n._("in {name} of {others}", name="top-k", others="BigBird") == "BigBird 的 **top-k** 中"
    assert i18n._("in {name} of {others}", name="（局部）", others="两行") == "两行的 **（局部）** 中"


def test_several_heads_and_chinese_articles_have_chinese_names(monkeypatch):
    article, paper = articles.NYSTROMFORMER, articles.Paper("Attention Is All You Need", 2017, "")
    speak(monkeypatch, "zh")
    assert Scope(heads=12, aggregation="median").describe_heads() == "12 个头的中位数"
    assert paper_title(article) == paper_heading(article) == "Nyströmformer：基于矩阵分解的线性化Attention方案"
    assert paper_title(paper) == paper_heading(paper) == paper.title
    speak(monkeypatch, "en")
    assert Scope(heads=12, aggregation="median").describe_heads() == "median of 12 heads"
    assert (paper_title(article), paper_heading(article)) == (article.title, article.heading)
    found = [each for each in vars(articles).values() if isinstance(each, articles.Paper) and each.original]
    assert all(re.search("[一-鿿]", each.original) for each in found)


def test_a_word_with_a_context_is_another_message(chinese, monkeypatch):
    speak(monkeypatch, "zh")
    assert i18n._(C_(i18n.SETTING, "window")) == "窗口"
    assert i18n._("window") == i18n._(C_("of a house", "window")) == "window"


def test_an_error_translates_inner_messages_but_no_identifiers(chinese, monkeypatch):
    hint = name_hint("x", ["keys", "perplexity"])
    unknown = SettingError("There is no setting {name!r}. {hint}", name="perplexity", hint=hint)
    outer = pickle.loads(pickle.dumps(InputError("The file is not valid: {reason}", reason=unknown)))
    assert str(outer) == "The file is not valid: There is no setting 'perplexity'. Choose one of: keys and perplexity."
    with pytest.raises(SettingError) as caught:
        ac.get("local", window=0.5)
    assert str(caught.value) == "window is 0.5. Choose a whole number from 1 to 4096."
    named = InputError("{name} is {value!r}. Choose {kind} from {low} to {high}.", **caught.value.fields)
    named.fields |= {"name": Name("perplexity"), "kind": Names([Notice("perplexity"), "perplexity"])}
    speak(monkeypatch, "en")
    assert [i18n.sentence(each) for each in (outer, caught.value)] == [str(outer), str(caught.value)]
    speak(monkeypatch, "zh")
    assert i18n.sentence(outer) == "文件无效：没有设置 'perplexity'。可选的有：keys 和 perplexity。"
    assert i18n.sentence(caught.value) == "window 为 0.5。请选 1 到 4096 的整数。"
    assert i18n.sentence(named) == "perplexity 为 0.5。请选 1 到 4096 的困惑度和 perplexity。"


def script(at):
    """Return the data that the page sends to its script."""
    [element] = [e for e in at.get("bidi_component") if e.proto.component_name.startswith("attention_lab_page")]
    return json.loads(element.proto.json)


def test_a_link_in_another_language_changes_only_words(chinese):
    english, translated = shown(f"matrices?{SCREEN}"), shown(f"matrices?{SCREEN}&lang=zh")
    assert translated[0].replace("&lang=zh", "") == english[0]
    assert "lang=zh" in translated[0]
    assert translated[1:] == english[1:]
    at = visit("matrices", parse_qs(f"{SCREEN}&lang=zh"))
    assert at.markdown[0].value == "# 每种变体关注什么？"
    assert script(at)["language"] == {
        "code": "zh",
        "tag": "zh-CN",
        "names": {"en": "English", "zh": "简体中文"},
        "title": "Language",
        "query": "?lang=zh",
    }


def state(at):
    """Return the values of all fields of a page but the language."""
    return {name: at.session_state[name] for name in at.session_state["link"].fields if name != i18n.LANGUAGE}


def test_an_address_with_only_a_language_opens_like_an_empty_one(chinese):
    first, translated = visit("matrices"), visit("matrices", {"lang": "zh"})
    assert state(translated) == state(first)
    assert dict(translated.run().query_params) == {**dict(first.run().query_params), "lang": "zh"}


def test_a_screen_of_defaults_is_restored_by_a_link_with_a_language(chinese):
    defaults = parse_qs("text=@english&special=1&row=0", strict_parsing=True)
    at = visit("matrices", defaults | {"lang": "zh"})
    at.session_state["row"] = -1
    again = visit("matrices", at.run().query_params)
    assert state(again) == state(at)


def test_switching_keeps_every_value_and_changes_the_link(chinese, monkeypatch):
    at = visit("matrices", parse_qs(SCREEN)).run()
    before, query = state(at), dict(at.query_params)
    at.session_state[i18n.LANGUAGE] = "zh"
    assert at.run().markdown[0].value == "# 每种变体关注什么？"
    assert state(at) == before
    assert dict(at.query_params) == {**query, "lang": "zh"}
    at.session_state[i18n.LANGUAGE] = "en"
    assert at.run().markdown[0].value == "# What does each variant attend to?"
    assert dict(at.query_params) == {**query, "lang": "en"}


def test_only_an_installed_language_of_the_browser_is_used(chinese, monkeypatch):
    taken = []
    monkeypatch.setattr(mounting.LanguageOptions.language, "set", taken.append)
    for word in ("zh", "xx", None, "en", "../en"):
        monkeypatch.setattr(mounting.st, "session_state", {mounting._KEY: type("State", (), {"language": word})})
        mounting._set_language()
    assert taken == ["zh", "en"]


def addresses(at):
    """Return the queries of all links to pages of the app."""
    found = [element.proto.query_string for element in at.get("page_link")]
    pieces = [*at.markdown, *at.get("html")]
    text = "\n".join(str(getattr(each.proto, "body", "")) for each in pieces)
    return found + [
        urlsplit(each).query for each in re.findall(r'class="way[^"]*" target="_self" href="([^"]*)"', text)
    ]


@pytest.mark.parametrize("query", ["lang=zh", "lang=zh&family=sparse&input=synthetic&n=24", "lang=zh&lesson=flat"])
def test_every_link_of_a_page_keeps_the_language(chinese, query):
    at = visit("home", parse_qs(query))
    found = addresses(at)
    assert len(found) > 8
    assert [each for each in found if "lang=zh" not in each] == []


def test_an_unknown_language_is_reported_and_english_is_shown(chinese):
    at = visit("matrices", {"lang": "xx"})
    [warning] = at.warning
    assert warning.value.endswith("For `lang`, the page uses “browser” instead of “xx” (allowed: browser, en and zh).")
    assert at.markdown[0].value == "# What does each variant attend to?"


def test_only_english_is_offered_without_catalogues():
    with installed():
        assert script(visit("matrices", parse_qs(SCREEN)))["language"]["names"] == {"en": "English"}
