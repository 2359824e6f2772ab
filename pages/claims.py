"""Claims: is what the articles say true here?"""

from app import input_panel
from app.claims import views
from app.header import header

views.use_link()
header(switch=False)
views.show(input_panel.chosen(switch=False))
