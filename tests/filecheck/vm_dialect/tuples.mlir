// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: vm.func private @tuples
// CHECK-NEXT:    %p = vm.make_tuple(%t, %n)
// CHECK-NEXT:    %q = vm.make_tuple()
// CHECK-NEXT:    %f = vm.tuple_get %p[1]
vm.func private @tuples(%t: !vm.tensor<2, f32>, %n: i64) {
  %p = vm.make_tuple(%t, %n)
  %q = vm.make_tuple()
  %f = vm.tuple_get %p[1]
  vm.ret
}
