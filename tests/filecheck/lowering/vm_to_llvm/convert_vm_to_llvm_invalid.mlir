// RUN: relax-opt %s -p convert-vm-to-llvm --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'vm.call_packed' op operand #1 is a tensor in a storage, which native code cannot let out of its call
// CHECK: hint: make the tensor with 'vm.new_tensor', which may leave the call
vm.func @escape(%x : !vm.object) {
  %n = vm.const 4
  %zero = vm.const 0
  %s = vm.alloc_storage %n
  %t = vm.alloc_tensor %s at %zero [%n] i8
  %v = vm.view %t [%n] i8
  vm.call_packed "keep"(%x, %v)
  vm.ret
}

// -----

// CHECK: 'vm.call_kernel' op @f expects 1 arguments, got 2
llvm.func @f(!llvm.ptr) -> i32
vm.func @arguments(%x : !vm.object) {
  %t = vm.check_tensor %x rank 1 dtype f32
  vm.call_kernel @f(%t, %t)
  vm.ret
}

// -----

// CHECK: 'vm.call_kernel' op @f expects an argument of type !llvm.ptr, got i64
llvm.func @f(!llvm.ptr) -> i32
vm.func @kind() {
  %n = vm.const 4
  vm.call_kernel @f(%n)
  vm.ret
}

// -----

// CHECK: 'vm.call_kernel' op @f is a 'tir.prim_func'
// CHECK: hint: run 'convert-tir-to-llvm' before
tir.prim_func @f(%X: !tir.buffer<[4], f32>) {
}
vm.func @order(%x : !vm.object) {
  %t = vm.check_tensor %x rank 1 dtype f32
  vm.call_kernel @f(%t)
  vm.ret
}

// -----

// CHECK: 'vm.func' op has a storage among its block arguments, which native code cannot pass on
// CHECK: hint: make the storage with 'vm.alloc_storage' where tensors are placed in it
vm.func private @place(%s : !vm.storage) {
  %zero = vm.const 0
  %t = vm.alloc_tensor %s at %zero [%zero] i8
  vm.ret
}
