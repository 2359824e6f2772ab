"""The commands of ``python -m attention_core``: one file each."""
