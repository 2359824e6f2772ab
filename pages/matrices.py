"""Matrices: where does each variant look? All on the same queries, keys and values."""

from app import comparison, comparison_more, input_panel, row_view, variant_picker
from app.header import header

comparison.use_link()
header(comparison.show_view_options)
variant_picker.show()

chosen = input_panel.chosen()
found = comparison.of(chosen)
comparison.show_board(found)
row_view.show(found.shown, found.names, found.words, found.labels, unit=found.unit)
comparison_more.show(found, chosen)
