"""Entropy: does attention dilute as text grows?"""

from app import input_panel
from app.entropy import options, views
from app.header import header

options.use_link()
header(options.show_display)
views.pick()
views.show(input_panel.chosen())
