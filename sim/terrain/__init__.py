"""Generated ground: its tiles, where worlds stand on it, and a scan of its heights."""
