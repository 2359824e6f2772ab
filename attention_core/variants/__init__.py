"""The attention variants, one file per variant, in one folder per family. The registry finds a new file by itself."""
