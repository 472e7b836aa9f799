// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Shape values of dimensions, of tensors and of data.
// CHECK-LABEL: relax.func @shapes[
// CHECK-NEXT:      %0 = relax.shape [n, 4 * m]
// CHECK-NEXT:      %1 = relax.shape []
// CHECK-NEXT:      %2 = relax.shape_of %x
// CHECK-NEXT:      %3 = relax.shape_of %u
// CHECK-NEXT:      %4 = relax.shape_of %v
// CHECK-NEXT:      %5 = relax.tensor_to_shape %t
// CHECK-NEXT:      %6 = relax.tensor_to_shape %w
// CHECK-NEXT:      %7 = relax.shape_to_tensor %0
// CHECK-NEXT:      %8 = relax.shape_to_tensor %4
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "shapes"
// TYPES: "relax.shape"{{.*}} -> !relax.shape<[n, 4 * m]>
// TYPES: "relax.shape"{{.*}} -> !relax.shape<[]>
// TYPES: "relax.shape_of"{{.*}} -> !relax.shape<[n, 4]>
// TYPES: "relax.shape_of"{{.*}} -> !relax.shape<[_, m]>
// TYPES: "relax.shape_of"{{.*}} -> !relax.shape<*>
// TYPES: "relax.tensor_to_shape"{{.*}} -> !relax.shape<[_, _, _]>
// TYPES: "relax.tensor_to_shape"{{.*}} -> !relax.shape<*>
// TYPES: "relax.shape_to_tensor"{{.*}} -> !relax.tensor<[2], i64>
// TYPES: "relax.shape_to_tensor"{{.*}} -> !relax.tensor<[_], i64>
relax.func @shapes[%n, %m](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<[_, m], f32>, %v: !relax.tensor<*, _>, %t: !relax.tensor<[3], i64>, %w: !relax.tensor<[n], i64>) -> !relax.object {
  %0 = relax.shape [n, 4 * m]
  %1 = relax.shape []
  %2 = relax.shape_of %x
  %3 = relax.shape_of %u
  %4 = relax.shape_of %v
  %5 = relax.tensor_to_shape %t
  %6 = relax.tensor_to_shape %w
  %7 = relax.shape_to_tensor %0
  %8 = relax.shape_to_tensor %4
  relax.return %0
}

// Single dimensions and the number of elements.
// CHECK-LABEL: relax.func @dimensions[
// CHECK-NEXT:      %0 = relax.shape_get %s[0]
// CHECK-NEXT:      %1 = relax.shape_get %s[1]
// CHECK-NEXT:      %2 = relax.shape_get %u[7]
// CHECK-NEXT:      %3 = relax.size %x
// CHECK-NEXT:      %4 = relax.size %y
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "dimensions"
// TYPES: "relax.shape_get"{{.*}} -> !relax.prim<i64, n>
// TYPES: "relax.shape_get"{{.*}} -> !relax.prim<i64>
// TYPES: "relax.shape_get"{{.*}} -> !relax.prim<i64>
// TYPES: "relax.size"{{.*}} -> !relax.prim<i64, 4 * n>
// TYPES: "relax.size"{{.*}} -> !relax.prim<i64>
relax.func @dimensions[%n](%s: !relax.shape<[n, _]>, %u: !relax.shape<*>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[_], f32>) -> !relax.object {
  %0 = relax.shape_get %s[0]
  %1 = relax.shape_get %s[1]
  %2 = relax.shape_get %u[7]
  %3 = relax.size %x
  %4 = relax.size %y
  relax.return %0
}

// Tuples nest and may be empty.
// CHECK-LABEL: relax.func @tuples[
// CHECK-NEXT:      %0 = relax.tuple()
// CHECK-NEXT:      %1 = relax.tuple(%x, %0)
// CHECK-NEXT:      %2 = relax.tuple(%1, %x)
// CHECK-NEXT:      %3 = relax.tuple_get %2[0]
// CHECK-NEXT:      %4 = relax.tuple_get %3[0]
// CHECK-NEXT:      relax.return %4
// TYPES-LABEL: sym_name = "tuples"
// TYPES: "relax.tuple"{{.*}} -> !relax.tuple<>
// TYPES: "relax.tuple"{{.*}} -> !relax.tuple<!relax.tensor<[n], f32>, !relax.tuple<>>
// TYPES: "relax.tuple"{{.*}} -> !relax.tuple<!relax.tuple<!relax.tensor<[n], f32>, !relax.tuple<>>, !relax.tensor<[n], f32>>
// TYPES: "relax.tuple_get"{{.*}} -> !relax.tuple<!relax.tensor<[n], f32>, !relax.tuple<>>
// TYPES: "relax.tuple_get"{{.*}} -> !relax.tensor<[n], f32>
relax.func @tuples[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.tuple()
  %1 = relax.tuple(%x, %0)
  %2 = relax.tuple(%1, %x)
  %3 = relax.tuple_get %2[0]
  %4 = relax.tuple_get %3[0]
  relax.return %4
}
