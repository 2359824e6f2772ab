"""Causal: can it generate, and at what cost?"""

from app import input_panel
from app.causal import views
from app.header import header

views.use_link()
header(switch=False)
views.pick()
views.show(input_panel.chosen(switch=False))
