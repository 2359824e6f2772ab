"""Measurements of a computation's cost: operations, time and memory."""
