"""Claims about attention restricted to some of the pairs."""
