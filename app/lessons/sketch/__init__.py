"""The canvas of a lesson on which visitors draw the curve they expect."""
