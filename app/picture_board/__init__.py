"""The browser component that shows an image as several attention variants return it, with their attention maps."""

from app.picture_board.pictures import Tile, picture_board

__all__ = ["Tile", "picture_board"]
