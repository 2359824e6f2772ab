"""The Claims page: checks on the current input whether statements from articles about attention hold."""
