"""Error: what does the cheap version cost in fidelity? Against its price, its own knob, and the length."""
