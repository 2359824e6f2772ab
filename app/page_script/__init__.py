"""The JavaScript and CSS that every page has, and how they reach the browser."""
