"""Tests that links written by earlier versions still open the same options and numbers.

For each link, ``addresses.json`` holds the link that the opened page writes, the data of its charts, matrices and
tables, and the verdicts of claims. It holds no words, controls or menus, which other tests check, so a new variant,
option, page, claim or lesson does not change the file. Numbers may differ by a thousandth, or by a millionth near zero,
because arithmetic differs between machines.

After an intended change, ``PYTHONPATH=. python tests/app/test_addresses.py`` records all links again. With words after
the command, it records only the links that contain one of the words. Review the difference in git.
"""

import difflib
import json
import math
import re
import sys
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode

import numpy as np
import pandas as pd
import pytest
from driver import figure, inside, is_chart, matrices, message, numbers, visit

from pages.claims.board import Board

RECORDED = Path(__file__).with_name("addresses.json")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
NEAR = {"rel_tol": 1e-3, "abs_tol": 1e-6}

SMALL = "input=synthetic&n=24&d=8&heads=2&head=1"
CLUSTERED = "input=synthetic&kind=clustered&n=16&d=4&heads=2&head=0&sharpness=2.5&seed=3&rope=1"
TEXT = "text=eNoLyUhVSE4sUSgG4vw8hRIgNzexREchMS8FzAHL5aQWlOgBADGADlA"
"""Encoding of this text: The cat sat on the mat, and the cat slept."""
FOUR = "variants=softmax&variants=local~window~3&variants=nystrom~landmarks~7&variants=linear"
TWO = "variants=softmax&variants=local~window~4"
BROKEN = "n=0x1&head=99&kind=nowhere&sharpness=nan&variants=nystrom~landmarks~0&causal=yes"
ADDRESSES = (
    "home",
    "home?family=sparse&input=synthetic&n=24&variants=softmax&variants=nystrom~landmarks~7",
    "home?family=round&deep=1",
    f"matrices?{SMALL}&{FOUR}",
    f"matrices?{SMALL}&{FOUR}&view=difference&scale=panel&tone=log&causal=1&row=5&coloured=local",
    f"matrices?{SMALL}&{FOUR}&more=explain&explained=nystrom&head=-1".replace("&head=1", ""),
    f"matrices?{CLUSTERED}&{TWO}&variants=topk~k~2&more=download&picture=svg&tone=linear",
    f"matrices?{TEXT}&layer=0&head=-1&special=0&row=3&{FOUR}",
    f"matrices?{TEXT}&model=smollm2&layer=1&head=2&causal=1&{TWO}&more=explain",
    f"matrices?text=@repeats&head=5&{TWO}&view=difference",
    f"matrices?{SMALL}&{TWO}&row=99&tone=loud&view=weights&more=1&h_view=drift&unheard=3",
    f"matrices?input=synthetic&{BROKEN}",
    f"masks?{SMALL}&variants=softmax&variants=local~window~2&variants=atrous~stride~3&stack=local&stack=atrous"
    "&stack_depth=3&front=5&front_way=hears",
    f"masks?{SMALL}&variants=softmax&variants=longformer&variants=bigbird&variants=linear&masks_part=numbers&causal=1",
    f"masks?{SMALL}&variants=softmax&variants=reformer&masks_part=order&hash_order=original&hash_round=1",
    f"masks?{SMALL}&variants=softmax&variants=sink&masks_part=download",
    f"masks?{CLUSTERED}&{TWO}&stack=none&front=500&stack_depth=9&front_way=up",
    f"masks?{TEXT}&layer=1&{TWO}&causal=1",
    f"entropy?{SMALL}&{TWO}&h_longest=128&h_seeds=1",
    f"entropy?{SMALL}&{TWO}&h_longest=128&h_seeds=2&h_measure=normalised&h_heads=one&h_line=mean&h_band=0&causal=1",
    f"entropy?{CLUSTERED}&variants=softmax&h_longest=128&h_seeds=1&h_scales=log_n&h_scales=temperature&h_base=64&h_temperature=4.0",
    f"entropy?{SMALL}&variants=softmax&variants=linear&h_view=normalizer&h_longest=128&h_seeds=1&h_unit=bits",
    f"entropy?{SMALL}&{TWO}&h_view=drift&h_drift=size&h_trained=8&h_longest=128&h_seeds=1",
    f"entropy?{SMALL}&{TWO}&h_view=distance&h_distance=logit&h_seeds=1&h_longest=128",
    f"entropy?{CLUSTERED}&{TWO}&h_view=distance&h_distance=bound&causal=1&h_seeds=1&h_longest=128",
    f"entropy?{SMALL}&variants=softmax&h_view=factor&h_factor=2.0&h_seeds=1&h_longest=128&h_unit=bits",
    f"entropy?{TEXT}&layer=0&head=2&{TWO}&h_heads=one&h_unit=bits",
    f"entropy?{SMALL}&variants=softmax&h_view=thin&h_scales=none&h_base=7&h_longest=128&h_seeds=0&h_unit=bits",
    f"error?{SMALL}&{FOUR}",
    f"error?{SMALL}&{FOUR}&fidelity=missed&log_error=1&causal=1",
    f"error?{CLUSTERED}&{FOUR}&against=length&fidelity=output",
    f"error?{SMALL}&{FOUR}&against=cost&fidelity=kl&price=count&picture=svg",
    f"error?{TEXT}&layer=0&head=1&{TWO}&fidelity=turn",
    f"error?{SMALL}&{TWO}&against=all&fidelity=mass&price=dear&log_error=2",
    f"timing?{FOUR}",
    f"timing?{FOUR}&t_side=memory&causal=1&t_rounds=3&t_heads=2&t_d=16",
    f"timing?{TWO}&t_mode=backward&t_side=work&t_from=256&t_to=1024&t_masked=local&t_form=explicit",
    f"timing?{TWO}&t_mode=decode&t_beside=none",
    f"timing?{TWO}&t_mode=sideways&t_from=100&t_beside=yesterday&t_dtype=bfloat16",
    "model",
    "model?m_text=story&m_view=copying&m_words=topk~k~8&m_words=uniform",
    "model?m_view=layers&m_edge=single",
    "model?m_view=layers&m_edge=top&m_shown=1",
    "model?m_view=budget",
    "model?m_view=predicts",
    "model?m_view=encoder&m_encoders=nystrom~landmarks~8&m_encoder_layers=2-3&m_words=locl&m_layers=40",
    f"causal?{SMALL}&{FOUR}&c_token=3",
    f"causal?{SMALL}&c_view=algorithms&c_size=8&c_form=cosine",
    f"causal?{SMALL}&c_view=state&c_state=retention~decay~0.5&c_at=7&c_log=0",
    f"causal?{SMALL}&variants=softmax&variants=linear&c_view=fading&c_early=4&c_decays=0.5&c_decays=0.99&c_map=relu",
    f"causal?{SMALL}&variants=softmax&variants=linear&c_view=fading&c_gate=drawn&c_gate_decay=0.9&c_gate_seed=4",
    f"causal?{SMALL}&c_view=generation",
    f"causal?{SMALL}&c_view=gradient",
    f"causal?{TEXT}&model=smollm2&layer=1&head=2&variants=softmax&variants=linear&c_token=4",
    f"causal?{CLUSTERED}&c_view=state&c_state=local&c_at=400&c_size=9&c_decays=2&c_map=tanh",
    f"inside?{SMALL}",
    f"inside?{SMALL}&inside=nystrom~landmarks~6&step=3&i_pick=leverage&query=4",
    f"inside?{SMALL}&inside=linear&step=4&query=9&causal=1",
    f"inside?{SMALL}&inside=efficient&step=2&feature=1",
    f"inside?{SMALL}&inside=performer&step=5&feature_error=matrix&logits=0.25",
    f"inside?{SMALL}&inside=reformer&step=1&hash_round=1",
    f"inside?{SMALL}&inside=pooled&step=2&causal=1",
    f"inside?{CLUSTERED}&inside=relu2&step=2&channel=3",
    f"inside?{SMALL}&inside=linformer&step=2",
    f"inside?{TEXT}&layer=0&head=0&inside=power_bert&step=2",
    f"inside?{SMALL}&inside=softmax&step=9&query=-1&logits=3",
    f"inside?{SMALL}&inside=funnel&step=8",
    "lessons",
    "lessons?draft=pooling",
    f"masks?{SMALL}&{TWO}&lesson=local_then_atrous&lesson_step=2",
    f"matrices?{SMALL}&{TWO}&lesson=flat&lesson_step=9&present=1",
    "claims",
    f"claims?{SMALL}&claim=nystrom_all_landmarks",
    f"claims?{SMALL}&claim=relu2_normaliser&claim_heads=one",
    f"claims?{SMALL}&claim=cosine_closest&claim_heads=one&picture=svg",
    f"claims?{CLUSTERED}&claim=two_layers",
    f"claims?{SMALL}&claim=six_iterations",
    f"claims?{SMALL}&claim=sparse_speed&verdict=holds&check=maybe",
)


def walk(node):
    """Yield the elements and blocks of a page in display order."""
    yield node
    for place in sorted(getattr(node, "children", ())):
        yield from walk(node.children[place])


def summary(values):
    """Return a summary of numbers: count, first, last, mean, root mean square, and a mean that depends on the order."""
    values = np.asarray(values, dtype=float).ravel()
    real = values[np.isfinite(values)]
    counted = f"{values.size} numbers, {values.size - real.size} not finite"
    if real.size == 0:
        return counted
    scattered = np.arange(1, real.size + 1) * (math.sqrt(5) / 2) % 1
    facts = real[0], real[-1], real.mean(), math.sqrt((real**2).mean()), (np.abs(real) * scattered).mean()
    return ", ".join([counted, *(f"{0.0 if abs(fact) < 1e-9 else fact:.6g}" for fact in facts)])


def data(values):
    """Return a summary of the data along one axis: a digest of numbers, or the count of words."""
    values = numbers(values) if isinstance(values, dict) else values
    each = np.asarray([math.nan if value is None else value for value in np.ravel(np.asarray(values, dtype=object))])
    return summary(each) if np.issubdtype(each.dtype, np.number) else f"{each.size} words"


def chart(element):
    """Yield lines that describe a chart: the kinds of its axes, and the numbers of each trace."""
    drawn = figure(element)
    scales = {name: axis.get("type", "") for name, axis in drawn["layout"].items() if "axis" in name}
    yield f"chart {scales}"
    for trace in drawn["data"]:
        found = {name: data(trace[name]) for name in ("x", "y", "z") if trace.get(name) is not None}
        yield f"  {trace['type']} {found}"


def board(element):
    """Yield lines that describe a board: its matrices, thumbnails, or the weights of a sentence."""
    name = element.proto.component_name
    if "settings" in name or not ("board" in name or "sentence" in name):
        return
    header, payload = message(element)
    kind = header.get("kind")
    if kind == "part":
        yield f"part {summary(next(iter(matrices({'panels': [header]}, payload))))}"
    elif kind == "board":
        for panel, content in inside(header, payload):
            yield f"panel {summary(next(iter(matrices({'panels': [panel]}, content))))}"
    elif kind == "heads":
        yield f"heads {summary(np.frombuffer(payload, np.uint8) / 255.0)}"
    elif "sentence" in name:
        yield f"sentence {summary(np.frombuffer(payload, '<f2'))}"


def table(element):
    """Yield lines that summarize the numbers in the columns of a table."""
    for _, column in element.value.items():
        if element.type == "table" and not pd.api.types.is_numeric_dtype(column):
            column = pd.to_numeric(column.astype(str).str.removesuffix("%"), errors="coerce").dropna()
        if len(column) and pd.api.types.is_numeric_dtype(column) and column.dtype != bool:
            yield f"column {summary(column)}"


def lines(at):
    """Yield the lines that describe the data shown by a page."""
    for part in (at.main, at.sidebar):
        for element in walk(part):
            if is_chart(element):
                yield from chart(element)
            elif element.type == "bidi_component":
                yield from board(element)
            elif element.type in ("dataframe", "table"):
                yield from table(element)


def shown(address):
    """Return the lines that describe the page an address opens."""
    page, _, query = address.partition("?")
    verdicts, tell = {}, Board.draw_outcomes

    def record_outcomes(self, outcomes):
        outcomes = list(outcomes)
        verdicts.update({outcome.key: outcome.verdict.name for outcome in outcomes})
        tell(self, outcomes)

    # A GPU would add options to the page, so the test hides it.
    with patch("torch.cuda.is_available", return_value=False), patch.object(Board, "draw_outcomes", record_outcomes):
        at = visit(page, parse_qs(query, strict_parsing=bool(query)))
        found = list(lines(at))
        assert not at.run().exception
    link = urlencode(sorted(at.query_params.items()), doseq=True)
    return [f"link {link}", *found, *(f"verdict {key}: {verdict}" for key, verdict in sorted(verdicts.items()))]


def figures(line):
    return [float(found) for found in NUMBER.findall(line)]


def differences(before, now):
    """Return the differences between two states: added and removed lines, or else lines with a different number.

    A new verdict of a claim that is absent from the earlier state is not a difference.
    """
    known = {line.partition(":")[0] for line in before}
    now = [line for line in now if not line.startswith("verdict ") or line.partition(":")[0] in known]
    bare = [[line if line.startswith("link ") else NUMBER.sub("#", line) for line in page] for page in (before, now)]
    if bare[0] != bare[1]:
        blocks = difflib.SequenceMatcher(None, *bare, autojunk=False).get_opcodes()
        return [
            line
            for what, a, b, c, d in blocks
            if what != "equal"
            for line in (*(f"- {each}" for each in before[a:b]), *(f"+ {each}" for each in now[c:d]))
        ]
    return [
        line
        for old, new in zip(before, now, strict=True)
        if not all(a == b or math.isclose(a, b, **NEAR) for a, b in zip(figures(old), figures(new), strict=True))
        for line in (f"- {old}", f"+ {new}")
    ]


@pytest.mark.parametrize("address", ADDRESSES, ids=str)
def test_an_address_opens_the_same_numbers(address):
    found = differences(json.loads(RECORDED.read_text("utf-8"))[address], shown(address))
    assert not found, "\n".join([f"{address} opens something else (- recorded, + now):", *found])


def test_every_recorded_address_and_every_page_is_tested():
    assert list(json.loads(RECORDED.read_text("utf-8"))) == list(ADDRESSES)


if __name__ == "__main__":
    known = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() and sys.argv[1:] else {}
    wanted = [a for a in ADDRESSES if a not in known or any(word in a for word in sys.argv[1:])]
    pages = {address: shown(address) if address in wanted else known[address] for address in ADDRESSES}
    RECORDED.write_text(json.dumps(pages, ensure_ascii=False, indent=0) + "\n", "utf-8")
