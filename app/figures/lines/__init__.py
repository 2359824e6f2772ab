"""Line charts: curves with bands, their names, and summaries of repeated measurements."""
