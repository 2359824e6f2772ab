"""The Home page: an introduction, a live sentence, links to all pages, and the gallery and family tree of variants."""
