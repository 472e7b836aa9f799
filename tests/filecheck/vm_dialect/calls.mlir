// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: vm.func private @callee
vm.func private @callee(%n: i64, %x: !vm.object) -> !vm.tensor<_, _> {
  %t = vm.check_tensor %x
  vm.ret %t
}

// CHECK-LABEL: vm.func private @nothing
vm.func private @nothing() {
  vm.ret
}

// Calls of functions of the machine, with and without result; a tensor is passed where any value is expected.
// CHECK-LABEL: vm.func private @calls
// CHECK:         %r = vm.call @callee(%n, %t) : !vm.tensor<_, _>
// CHECK-NEXT:    vm.call @nothing()
vm.func private @calls(%n: i64, %t: !vm.tensor<2, f32>) {
  %r = vm.call @callee(%n, %t) : !vm.tensor<_, _>
  vm.call @nothing()
  vm.ret
}

// Sizes in brackets, then tensors and numbers.
// CHECK-LABEL: vm.func private @kernels
// CHECK:         vm.call_kernel @exp[%n, %n](%t, %t, %half, %yes, %n)
// CHECK-NEXT:    vm.call_kernel @fill(%t)
vm.func private @kernels(%n: i64, %t: !vm.tensor<2, f32>) {
  %half = vm.const 0.5 : f64
  %yes = vm.const true
  vm.call_kernel @exp[%n, %n](%t, %t, %half, %yes, %n)
  vm.call_kernel @fill(%t)
  vm.ret
}

// CHECK-LABEL: vm.func @packed
// CHECK:         %r = vm.call_packed "custom_add"(%x, %x) : !vm.object
// CHECK-NEXT:    vm.call_packed "custom print"()
vm.func @packed(%x: !vm.object) {
  %r = vm.call_packed "custom_add"(%x, %x) : !vm.object
  vm.call_packed "custom print"()
  vm.ret
}

// CHECK-LABEL: vm.func private @closures
// CHECK:         %f = vm.make_closure @callee(%n)
// CHECK-NEXT:    %g = vm.make_closure @nothing()
// CHECK-NEXT:    %r = vm.call_closure %f(%f) : !vm.object
// CHECK-NEXT:    vm.call_closure %g()
vm.func private @closures(%n: i64) {
  %f = vm.make_closure @callee(%n)
  %g = vm.make_closure @nothing()
  %r = vm.call_closure %f(%f) : !vm.object
  vm.call_closure %g()
  vm.ret
}
