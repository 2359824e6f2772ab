"""Line charts with a name at the end of each line. Repeated measurements become one line with a band."""
