// RUN: RELAX_INVALID

// CHECK: 'vm.check_tuple' op expected a size >= 0, got -1
vm.func @check_tuple_c1(%x: !vm.object) {
  %t = vm.check_tuple %x size -1
  vm.ret
}

// -----

// CHECK: 'vm.assert' op message has 2 marks for 1 integers
vm.func private @assert_c1(%c: i1, %n: i64) {
  vm.assert %c, "expected {}, got {}"(%n)
  vm.ret
}

// -----

// CHECK: 'vm.check_apart' op expected tensors of known rank and dtype, got !vm.tensor<_, f32>
vm.func @check_apart_c1(%x: !vm.object) {
  %t = vm.check_tensor %x rank 2 dtype f32
  %u = vm.check_tensor %x dtype f32
  vm.check_apart %t, %u, "overlap"
  vm.ret
}
