"""The attention variants: one file per variant, one folder per family. A new file is found automatically."""
