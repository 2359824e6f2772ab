"""The Masks page: which keys each query can attend to, and how far information travels through several layers."""
