"""One file per variant, one folder per family. A new file here is a new variant everywhere."""
