"""The Claims page: checks on the current input whether statements of articles about attention hold."""
