"""What links carry: the shared session, options and how an address is read and written."""
