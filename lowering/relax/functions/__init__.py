"""Functions: signatures, specialisation, inlining, closures."""
