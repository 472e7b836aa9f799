// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @places[
// CHECK-NEXT:      %0 = relax.index_tensor %x, %i
// CHECK-NEXT:      %1 = relax.index_tensor %x, %i, %j
// CHECK-NEXT:      %2 = relax.index_put %x, %v, %i, %j
// CHECK-NEXT:      %3 = relax.index_put %x, %v, %i, %j accumulate
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "places"
// TYPES: "relax.index_tensor"{{.*}} -> !relax.tensor<[m, 1, 4, 5], f32>
// TYPES: "relax.index_tensor"{{.*}} -> !relax.tensor<[m, 3, 5], f32>
// TYPES: "relax.index_put"{{.*}} -> !relax.tensor<[n, 4, 5], f32>
// TYPES: "relax.index_put"{{.*}} -> !relax.tensor<[n, 4, 5], f32>
relax.func @places[%n, %m](%x: !relax.tensor<[n, 4, 5], f32>, %i: !relax.tensor<[m, 1], i64>, %j: !relax.tensor<[3], i64>, %v: !relax.tensor<[m, 3, 5], f32>) -> !relax.object {
  %0 = relax.index_tensor %x, %i
  %1 = relax.index_tensor %x, %i, %j
  %2 = relax.index_put %x, %v, %i, %j
  %3 = relax.index_put %x, %v, %i, %j accumulate
  relax.return %x
}

// CHECK-LABEL: relax.func @slices[
// CHECK-NEXT:      %0 = relax.slice_scatter %x, %s start = 1 end = -1 step = 2 axis = 1
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "slices"
// TYPES: "relax.slice_scatter"{{.*}} -> !relax.tensor<[n, 10], f32>
relax.func @slices[%n](%x: !relax.tensor<[n, 10], f32>, %s: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.slice_scatter %x, %s start = 1 end = -1 step = 2 axis = 1
  relax.return %0
}
