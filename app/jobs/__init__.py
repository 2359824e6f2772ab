"""Scheduling, running, caching and drawing of long computations."""
