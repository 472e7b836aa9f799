// RUN: relax-opt %s -p dce | filecheck %s

// A check stays though nobody uses its result; what only computes goes.
// CHECK-LABEL: vm.func @unused
// CHECK-NEXT:    vm.check_tensor
// CHECK-NEXT:    %{{.*}} = vm.check_int
// CHECK-NEXT:    vm.ret
vm.func @unused(%x: !vm.object) {
  %t = vm.check_tensor %x rank 1
  %n = vm.tensor_dim %t[0]
  %i = vm.check_int %x
  %two = vm.const 2 : i64
  %m = vm.int mul %i, %two
  %new = vm.new_tensor [%m] f32
  vm.ret
}
