"""The Error page: what the cheap version costs in fidelity."""
