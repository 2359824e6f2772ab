"""Claims: is what the articles say true here?"""

from app import input_panel
from app.claims import views
from app.header import header
from app.text import _

views.use_link()
header(_("Is what the articles say true here?"), switch=False)
views.show(input_panel.chosen())
