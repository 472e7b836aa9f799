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

// The size of a tensor that is made is checked before, once; other checks of it stay where they are.
// CHECK-LABEL: vm.func @made
// CHECK:         %[[SIZE:.*]] = vm.int sub
// CHECK:         %[[OK:.*]] = vm.int le %{{.*}}, %[[SIZE]]
// CHECK-NEXT:    vm.assert %[[OK]], "made: a size that is not negative at {{.*}}: 0, n - 4 = {}"
// CHECK-NEXT:    vm.new_tensor [%[[SIZE]]] f32
// CHECK-NEXT:    vm.call_kernel @fill
// CHECK-NOT:     vm.assert {{.*}} not negative
// CHECK:         vm.assert %{{.*}}, "made: nine
// CHECK-NEXT:    vm.ret
tir.prim_func private @fill[%m](%Y: !tir.buffer<[m], f32>) {
}
relax.func @made(%x: !relax.object) -> !relax.tensor<[_], f32> force_pure {
  %x_1, %n = relax.check_args(%x) : (!relax.tensor<[n], f32>) binds [n] names ["x"] of "made"
  %0 = relax.alloc_tensor : !relax.tensor<[n - 4], f32>
  relax.call_kernel @fill(%0) sizes [n - 4]
  %1 = relax.guard %0, at_most 0, n - 4, "a size that is not negative"
  %2 = relax.guard %1, equal n, 9, "nine"
  relax.return %2
}

// -----

// The size of an arena is computed when what it is made of is checked, also by guards that stand behind it; not by those
// behind what others can observe.
// CHECK-LABEL: vm.func @ahead
// CHECK:         vm.assert %{{.*}}, "ahead: window at {{.*}}: 4, n = {}"
// CHECK:         %{{.*}} = vm.alloc_storage
// CHECK-NOT:     vm.assert
// CHECK:         vm.call_kernel @fill
// CHECK-NOT:     vm.assert
// CHECK:         vm.call_packed "look"
// CHECK:         vm.assert %{{.*}}, "ahead: nine
// CHECK-NEXT:    vm.kill
tir.prim_func private @fill[%m](%Y: !tir.buffer<[m], f32>) {
}
relax.func @ahead(%x: !relax.object) -> !relax.tensor<[_], f32> impure {
  %x_1, %n = relax.check_args(%x) : (!relax.tensor<[n], f32>) binds [n] names ["x"] of "ahead"
  %s = relax.alloc_storage size 4 * n - 12
  %0 = relax.storage_tensor %s at 0 : !relax.tensor<[n - 3], f32>
  relax.call_kernel @fill(%0) sizes [n - 3]
  %1 = relax.guard %0, at_most 4, n, "window"
  relax.kill %1
  %2 = relax.call_packed "look"(%x_1) : !relax.object
  %3 = relax.guard %x_1, equal n, 9, "nine"
  relax.kill %s
  relax.return %3
}

// -----

// A storage is no value that others may have.
// CHECK: error: 'relax.tuple' op operand #0 is a storage, which cannot leave its call
// CHECK: hint: put a tensor into it with 'relax.storage_tensor', and pass that on
relax.func @storage() -> !relax.object force_pure {
  %s = relax.alloc_storage size 64
  %t = relax.tuple(%s)
  relax.return %t
}

// -----

// A signature that says shapes has checks that no op makes, and symbols that no op binds.
// CHECK: error: 'relax.func' op has a signature with checks that are not explicit (in @unbound)
// CHECK: hint: run 'lower-shapes' before
relax.func @unbound[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[_], f32> force_pure {
  %0 = relax.alloc_tensor : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// So has the return of what is not known to be the result that is declared.
// CHECK: error: 'relax.return' op has a signature with checks that are not explicit (in @unchecked)
// CHECK: hint: run 'lower-shapes' before
relax.func @unchecked(%x: !relax.object) -> !relax.tensor<[_], f32> {
  relax.return %x
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
