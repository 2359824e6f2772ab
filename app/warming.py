"""What a process of the app loads before its first visitor."""

import contextlib
import importlib
import pkgutil

import app as app_package
import attention_core as ac
from app import compute, dispatch, garbage, page, presets
from attention_core.measure.device import use_threads


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
    garbage.settle("imports")


def read_presets() -> None:
    """Let every model read what a visitor can start from, which replicas then share."""
    for model in ac.inputs.models.BUILT_IN:
        for text in presets.texts().values():
            with contextlib.suppress(ac.LabError):
                compute.head_miniatures(ac.inputs.TextSource(text, model.key), model.causal, special=False)
