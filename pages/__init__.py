"""The pages of the app, one folder each. The object ``PAGE`` in a folder's ``page.py`` declares the page."""
