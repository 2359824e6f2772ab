"""Which pairs may attend, and how far information travels through layers."""
