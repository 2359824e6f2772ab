"""The Timing page: time and memory against sequence length, measured on this machine or recorded elsewhere."""
