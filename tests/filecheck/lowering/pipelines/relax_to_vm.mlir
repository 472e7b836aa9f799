// RUN: relax-opt %s -p relax-to-vm | filecheck %s
// RUN: relax-opt %s -p relax-to-vm --print-debuginfo | filecheck %s --check-prefix PLACES

// Operators on constants are computed now, and what can be computed together is one kernel, which knows the number, and
// all the lines that it was made from.
// CHECK-NOT:  vm.constant
// CHECK:      tir.prim_func @fused_multiply_exp[%n](
// CHECK:        arith.constant 6.000000e+00 : f32
// CHECK-NOT:  tir.prim_func
// CHECK:      vm.func @main(%x: !vm.object) -> !vm.tensor<1, f32>
// CHECK:        vm.call_kernel @fused_multiply_exp
// CHECK-NOT:    vm.call_kernel
// CHECK:        vm.ret
// PLACES: vm.call_kernel {{.*}} loc(fused["{{.*}}":[[# @LINE + 5]]:3, "{{.*}}":[[# @LINE + 6]]:3])
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %two = relax.constant dense<2.0> : tensor<f32>
  %three = relax.constant dense<3.0> : tensor<f32>
  %six = relax.multiply %two, %three
  %0 = relax.multiply %x, %six
  %1 = relax.exp %0
  relax.return %1
}
