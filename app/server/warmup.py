"""Work done before the first visitor arrives: load modules and the default model, and compute the first screens."""

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
from attention_core.runtime.devices import use_threads


def warm_up() -> None:
    """Import what the pages need, load the default model and run it once."""
    use_threads()
    if workers := dispatch.workers():
        workers.start()  # This runs in parallel; workers have a low priority, so they do not delay this process.
    for module in pkgutil.walk_packages(app_package.__path__, "app."):
        if module.name not in ("app.main", "app.streamlit_app"):  # Importing these modules would run the app.
            importlib.import_module(module.name)
    page.discover()
    ac.all_variants()
    with contextlib.suppress(ac.LabError):  # If no model is installed, the pages show this error to the visitor.
        ac.inputs.from_text(presets.texts()["story"], model="minilm", layer=presets.LAYER)
    gc_tuning.freeze_objects("imports")


def read_presets() -> None:
    """Compute the results of a first visit for each preset text and each default model. Forked replicas share them.

    Visitors in a class start with the same controls: these texts, the model and the causal switch. The optional
    encoder is left out: with its records, the cache would have no room for the visitors' own texts.
    """
    for model in ac.inputs.models.DEFAULT_MODELS:
        for text, causal in product(presets.texts().values(), (False, True)):
            with contextlib.suppress(ac.LabError):
                _compute_views(ac.inputs.TextSource(text, model.key, presets.LAYER), causal)


def _compute_views(source: ac.inputs.TextSource, causal: bool) -> None:
    cached.head_miniatures(source.at_layer(0), causal, special=True)
    view = cached.MatrixView(source=source, head=presets.HEAD, causal=causal, special=True)
    for attention in first_variants():
        with contextlib.suppress(ac.LabError):
            cached.matrix(view, attention)
            cached.ranks(view, attention)
            cached.pattern(source, attention, head=view.head, causal=causal)
