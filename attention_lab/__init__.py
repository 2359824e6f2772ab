"""The installed package: ``attention_lab/app`` and ``attention_lab/pages`` are the checkout's ``app`` and ``pages``."""
