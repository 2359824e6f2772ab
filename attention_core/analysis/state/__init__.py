"""States of recurrent variants, token by token."""
