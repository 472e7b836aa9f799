// RUN: RELAX_INVALID

// CHECK: Expected one of f64, i1, i64, but got i32
vm.func @const_c1() {
  %n = vm.const 4 : i32
  vm.ret
}

// -----

// CHECK: 'vm.dtype' op has no element type f80 at run time
vm.func @dtype_c1() {
  %d = vm.dtype f80
  vm.ret
}

// -----

// CHECK: 'vm.constant' op @constant_c1 expected a static shape, got tensor<?xf32>
vm.constant @constant_c1 : tensor<?xf32>

// -----

// CHECK: 'vm.constant' op @constant_c2 has no element type i7 at run time
vm.constant @constant_c2 : tensor<2xi7>

// -----

// CHECK: 'vm.constant' op @constant_c3 expected elements of tensor<2xf32>, got tensor<3xf32>
vm.constant @constant_c3 : tensor<2xf32> = dense<1.0> : tensor<3xf32>

// -----

// CHECK: 'vm.constant' op @constant_c4 expected elements or a tensor by name, got "text"
vm.constant @constant_c4 : tensor<2xf32> = "text"

// -----

// CHECK: 'vm.constant_tensor' op expected known rank and dtype, got !vm.tensor<_, f32>
vm.func @constant_tensor_c1() {
  %w = vm.constant_tensor @w : !vm.tensor<_, f32>
  vm.ret
}

// -----

// CHECK: 'vm.tensor' expected a rank >= 0, got -1
vm.func private @tensor_c1(%t: !vm.tensor<-1, f32>) {
  vm.ret
}

// -----

// CHECK: 'vm.tensor' has no element type f80 at run time
vm.func private @tensor_c2(%t: !vm.tensor<1, f80>) {
  vm.ret
}

// -----

// CHECK: 'vm.shape' expected a rank >= 0, got -2
vm.func private @shape_c1(%t: !vm.shape<-2>) {
  vm.ret
}
