"""The package that contains the web app in the wheel: the folders ``app`` and ``pages`` become its subpackages."""
