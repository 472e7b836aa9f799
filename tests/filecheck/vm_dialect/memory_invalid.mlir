// RUN: RELAX_INVALID

// CHECK: 'vm.alloc_tensor' op expected a result of rank 1, got !vm.tensor<2, f32>
vm.func private @alloc_tensor_c1(%s: !vm.storage, %n: i64) {
  %t = "vm.alloc_tensor"(%s, %n, %n) : (!vm.storage, i64, i64) -> !vm.tensor<2, f32>
  vm.ret
}

// -----

// CHECK: 'vm.alloc_tensor' op expected a known dtype, got !vm.tensor<1, _>
vm.func private @alloc_tensor_c2(%s: !vm.storage, %n: i64) {
  %t = vm.alloc_tensor %s at %n [%n] _
  vm.ret
}

// -----

// CHECK: 'vm.new_tensor' op expected a result of rank 0, got !vm.tensor<1, f32>
vm.func @new_tensor_c1() {
  %t = "vm.new_tensor"() : () -> !vm.tensor<1, f32>
  vm.ret
}

// -----

// CHECK: 'vm.new_tensor' op expected a known dtype, got !vm.tensor<0, _>
vm.func @new_tensor_c2() {
  %t = vm.new_tensor [] _
  vm.ret
}

// -----

// CHECK: 'vm.view' op expected a result of rank 1, got !vm.tensor<2, f32>
vm.func private @view_c1(%t: !vm.tensor<2, f32>, %n: i64) {
  %v = "vm.view"(%t, %n) : (!vm.tensor<2, f32>, i64) -> !vm.tensor<2, f32>
  vm.ret
}

// -----

// CHECK: 'vm.view' op expected the dtype of !vm.tensor<2, f32>, got !vm.tensor<1, f64>
vm.func private @view_c2(%t: !vm.tensor<2, f32>, %n: i64) {
  %v = vm.view %t [%n] f64
  vm.ret
}

// -----

// CHECK: 'vm.read_cond' op expected !vm.tensor<0, i1>, got !vm.tensor<1, i1>
vm.func private @read_cond_c1(%t: !vm.tensor<1, i1>) {
  %c = vm.read_cond %t
  vm.ret
}
