// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @where[
// CHECK-NEXT:      %0 = relax.where %c, %x, %y
// CHECK-NEXT:      %1 = relax.where %c, %y, %y
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "where"
// TYPES: "relax.where"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.where"{{.*}} -> !relax.tensor<[n, 1], f32>
relax.func @where[%n](%c: !relax.tensor<[n, 1], i1>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.where %c, %x, %y
  %1 = relax.where %c, %y, %y
  relax.return %0
}

// CHECK-LABEL: relax.func @places[
// CHECK-NEXT:      %0 = relax.argmax %x
// CHECK-NEXT:      %1 = relax.argmax %x axis = 1 keepdims
// CHECK-NEXT:      %2 = relax.argmin %x axis = 0
// CHECK-NEXT:      %3 = relax.bucketize %x, %b
// CHECK-NEXT:      %4 = relax.bucketize %x, %b out_int32 right
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "places"
// TYPES: "relax.argmax"{{.*}} -> !relax.tensor<[], i64>
// TYPES: "relax.argmax"{{.*}} -> !relax.tensor<[n, 1], i64>
// TYPES: "relax.argmin"{{.*}} -> !relax.tensor<[4], i64>
// TYPES: "relax.bucketize"{{.*}} -> !relax.tensor<[n, 4], i64>
// TYPES: "relax.bucketize"{{.*}} -> !relax.tensor<[n, 4], i32>
relax.func @places[%n](%x: !relax.tensor<[n, 4], f32>, %b: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.argmax %x
  %1 = relax.argmax %x axis = 1 keepdims
  %2 = relax.argmin %x axis = 0
  %3 = relax.bucketize %x, %b
  %4 = relax.bucketize %x, %b out_int32 right
  relax.return %0
}
