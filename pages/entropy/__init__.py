"""The Entropy page: how far attention spreads as text grows, what a row would have to be divided by, what steers it."""
