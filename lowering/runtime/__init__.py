"""The run-time support of compiled code, as LLVM IR: for kernels (`kernel/`) and for VM functions (`vm/`)."""
