"""The screens: the menu, the dashboard with its views, and the dialogs over them."""
