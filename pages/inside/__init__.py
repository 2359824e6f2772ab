"""The "Inside" page: walks through one attention variant step by step, with its real intermediates on the input."""
