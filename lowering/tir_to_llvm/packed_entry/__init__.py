"""The entry of a kernel that tvm-ffi calls, which checks all arguments."""
