"""What is said of a variant: what it costs on an input, and where it comes from."""

import attention_core as ac
from app.about import cost_in_words, sources
from attention_core.variant import Paper


def test_a_cost_is_told_beside_softmaxs():
    softmax, local = ac.get("softmax"), ac.get("local", window=4)
    own, full = (a.cost(64, 8).multiply_adds for a in (local, softmax))
    assert own < full
    assert cost_in_words(local, n=64, d=8) == (
        f"Time grows as **{local.variant.complexity}**: {own:,} multiply-adds per head with values as long as keys, "
        f"{own / full:.2f} times softmax's."
    )
    assert cost_in_words(softmax, n=64, d=8).endswith("1.00 times softmax's.")
    assert cost_in_words(ac.get("local", window=9), n=64, d=8) != cost_in_words(local, n=64, d=8)


def cited(paper: Paper) -> str:
    return f"[{paper.title} ({paper.year})]({paper.url})"


def test_sources_are_cited_with_what_else_there_is():
    lone = next(v for v in ac.all_variants() if not v.further)
    more = next(v for v in ac.all_variants() if len(v.further) > 1)
    assert sources(lone) == f"Source: {cited(lone.source)}"
    assert sources(more) == f"Source: {cited(more.source)}; see also {', '.join(map(cited, more.further))}"
