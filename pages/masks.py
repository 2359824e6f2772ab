"""Masks: who may look at whom, and how far does it reach?"""

from app import input_panel, masks, masks_more, variant_picker
from app.header import header

masks.use_link()
masks_more.use_link()
header(masks.show_add_all)
variant_picker.show()

chosen = input_panel.chosen()
found = masks.of(chosen)
masks.show_board(found)
masks_more.show(found, chosen)
