"""inside."""

from app.header import header

header("inside")
