"""The Masks page: which keys each query can attend to, and how far a stack of such layers reaches."""
