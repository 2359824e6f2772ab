"""How long work is scheduled, run, cached and shown."""
