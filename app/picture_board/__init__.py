"""The browser component that shows a noisy image denoised by several attention variants, with their attention maps."""

from app.picture_board.pictures import Tile, picture_board

__all__ = ["Tile", "picture_board"]
