"""The terminal: commands, app, screens, panels and drawing."""
