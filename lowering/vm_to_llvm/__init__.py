"""Native mode: VM functions become LLVM functions behind tvm-ffi entries."""
