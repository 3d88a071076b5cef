"""Physics engines behind one protocol, from the same MJCF."""
