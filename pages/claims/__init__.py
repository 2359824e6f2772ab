"""The Claims page: whether statements from articles about attention hold on the current input or for trained models."""
