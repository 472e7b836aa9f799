"""Parts of a program handed to libraries: which parts, and how they are called."""
