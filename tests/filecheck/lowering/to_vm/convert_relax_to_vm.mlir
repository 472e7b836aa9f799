// RUN: relax-opt %s -p convert-relax-to-vm --split-input-file --verify-diagnostics | filecheck %s

// Arguments are checked one by one, symbols become integers, memory and kernels instructions.
// CHECK-LABEL: vm.func @main(%x: !vm.object) -> !vm.tensor<1, f32> attributes {arg_names = ["x"]}
// CHECK-NEXT:    %[[x:.*]] = vm.check_tensor %x rank 1 dtype f32 as "main: argument #0 (x)"
// CHECK-NEXT:    %[[n:.*]] = vm.tensor_dim %[[x]][0]
// CHECK-NEXT:    %[[out:.*]] = vm.new_tensor [%[[n]]] f32
// CHECK-NEXT:    vm.call_kernel @exp[%[[n]]](%[[x]], %[[out]])
// CHECK-NEXT:    vm.ret %[[out]]
relax.func @main(%x: !relax.object) -> !relax.tensor<[_], f32> force_pure {
  %x_1, %n = relax.check_args(%x) : (!relax.tensor<[n], f32>) binds [n] names ["x"] of "main"
  %out = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.call_kernel @exp(%x_1, %out) sizes [n]
  relax.return %out
}
// Kernels stay.
// CHECK: tir.prim_func private @exp
tir.prim_func private @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// -----

// A size that several ops use is computed once.
// CHECK-LABEL: vm.func @sizes
// CHECK:         vm.int mul
// CHECK-NOT:     vm.int mul
// CHECK:         vm.ret
relax.func @sizes(%x: !relax.object) -> !relax.tensor<[_], f32> force_pure {
  %x_1, %n = relax.check_args(%x) : (!relax.tensor<[n], f32>) binds [n] names ["x"] of "sizes"
  %a = relax.alloc_tensor : !relax.tensor<[2 * n], f32>
  %b = relax.alloc_tensor : !relax.tensor<[2 * n], f32>
  relax.return %b
}

// -----

// Branches become blocks.
// CHECK-LABEL: vm.func @branch
// CHECK:         vm.read_cond
// CHECK-NEXT:    vm.if
// CHECK:         vm.ret
relax.func @branch(%c: !relax.object, %x: !relax.object) -> !relax.object force_pure {
  %c_1, %x_1 = relax.check_args(%c, %x) : (!relax.tensor<[], i1>, !relax.object) binds [] names ["c", "x"] of "branch"
  %0 = relax.if %c_1 {
    relax.yield %x_1
  } else {
    relax.yield %c_1
  } : !relax.object
  relax.return %0
}

// -----

// A tensor in a storage that leaves the call has memory of its own.
// CHECK-LABEL: vm.func @placed
// CHECK: vm.alloc_tensor %{{.*}} at
// CHECK: vm.new_tensor
relax.func @placed() -> !relax.tensor<[4], f32> force_pure {
  %s = relax.alloc_storage size 16
  %a = relax.storage_tensor %s at 0 : !relax.tensor<[4], f32>
  relax.kill %a
  %b = relax.storage_tensor %s at 0 : !relax.tensor<[4], f32>
  relax.return %b
}

// -----

// What has no form in the machine is refused at the op.
// CHECK: error: 'relax.exp' op
// CHECK: in @operator
relax.func @operator(%x: !relax.object) -> !relax.tensor<[_], f32> force_pure {
  %x_1, %n = relax.check_args(%x) : (!relax.tensor<[n], f32>) binds [n] names ["x"] of "operator"
  %0 = relax.exp %x_1
  relax.return %0
}
