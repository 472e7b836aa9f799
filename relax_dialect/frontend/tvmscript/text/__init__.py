"""The text itself: where it comes from, its names, scopes and errors, and what is known from it alone."""
