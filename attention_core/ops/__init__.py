"""What several variants truly share. Knows tensors only, no variant and no registry."""
