"""GEMM of bytes and of `bf16` in dot-product groups: several numbers in 32 bits, multiplied by one instruction."""
