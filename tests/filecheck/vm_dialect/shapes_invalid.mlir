// RUN: RELAX_INVALID

// CHECK: 'vm.tensor_dim' op axis 2 is out of range for type !vm.tensor<2, f32>
vm.func private @tensor_dim_c1(%t: !vm.tensor<2, f32>) {
  %n = vm.tensor_dim %t[2]
  vm.ret
}

// -----

// CHECK: 'vm.shape_dim' op axis -1 is out of range for type !vm.shape<_>
vm.func private @shape_dim_c1(%s: !vm.shape<_>) {
  %n = vm.shape_dim %s[-1]
  vm.ret
}

// -----

// CHECK: 'vm.read_int' op expected !vm.tensor<1, i64>, got !vm.tensor<1, i32>
vm.func private @read_int_c1(%t: !vm.tensor<1, i32>) {
  %n = vm.read_int %t[0]
  vm.ret
}

// -----

// CHECK: 'vm.read_int' op expected an index of 0 or more, got -1
vm.func private @read_int_c2(%t: !vm.tensor<1, i64>) {
  %n = vm.read_int %t[-1]
  vm.ret
}

// -----

// CHECK: 'vm.shape_of' op expected !vm.shape<2>, got !vm.shape<3>
vm.func private @shape_of_c1(%t: !vm.tensor<2, f32>) {
  %s = vm.shape_of %t : !vm.shape<3>
  vm.ret
}

// -----

// CHECK: 'vm.make_shape' op expected !vm.shape<1>, got !vm.shape<2>
vm.func private @make_shape_c1(%n: i64) {
  %s = vm.make_shape(%n) : !vm.shape<2>
  vm.ret
}
