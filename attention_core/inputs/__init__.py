"""Inputs: text through a real model, synthetic sequences and uploads, all becoming one QKV record."""
