"""``python -m attention_lab``: the command ``attention-lab``."""

from attention_lab.launch import main

main()
