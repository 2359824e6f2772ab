"""Claims from articles, one module each: how a claim is measured, when it holds, and the texts that are shown."""
