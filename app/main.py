"""What the server runs for every visitor and at every move."""

from app import router

router.show()
