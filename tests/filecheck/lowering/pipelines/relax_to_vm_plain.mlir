// RUN: relax-opt %s -p relax-to-vm-plain | filecheck %s
// RUN: relax-opt %s -p relax-to-vm-plain --print-debuginfo | filecheck %s --check-prefix PLACES

// A graph becomes one function that checks, allocates, calls kernels and returns.
// CHECK:      tir.prim_func @exp[%n](
// CHECK:      vm.func @main(%x: !vm.object) -> !vm.tensor<1, f32>
// CHECK-NEXT:   %[[x:.*]] = vm.check_tensor %x rank 1 dtype f32 as "main: argument #0 (x)"
// CHECK-NEXT:   %[[n:.*]] = vm.tensor_dim %[[x]][0]
// CHECK:        vm.call_kernel @exp[%[[n]]](%[[x]],
// CHECK:        vm.ret

// Every op knows the line that it was made from, in kernels and in the function.
// PLACES-NOT: loc(unknown){{$}}
// PLACES:     math.exp {{.*}} loc("{{.*}}relax_to_vm_plain.mlir":[[# @LINE + 11]]:3)
// PLACES-NOT: {{^ .*}}) loc(unknown){{$}}
// PLACES:     vm.tensor_dim {{.*}} loc("{{.*}}relax_to_vm_plain.mlir":[[# @LINE + 8]]:1)
// PLACES-NOT: {{^ .*}}) loc(unknown){{$}}
// PLACES:     vm.call_kernel @exp{{.*}} loc("{{.*}}relax_to_vm_plain.mlir":[[# @LINE + 7]]:3)
// PLACES-NOT: {{^ .*}}) loc(unknown){{$}}
// PLACES:     vm.call_kernel @multiply{{.*}} loc("{{.*}}relax_to_vm_plain.mlir":[[# @LINE + 6]]:3)
// PLACES-NOT: {{^ .*}}) loc(unknown){{$}}
// PLACES:     vm.ret {{.*}} loc("{{.*}}relax_to_vm_plain.mlir":[[# @LINE + 5]]:3)

relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  %1 = relax.multiply %0, %0
  relax.return %1
}
