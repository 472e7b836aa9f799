"""Writing code: loops, bodies of stages, vectors, and how work is shared out."""
