"""Native mode: functions of the vm dialect become LLVM functions behind tvm-ffi entries."""
