"""Addresses that earlier versions wrote open the pictures they always did, number by number and word by word.

What a page shows is written down as lines: every text, control, table, chart and board in its order, long lists by a
few numbers that tell them apart. Words are compared exactly; numbers, wherever they stand, to a thousandth, or to a
millionth near zero, which another machine's arithmetic needs. Where a change is meant, ``python
tests/app/test_addresses.py`` records all addresses anew, and with words after it those that hold one of them; the
difference of the recorded file then tells what changed.
"""

import base64
import difflib
import io
import json
import math
import re
import sys
import zlib
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest
from driver import inside, matrices, message, numbers, visit
from PIL import Image

RECORDED = Path(__file__).with_name("addresses.json")
FEW = 8
"""Numbers or words that are written out; of more a summary is."""
SNIPPET = 12
"""Lines of code that are compared; of more only the first is."""
NUMBER = re.compile(r"(?:(?<![\w.)])[-−])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
PICTURE = re.compile(r"data:image/png;base64,([\w+/=]+)")
DRAWING = re.compile(r"data:image/svg\+xml;base64,([\w+/=]+)")
ROUNDING = re.compile(r"\d+(?:\.\d+)?\s×\s10⁻(?:[⁶-⁹]|[⁰¹²³⁴-⁹]{2})")
"""What arithmetic alone leaves, another machine's something else."""
LEAST = -9
"""The power of ten down to which a logarithmic axis is compared, for the same reason."""
ROOM = 0.05 / 1.1
"""Of an axis's length, what lies beyond its values on either side."""
NEAR = {"rel_tol": 1e-3, "abs_tol": 1e-6}

SMALL = "input=synthetic&n=24&d=8&heads=2&head=1"
CLUSTERED = "input=synthetic&kind=clustered&n=16&d=4&heads=2&head=0&sharpness=2.5&seed=3&rope=1"
TEXT = "text=eNoLyUhVSE4sUSgG4vw8hRIgNzexREchMS8FzAHL5aQWlOgBADGADlA"
"""The cat sat on the mat, and the cat slept."""
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
    """A page's elements and blocks in the order they stand."""
    yield node
    for place in sorted(getattr(node, "children", ())):
        yield from walk(node.children[place])


def leaves(values):
    for value in values:
        yield from leaves(value) if isinstance(value, list | tuple) else (value,)


def in_short(values):
    """Numbers by their count, first, last, mean, root mean square, and a mean that knows their order."""
    values = np.asarray(values, dtype=float).ravel()
    real = values[np.isfinite(values)]
    told = f"{values.size} numbers, {values.size - real.size} not finite"
    if real.size == 0:
        return told
    scattered = np.arange(1, real.size + 1) * (math.sqrt(5) / 2) % 1
    facts = real[0], real[-1], real.mean(), math.sqrt((real**2).mean()), (np.abs(real) * scattered).mean()
    return ", ".join([told, *(f"{fact:.6g}" for fact in facts)])


def compact(value):
    """JSON with its numbers rounded, and long lists of numbers and words in short."""
    if isinstance(value, dict) and "bdata" in value:
        return compact(numbers(value))
    if isinstance(value, dict):
        return {name: compact(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        inside = list(leaves(value))
        if len(inside) <= FEW or any(isinstance(each, dict) for each in inside):
            return [compact(each) for each in value]
        words = [each for each in inside if isinstance(each, str)]
        told = [in_short([math.nan if each is None else each for each in inside if not isinstance(each, str)])]
        if words:
            all_of_them = "\n".join(words)
            skeleton = zlib.crc32(NUMBER.sub("#", all_of_them).encode())
            told += [
                f"{len(words)} words",
                words[0],
                words[-1],
                f"all {letters(skeleton)}",
                in_short(figures(all_of_them)),
            ]
        return told
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value


def letters(number):
    """A checksum without digits, which would be compared as a number."""
    return f"{number:08x}".translate(str.maketrans("0123456789", "ghijklmnop"))


def figures(words):
    return [float(found.replace(",", "").replace("−", "-")) for found in NUMBER.findall(words)]


def as_json(value):
    return json.dumps(compact(value), ensure_ascii=False, sort_keys=True)


def cut_off(layout):
    """Ends and marks of logarithmic axes no lower than ``LEAST``.

    An axis that goes below it ends where its values do: the room beyond them is a share of its whole length.
    """
    for name, axis in layout.items():
        if isinstance(axis, dict) and axis.get("type") == "log" and "range" in axis:
            side, ref = name[0], name.replace("axis", "")
            low, high = axis["range"]
            if low < LEAST:
                axis["range"] = [LEAST, high - ROOM * (high - low)]
            for mark in layout.get("annotations", ()):
                if mark.get(f"{side}ref") == ref:
                    mark[side] = max(mark[side], LEAST)


def chart(element):
    drawn = json.loads(element.proto.spec)
    drawn["layout"].pop("template", None)  # Streamlit's own
    cut_off(drawn["layout"])
    yield f"chart: {element.proto.alt} {as_json(json.loads(element.proto.config))}"
    yield f"  layout {as_json(drawn['layout'])}"
    for trace in drawn["data"]:
        yield f"  trace {as_json(trace)}"


def board(element):
    name, proto = element.proto.component_name, element.proto
    if "settings" in name:
        yield "settings " + as_json({k: v for k, v in json.loads(proto.bytes).items() if k != "board"})
    elif "sentence" in name:
        header, payload = message(element)
        yield "sentence " + as_json({k: v for k, v in header.items() if k not in ("key", "digest", "told")})
        yield f"  weights {in_short(np.frombuffer(payload, '<f2'))}"
        yield from with_it(header)
    elif "reading" in name:
        header, _payload = message(element)
        yield "reading " + as_json({k: v for k, v in header.items() if k not in ("key", "digest", "told")})
        yield from with_it(header)
    elif "board" in name:
        header, payload = message(element)
        if header["kind"] == "held" and not payload:
            return  # nothing is held where nobody is
        facts = as_json({k: v for k, v in header.items() if k not in UNTOLD})
        if header["kind"] == "part":
            yield from panel(header, payload)
            return
        yield "board " + facts
        for each in inside(header, payload) if header["kind"] == "board" else ():
            yield from panel(*each)
        if header["kind"] == "heads":
            codes = np.frombuffer(payload, np.uint8) / 255.0
            yield f"  pictures {codes.mean():.6g}, {math.sqrt((codes**2).mean()):.6g}"
        yield from with_it(header)


def with_it(header):
    if "told" in header:
        yield "settings " + as_json(header["told"])


def panel(header, payload):
    [matrix] = matrices({"panels": [header]}, payload)
    yield f"  panel {as_json({k: v for k, v in header.items() if k not in UNTOLD})} {in_short(matrix)}"


UNTOLD = ("key", "digest", "parts", "inside", "exponent", "told")
"""Of a board's header what is no fact of its own: an exponent is a power of two that turns at its edge."""


def table(element):
    frame = element.value
    yield "table " + as_json(json.loads(getattr(element.proto, "columns", "") or "{}"))
    yield "  " + " | ".join(map(str, frame.columns))
    for row in frame.itertuples(index=False):
        yield "  " + " | ".join(f"{each:.6g}" if isinstance(each, float) else str(each) for each in row)


WORDS = ("markdown", "caption", "latex", "title", "header", "subheader", "code", "text", "html")
ALERTS = ("error", "info", "success", "warning")
FACTS = ("label", "icon", "help", "placeholder", "disabled", "page", "query_string", "min", "max", "step")
CONTROLS = (
    *("button", "download_button", "page_link", "toggle", "checkbox", "number_input", "text_input", "text_area"),
    *("file_uploader", "slider", "select_slider", "selectbox", "button_group", "multiselect", "radio"),
)


def control(element):
    facts = {name: getattr(element.proto, name, None) for name in FACTS}
    if element.type == "slider":
        facts |= {name: getattr(element.proto, name) for name in ("min", "max", "step")}
    told = {name: fact for name, fact in facts.items() if fact}
    if element.type not in ("button", "download_button", "page_link", "file_uploader"):
        value = element.value
        if hasattr(element, "formatted_values"):
            value = list(element.formatted_values)
        elif value is not None and element.type in ("selectbox", "select_slider"):
            value = element.format_func(value)
        told["value"] = value if isinstance(value, int | float | str | list | None) else str(value)
    if options := getattr(element, "options", None):
        told["options"] = " · ".join(map(str, options)) if len(options) < 12 else list(map(str, options))
    return f"{element.type} {as_json(told)}"


def seen(picture):
    """A picture within Markdown by its mean colour, and how far its colours are apart."""
    colours = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture[1]))), dtype=float)
    return f"picture {colours.mean():.6g}, {colours.std():.6g}"


def drawn(picture):
    """A drawing within Markdown by the numbers it is made of."""
    return f"drawing {in_short(figures(base64.b64decode(picture[1]).decode()))}"


def lines(at):
    """What a page shows."""
    for part in (at.main, at.sidebar):
        yield f"== {part.type}"
        for element in walk(part):
            kind = element.type
            if kind == "code" and element.value.count("\n") > SNIPPET:
                yield f"code: {element.value.splitlines()[0]} …"  # a variant's source
            elif kind in WORDS and not element.value.startswith("<style>"):
                extra = getattr(element.proto, "help", "")
                yield f"{kind}: {DRAWING.sub(drawn, PICTURE.sub(seen, element.value))}" + (
                    f" (help: {extra})" if extra else ""
                )
            elif kind in ALERTS:
                yield f"{kind}: {element.proto.icon} {element.value}"
            elif kind in CONTROLS:
                yield control(element)
            elif kind == "plotly_chart":
                yield from chart(element)
            elif kind == "bidi_component":
                yield from board(element)
            elif kind in ("dataframe", "table"):
                yield from table(element)
            elif kind == "imgs":
                yield from (f"picture: {image.caption}" for image in element.proto.imgs)
            elif kind in ("popover", "expandable", "expander", "tab"):
                inner = getattr(element.proto, kind, element.proto)
                yield f"{kind}: {getattr(inner, 'icon', '')} {inner.label}"


def shown(address):
    """What an address opens, line by line, and the address that the page then writes."""
    page, _, query = address.partition("?")
    with patch("torch.cuda.is_available", return_value=False):  # a machine with more offers more
        at = visit(page, parse_qs(query, strict_parsing=bool(query)))
        found = [line for told in lines(at) for line in ROUNDING.sub("next to nothing", told).split("\n")]
        assert not at.exception
        assert not at.run().exception
    return [*found, "== address", urlencode(sorted(at.query_params.items()), doseq=True)]


def differences(before, now):
    """Where two pages differ: lines whose words do, or else lines in which a number does."""
    bare = [[NUMBER.sub("#", line) for line in page] for page in (before, now)]
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
def test_an_address_opens_what_it_always_did(address):
    found = differences(json.loads(RECORDED.read_text("utf-8"))[address], shown(address))
    assert not found, "\n".join([f"{address} opens something else (- recorded, + now):", *found])


def test_every_recorded_address_is_opened_and_every_page_among_them():
    assert list(json.loads(RECORDED.read_text("utf-8"))) == list(ADDRESSES)


if __name__ == "__main__":
    known = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() and sys.argv[1:] else {}
    wanted = [a for a in ADDRESSES if a not in known or any(word in a for word in sys.argv[1:])]
    pages = {address: shown(address) if address in wanted else known[address] for address in ADDRESSES}
    RECORDED.write_text(json.dumps(pages, ensure_ascii=False, indent=0) + "\n", "utf-8")
