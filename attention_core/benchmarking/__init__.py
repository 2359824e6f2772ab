"""What a computation costs: operations and numbers held, time, memory."""
