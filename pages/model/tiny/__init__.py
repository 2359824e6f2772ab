"""The view of the Model page that replaces the attention of a tiny model trained on this server."""
