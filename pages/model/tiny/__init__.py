"""The view of the Model page that replaces the attention in a tiny model, which visitors can train on this server."""
