"""Low-rank variants: a few landmarks, projections or pools represent many tokens."""
