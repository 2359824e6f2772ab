"""Low-rank variants: landmarks, projections and pools stand for many tokens."""
