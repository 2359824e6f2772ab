"""The entry point of ``python -m attention_lab``, which starts the web app like the command ``attention-lab``."""

from attention_lab.launch import main

main()
