"""Runs the command ``attention-lab``, which starts the web app, as ``python -m attention_lab``."""

from attention_lab.launch import main

main()
