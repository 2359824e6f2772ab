"""Error: what does the cheap version cost in fidelity? Against its budget, the length, and the price."""

from app import input_panel, variant_picker
from app.fidelity import panel
from app.header import header

panel.use_link()
header()
variant_picker.show()
panel.show_options()
panel.show(input_panel.chosen())
