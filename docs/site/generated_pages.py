"""Pages of the documentation that are made from the code and from other documents.

There is one page per variant, with its matrix on a fixed input, a table of all variants, the lessons, and one page per
notebook. The tour, the guide to hosting, the verdicts of the claims and CONTRIBUTING.md are taken from their files, and
how to add a variant is taken from the README.
"""

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from latex2mathml.converter import convert

import attention_core as ac
from attention_core.description import PICTURE_TOKENS, example_matrix
from attention_core.errors import Names
from attention_core.settings import Setting
from attention_core.variant import Paper, Variant

ROOT = Path(__file__).parents[2]
COPIED = {
    "tour.md": "docs/tour.md",
    "hosting.md": "docs/hosting.md",
    "claims.md": "docs/claims.md",
    "contributing.md": "CONTRIBUTING.md",
}
"""Pages that are documents of the repository."""
TOKENS, SIZE = 8192, 64
"""Tokens and head size of the stated costs."""
FAMILIES = {
    "dense": "All pairs of query and key",
    "sparse": "Some pairs of query and key",
    "kernel": "Feature maps (linear attention)",
    "gated": "Gated states and delta rules",
    "low_rank": "Landmarks, pools and projections",
    "cache": "Smaller caches",
    "mixed": "Mixtures",
}


def write(folder: Path, variants: Iterable[Variant]) -> None:
    """Write all generated pages as Markdown into a folder; unchanged pages are left alone, and others are deleted."""
    variants = tuple(variants)
    pages = {f"{each.key}.md": _variant(each) for each in variants}
    pages |= {"variants.md": _table(variants), "lessons.md": _lessons()}
    pages |= {name: _copied((ROOT / path).read_text("utf-8")) for name, path in COPIED.items()}
    readme = (ROOT / "README.md").read_text("utf-8")
    pages["add_a_variant.md"] = _copied(re.search(r"^## Add a variant\n.*?(?=^## )", readme, re.M | re.S)[0][1:])
    pages |= {f"{path.stem}.md": _notebook(path) for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))}
    folder.mkdir(exist_ok=True)
    for path in set(folder.glob("*.md")) - {folder / name for name in pages}:
        path.unlink()
    for name, content in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != content:
            path.write_text(content, "utf-8")


def _notebook(path: Path) -> str:
    """Return a notebook's text and code, without outputs, and a link that downloads the notebook."""
    cells = [("".join(cell["source"]), cell["cell_type"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    title, *others = [text if kind == "markdown" else f"```python\n{text}\n```" for text, kind in cells]
    link = f"{{download}}`Download the notebook <../../notebooks/{path.name}>`"
    return "\n\n".join([title, link, *others]) + "\n"


def _copied(words: str) -> str:
    """Return a document without links to files that are not on the site, whose words remain."""
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|#)([^)]+)\)", r"\1 (`\2`)", words)


def _variant(variant: Variant) -> str:
    """Return the page of a variant."""
    attention = ac.get(variant.key)
    cost, full = attention.cost(TOKENS, SIZE), ac.get("softmax").cost(TOKENS, SIZE)
    share = cost.multiply_adds / full.multiply_adds
    parts = [
        f"# {variant.title}",
        variant.summary,
        example_matrix(attention),
        f"The matrix of one head on {PICTURE_TOKENS} synthetic tokens that resemble their neighbours. Rows are queries "
        "and columns are keys. Dark cells are large weights; brown cells are negative. Every picture has its own "
        "scale.",
        "## Formula",
        f'<div class="formula">{convert(variant.formula, display="block")}</div>',
        variant.note,
        "## Cost",
        f"Time: {variant.complexity}. One head of {TOKENS:,} tokens of size {SIZE} needs {cost.multiply_adds:,} "
        f"multiply-adds, {share:.1%} of those of softmax, and holds at most {cost.peak_elements:,} numbers in memory.",
        f"It cannot be causal: {variant.causal_reason}" if variant.causal_reason else "It can be causal.",
        f"Keys must be those of the same tokens as the queries: {variant.cross_reason}"
        if variant.cross_reason
        else "Keys and values may come from another sequence (cross-attention).",
        "## Settings",
        "\n".join(["| setting | default | values | meaning |", "| --- | --- | --- | --- |", *map(_setting, settings)])
        if (settings := variant.params.settings())
        else "It has no settings.",
        "## Use",
        f"```python\n{attention.snippet()}```",
        *_equal_to(variant),
        "## Definition",
        f"```python\n{variant.definition_code()}```",
        "## Source",
        "\n".join(f"- {_cited(paper)}" for paper in (variant.source, *variant.further)),
    ]
    return "\n\n".join(parts)


def _setting(setting: Setting) -> str:
    if setting.choices:
        values = ", ".join(f"`{each}`" for each in setting.choices)
    else:
        values = "on or off" if setting.kind == "bool" else f"{setting.low} to {setting.high}"
    return f"| `{setting.name}` | `{setting.default}` | {values} | {setting.help} |".replace("\n", " ")


def _equal_to(variant: Variant) -> list[str]:
    """Return the section on the variants that a variant equals at some settings; empty if there are none."""
    if not variant.special_cases:
        return []
    lines = ["With these settings it gives the result of another variant on every input:", ""]
    for case in variant.special_cases:
        own, other = (
            ", ".join(f"`{name}={value}`" for name, value in each.items()) for each in (case.settings, case.other)
        )
        shared = Names(f"`{name}`" for name in case.shared)
        conditions = [
            f"with {own}" if own else "",
            f"where the other variant has {other}" if other else "",
            f"for equal {shared}" if shared else "",
            {None: "", True: "in the causal form", False: "in the form that is not causal"}[case.causal],
        ]
        words = ", ".join(filter(None, conditions)) or "with all settings equal"
        lines.append(f"- [{ac.variant(case.key).title}]({case.key}.md) {words}")
    return ["## Equal to", "\n".join(lines)]


def _cited(paper: Paper) -> str:
    return f"[{paper.heading}]({paper.url}), {paper.year}"


def _table(variants: tuple[Variant, ...]) -> str:
    """Return the page that lists all variants by family."""
    lines = [
        "# Variants",
        f"Every variant has its own page. The cost is that of one head of {TOKENS:,} tokens of size {SIZE}, in per "
        "cent of the multiply-adds of softmax.",
    ]
    full = ac.get("softmax").cost(TOKENS, SIZE).multiply_adds
    for family in ac.families():
        rows = [
            f"| [{each.title}]({each.key}.md) | {each.summary} "
            f"| {ac.get(each.key).cost(TOKENS, SIZE).multiply_adds / full:.1%} "
            f"| {'no' if each.causal_reason else 'yes'} | {'no' if each.cross_reason else 'yes'} |"
            for each in variants
            if each.family == family
        ]
        head = ["| variant | what it does | cost | causal | cross-attention |", "| --- | --- | --- | --- | --- |"]
        lines += [f"## {FAMILIES[family]}", "\n".join(head + rows)]
    names = "\n".join(each.key for each in variants)
    lines.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```")
    return "\n\n".join(lines)


def _lessons() -> str:
    """Return the list of lessons with their questions."""
    lines = [
        "# Lessons",
        "Each lesson leads through the app step by step. A visitor predicts a number before it is shown.",
    ]
    for path in sorted((ROOT / "app" / "lessons" / "shipped").glob("*.toml")):
        lesson = tomllib.loads(path.read_text("utf-8"))
        asked = [step["ask"] for step in lesson["step"] if "ask" in step]
        lines += [
            f"## {lesson['title']}",
            f"{lesson['question']} About {lesson['minutes']} minutes, {len(lesson['step'])} steps.",
            "Questions to the class:",
            "\n".join(f"- {each}" for each in asked),
        ]
    return "\n\n".join(lines)
