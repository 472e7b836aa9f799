// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Elements in the text, or a name under which the tensor is kept elsewhere.
// CHECK-LABEL: relax.func @constants(
// CHECK-NEXT:      %0 = relax.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:      %1 = relax.constant dense<{{\[\[}}1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
// CHECK-NEXT:      %2 = relax.constant dense<true> : tensor<i1>
// CHECK-NEXT:      %3 = relax.constant dense<> : tensor<0x4xf32>
// CHECK-NEXT:      %4 = relax.constant dense<[1, 255]> : tensor<2xui8>
// CHECK-NEXT:      %5 = relax.constant "conv1.weight" : !relax.tensor<[64, 3, 7, 7], f32>
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "constants"
// TYPES: "relax.constant"{{.*}} -> !relax.tensor<[2], f32>
// TYPES: "relax.constant"{{.*}} -> !relax.tensor<[2, 3], i64>
// TYPES: "relax.constant"{{.*}} -> !relax.tensor<[], i1>
// TYPES: "relax.constant"{{.*}} -> !relax.tensor<[0, 4], f32>
// TYPES: "relax.constant"{{.*}} -> !relax.tensor<[2], ui8>
// TYPES: "relax.constant"{{.*}} -> !relax.tensor<[64, 3, 7, 7], f32>
relax.func @constants() -> !relax.object {
  %0 = relax.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %1 = relax.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
  %2 = relax.constant dense<true> : tensor<i1>
  %3 = relax.constant dense<> : tensor<0x4xf32>
  %4 = relax.constant dense<[1, 255]> : tensor<2xui8>
  %5 = relax.constant "conv1.weight" : !relax.tensor<[64, 3, 7, 7], f32>
  relax.return %0
}

// An i64 is a dimension, which its type shows; of other dtypes the dtype comes first.
// CHECK-LABEL: relax.func @prims[
// CHECK-NEXT:      %0 = relax.prim 4 * n
// CHECK-NEXT:      %1 = relax.prim -n
// CHECK-NEXT:      %2 = relax.prim -3
// CHECK-NEXT:      %3 = relax.prim f32 -0.5
// CHECK-NEXT:      %4 = relax.prim f64 1.0e-12
// CHECK-NEXT:      %5 = relax.prim bf16 inf
// CHECK-NEXT:      %6 = relax.prim i8 -7
// CHECK-NEXT:      %7 = relax.prim i1 true
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "prims"
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, 4 * n>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, -n>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i64, -3>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<f32>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<f64>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<bf16>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i8>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<i1>
relax.func @prims[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.prim 4 * n
  %1 = relax.prim -n
  %2 = relax.prim -3
  %3 = relax.prim f32 -0.5
  %4 = relax.prim f64 1.0e-12
  %5 = relax.prim bf16 inf
  %6 = relax.prim i8 -7
  %7 = relax.prim i1 true
  relax.return %0
}

// Values of which the type system knows nothing else.
// CHECK-LABEL: relax.func @objects(
// CHECK-NEXT:      %0 = relax.string "nearest \22one\22"
// CHECK-NEXT:      %1 = relax.dtype bf16
// CHECK-NEXT:      %2 = relax.null
// CHECK-NEXT:      relax.return %2
// TYPES-LABEL: sym_name = "objects"
// TYPES: "relax.string"{{.*}} -> !relax.object
// TYPES: "relax.dtype"{{.*}} -> !relax.object
// TYPES: "relax.null"{{.*}} -> !relax.object
relax.func @objects() -> !relax.object {
  %0 = relax.string "nearest \22one\22"
  %1 = relax.dtype bf16
  %2 = relax.null
  relax.return %2
}
