"""Causal: can it generate, and at what cost?"""

from app import input_panel
from app.causal import views
from app.header import header
from app.text import _

views.use_link()
header(_("Can it generate, and at what cost?"), switch=False)
views.pick()
views.show(input_panel.chosen())
