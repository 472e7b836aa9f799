"""Code generation that all kernels share: the builder, bodies of stages, loop nests, vectors, prefetches."""
