"""The Learn page: tiny models with different attention variants, trained on small tasks."""
