"""Claims about the delta rule, which removes the value that is stored for a key before it stores a new one."""
