"""Error: what does the cheap version cost in fidelity? Against its budget, the length, and the price."""
