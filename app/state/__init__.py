"""The app's state and its links: the options of each page, the options that all pages share, and addresses."""
