"""How texts are translated, isolated and named on screen."""
