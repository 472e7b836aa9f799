// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// The dimensions of the indices stand where the axis was.
// CHECK-LABEL: relax.func @take[
// CHECK-NEXT:      %0 = relax.take %x, %i axis = 1
// CHECK-NEXT:      %1 = relax.take %x, %i axis = -2 mode = "clip"
// CHECK-NEXT:      %2 = relax.take %v, %i
// CHECK-NEXT:      %3 = relax.take %u, %i axis = 0
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "take"
// TYPES: "relax.take"{{.*}} -> !relax.tensor<[n, m, 2], f32>
// TYPES: "relax.take"{{.*}} -> !relax.tensor<[m, 2, k], f32>
// TYPES: "relax.take"{{.*}} -> !relax.tensor<[m, 2], f32>
// TYPES: "relax.take"{{.*}} -> !relax.tensor<*, f32>
relax.func @take[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %i: !relax.tensor<[m, 2], i64>, %v: !relax.tensor<[n], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.take %x, %i axis = 1
  %1 = relax.take %x, %i axis = -2 mode = "clip"
  %2 = relax.take %v, %i
  %3 = relax.take %u, %i axis = 0
  relax.return %x
}

// Places are clipped to the dimension, and negative ones count from the back, as in Python.
// CHECK-LABEL: relax.func @slices[
// CHECK-NEXT:      %0 = relax.strided_slice %x axes = [0] begin = [2] end = [7]
// CHECK-NEXT:      %1 = relax.strided_slice %x axes = [0] begin = [-3] end = [100]
// CHECK-NEXT:      %2 = relax.strided_slice %x axes = [0] begin = [9] end = [-9223372036854775808] strides = [-2]
// CHECK-NEXT:      %3 = relax.strided_slice %x axes = [0] begin = [7] end = [2]
// CHECK-NEXT:      %4 = relax.strided_slice %y axes = [0, 1] begin = [0, 1] end = [m, -1]
// CHECK-NEXT:      %5 = relax.strided_slice %y axes = [0] begin = [1] end = [9223372036854775807] strides = [2]
// CHECK-NEXT:      %6 = relax.strided_slice %y axes = [0] begin = [m] end = [2 * m] assume_inbound
// CHECK-NEXT:      %7 = relax.strided_slice %u axes = [0] begin = [0] end = [4]
// CHECK-NEXT:      %8 = relax.strided_slice %u axes = [-1] begin = [0] end = [4]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "slices"
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[5], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[3], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[5], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[0], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[min(m, n), 8], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[floordiv(n + 1 - min(n, 1), 2), 10], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[m, 10], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[_, 10], f32>
// TYPES: "relax.strided_slice"{{.*}} -> !relax.tensor<[_, 4], f32>
relax.func @slices[%n, %m](%z: !relax.prim<i64, m>, %x: !relax.tensor<[10], f32>, %y: !relax.tensor<[n, 10], f32>, %u: !relax.tensor<[_, 10], f32>) -> !relax.object {
  %0 = relax.strided_slice %x axes = [0] begin = [2] end = [7]
  %1 = relax.strided_slice %x axes = [0] begin = [-3] end = [100]
  %2 = relax.strided_slice %x axes = [0] begin = [9] end = [-9223372036854775808] strides = [-2]
  %3 = relax.strided_slice %x axes = [0] begin = [7] end = [2]
  %4 = relax.strided_slice %y axes = [0, 1] begin = [0, 1] end = [m, -1]
  %5 = relax.strided_slice %y axes = [0] begin = [1] end = [9223372036854775807] strides = [2]
  %6 = relax.strided_slice %y axes = [0] begin = [m] end = [2 * m] assume_inbound
  %7 = relax.strided_slice %u axes = [0] begin = [0] end = [4]
  %8 = relax.strided_slice %u axes = [-1] begin = [0] end = [4]
  relax.return %x
}

// CHECK-LABEL: relax.func @dynamic_slice[
// CHECK-NEXT:      %0 = relax.dynamic_strided_slice %x, %p, %p, %p
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "dynamic_slice"
// TYPES: "relax.dynamic_strided_slice"{{.*}} -> !relax.tensor<[_, _], f32>
relax.func @dynamic_slice[%n](%x: !relax.tensor<[n, 4], f32>, %p: !relax.tensor<[2], i64>) -> !relax.object {
  %0 = relax.dynamic_strided_slice %x, %p, %p, %p
  relax.return %x
}
