"""Translation, isolation and naming of texts on screen."""
