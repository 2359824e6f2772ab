"""What a process of the app loads before its first visitor."""

import contextlib
import importlib
import pkgutil
from itertools import product

import app as app_package
import attention_core as ac
from app import page
from app.jobs import cached, dispatch
from app.server import gc_tuning
from app.state import presets
from app.state.session import first_variants
from attention_core.benchmarking.device import use_threads


def warm_up() -> None:
    """Import what the pages need, load the default model and run it once."""
    use_threads()
    if workers := dispatch.workers():
        workers.start()  # it steps back, so that this process is warm first
    for module in pkgutil.walk_packages(app_package.__path__, "app."):
        if module.name not in ("app.main", "app.streamlit_app"):  # what runs, rather than what is shared
            importlib.import_module(module.name)
    page.discover()
    ac.all_variants()
    with contextlib.suppress(ac.LabError):  # where the models are not installed, the pages say so
        ac.inputs.from_text(presets.texts()["story"], model="minilm", layer=presets.LAYER)
    gc_tuning.settle("imports")


def read_presets() -> None:
    """Look at every text that a visitor can start from as a first visit does, with every model, which replicas share.

    A class moves the same first knobs: those texts, the model and the causal switch.
    """
    for model in ac.inputs.models.BUILT_IN:
        for text, causal in product(presets.texts().values(), (False, True)):
            with contextlib.suppress(ac.LabError):
                _look_at(ac.inputs.TextSource(text, model.key, presets.LAYER), causal)


def _look_at(source: ac.inputs.TextSource, causal: bool) -> None:
    cached.head_miniatures(source.at_layer(0), causal, special=False)
    view = cached.View(source=source, head=presets.HEAD, causal=causal, special=False)
    for attention in first_variants():
        with contextlib.suppress(ac.LabError):
            cached.matrix(view, attention)
            cached.ranks(view, attention)
            cached.pattern(source, attention, head=view.head, causal=causal)
