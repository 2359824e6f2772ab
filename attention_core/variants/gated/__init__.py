"""Gated variants: recurrent networks whose state decays, or is partly erased, before each token is written."""
