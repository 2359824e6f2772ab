"""The delta rule: states that are corrected before they are written to."""
