"""The compiler driver: `build`, the compilation of kernels, and what both need from the host."""
