"""claims."""

from app.header import header

header("claims")
