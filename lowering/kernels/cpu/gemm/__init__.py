"""Matrix products: packed panels and a register-tiled micro-kernel, and variants for few rows or columns."""
