"""Entropy: does attention dilute as text grows?"""

from app import input_panel
from app.entropy import options, views
from app.header import header
from app.text import _

options.use_link()
header(_("Does attention dilute as text grows?"), options.show_display)
views.pick()
views.show(input_panel.chosen())
