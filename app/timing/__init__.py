"""The Timing page's parts: what is asked, the live run, and what the runs on screen say."""
