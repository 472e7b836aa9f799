"""Matrix products: packed panels and a register-tiled micro-kernel, and variants for small M or small N."""
