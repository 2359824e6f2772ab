"""Timing: when does the cheap version pay? Time and memory against length, measured here or recorded elsewhere."""
