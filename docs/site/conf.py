"""Settings of Sphinx for the documentation: ``sphinx-build -W docs/site build/site``."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

import attention_core as ac

sys.path.insert(0, str(Path(__file__).parent))
import generated_pages

project = "Attention Lab"
copyright = "the authors of Attention Lab"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["README.md"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_title = "Attention Lab"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
napoleon_use_rtype = False
napoleon_use_ivar = True


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx reads its sources."""
    app.connect("builder-inited", lambda _: generated_pages.write(Path(app.srcdir) / "generated", ac.all_variants()))
