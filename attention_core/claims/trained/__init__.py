"""Claims about trained models, one file each. They are judged on recorded training runs, not on an input."""
