"""A session of another process, as a screen of this one sees it."""
