"""Code generation that all kernels share: the builder, bodies of stages, vectorisation, work partition, prefetches."""
