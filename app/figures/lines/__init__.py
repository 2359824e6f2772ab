"""Line charts, the names at the ends of their lines, and the summary of repeated measurements as a line with a band."""
