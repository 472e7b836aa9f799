// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @sorting[
// CHECK-NEXT:      %0 = relax.sort %x
// CHECK-NEXT:      %1 = relax.sort %x axis = 0 descending
// CHECK-NEXT:      %2 = relax.argsort %x
// CHECK-NEXT:      %3 = relax.argsort %x axis = 0 descending dtype = i32
// CHECK-NEXT:      %4, %5 = relax.topk %x k = 5
// CHECK-NEXT:      %6 = relax.topk %x k = n axis = 0 ret_type = "values" smallest
// CHECK-NEXT:      %7 = relax.topk %x k = 5 ret_type = "indices" dtype = i32
// CHECK-NEXT:      %8, %9 = relax.topk %u k = 5
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "sorting"
// TYPES: "relax.sort"{{.*}} -> !relax.tensor<[n, 10], f32>
// TYPES: "relax.sort"{{.*}} -> !relax.tensor<[n, 10], f32>
// TYPES: "relax.argsort"{{.*}} -> !relax.tensor<[n, 10], i64>
// TYPES: "relax.argsort"{{.*}} -> !relax.tensor<[n, 10], i32>
// TYPES: "relax.topk"{{.*}} -> (!relax.tensor<[n, 5], f32>, !relax.tensor<[n, 5], i64>)
// TYPES: "relax.topk"{{.*}} -> !relax.tensor<[n, 10], f32>
// TYPES: "relax.topk"{{.*}} -> !relax.tensor<[n, 5], i32>
// TYPES: "relax.topk"{{.*}} -> (!relax.tensor<*, f32>, !relax.tensor<*, i64>)
relax.func @sorting[%n](%x: !relax.tensor<[n, 10], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.sort %x
  %1 = relax.sort %x axis = 0 descending
  %2 = relax.argsort %x
  %3 = relax.argsort %x axis = 0 descending dtype = i32
  %4, %5 = relax.topk %x k = 5
  %6 = relax.topk %x k = n axis = 0 ret_type = "values" smallest
  %7 = relax.topk %x k = 5 ret_type = "indices" dtype = i32
  %8, %9 = relax.topk %u k = 5
  relax.return %x
}

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

// How many elements there are depends on the data.
// CHECK-LABEL: relax.func @sets[
// CHECK-NEXT:      %0 = relax.unique %x
// CHECK-NEXT:      %1 = relax.unique %x axis = 0
// CHECK-NEXT:      %2, %3, %4, %5 = relax.unique %x return_index return_inverse return_counts
// CHECK-NEXT:      %6, %7 = relax.unique %x axis = 1 return_inverse
// CHECK-NEXT:      %8 = relax.unique %u axis = 0
// CHECK-NEXT:      %9 = relax.nonzero %x
// CHECK-NEXT:      %10 = relax.nonzero %u
// CHECK-NEXT:      %11, %12 = relax.unique %x unsorted return_counts
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "sets"
// TYPES: "relax.unique"{{.*}} -> !relax.tensor<[_], f32>
// TYPES: "relax.unique"{{.*}} -> !relax.tensor<[_, 4], f32>
// TYPES: "relax.unique"{{.*}} -> (!relax.tensor<[_], f32>, !relax.tensor<[_], i64>, !relax.tensor<[4 * n], i64>, !relax.tensor<[_], i64>)
// TYPES: "relax.unique"{{.*}} -> (!relax.tensor<[n, _], f32>, !relax.tensor<[4], i64>)
// TYPES: "relax.unique"{{.*}} -> !relax.tensor<*, f32>
// TYPES: "relax.nonzero"{{.*}} -> !relax.tensor<[2, _], i64>
// TYPES: "relax.nonzero"{{.*}} -> !relax.tensor<[_, _], i64>
relax.func @sets[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.unique %x
  %1 = relax.unique %x axis = 0
  %2, %3, %4, %5 = relax.unique %x return_index return_inverse return_counts
  %6, %7 = relax.unique %x axis = 1 return_inverse
  %8 = relax.unique %u axis = 0
  %9 = relax.nonzero %x
  %10 = relax.nonzero %u
  %11, %12 = relax.unique %x unsorted return_counts
  relax.return %x
}
