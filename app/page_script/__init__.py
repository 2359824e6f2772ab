"""The JavaScript and CSS of every page, and the Python code that sends them to the browser."""
