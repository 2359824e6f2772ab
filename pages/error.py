"""Error: what does the cheap version cost in fidelity? Against its budget, the length, and the price."""

from app import input_panel, variant_picker
from app.fidelity import panel
from app.header import header
from app.text import _

panel.use_link()
header(_("What does the cheap version cost in fidelity?"))
variant_picker.show()
panel.show_options()
panel.show(input_panel.chosen())
