// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: vm.func private @shapes
// CHECK-NEXT:    %n = vm.tensor_dim %t[1]
// CHECK-NEXT:    %m = vm.shape_dim %s[7]
// CHECK-NEXT:    %a = vm.shape_of %t : !vm.shape<2>
// CHECK-NEXT:    %b = vm.make_shape(%n, %m) : !vm.shape<2>
// CHECK-NEXT:    %c = vm.make_shape() : !vm.shape<0>
// CHECK-NEXT:    %i = vm.read_int %v[2]
vm.func private @shapes(%t: !vm.tensor<2, f32>, %s: !vm.shape<_>, %v: !vm.tensor<1, i64>) {
  %n = vm.tensor_dim %t[1]
  %m = vm.shape_dim %s[7]
  %a = vm.shape_of %t : !vm.shape<2>
  %b = vm.make_shape(%n, %m) : !vm.shape<2>
  %c = vm.make_shape() : !vm.shape<0>
  %i = vm.read_int %v[2]
  vm.ret
}
