"""Functions that analyse approximations of attention by low-rank factors or by feature maps."""
