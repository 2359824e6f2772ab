"""The browser component that shows an image as several variants return it, and to which pixels each pixel attends."""

from app.picture_board.pictures import Tile, picture_board

__all__ = ["Tile", "picture_board"]
