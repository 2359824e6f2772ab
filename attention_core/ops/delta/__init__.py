"""Fast weights and the delta rule, which erases what a key reads before a value is written under it."""
