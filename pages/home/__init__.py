"""The Home page: an introduction, an example sentence with attention weights, links to all pages, and all variants."""
