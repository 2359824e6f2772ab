"""Inside: one variant taken apart, step by step, with its real intermediates on the input."""

from app import input_panel
from app.header import header
from app.inside import panel

panel.use_link()
header()
panel.choose()
chosen = input_panel.chosen()
panel.show(chosen)
