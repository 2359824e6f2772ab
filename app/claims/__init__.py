"""The Claims page: what the articles say, tried on the visitor's input and judged by stated rules."""
