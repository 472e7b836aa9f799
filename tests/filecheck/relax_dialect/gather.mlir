// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @gather[
// CHECK-NEXT:      %0 = relax.gather_elements %x, %i
// CHECK-NEXT:      %1 = relax.gather_elements %x, %i axis = -1
// CHECK-NEXT:      %2 = relax.gather_nd %x, %j
// CHECK-NEXT:      %3 = relax.gather_nd %x, %k batch_dims = 1
// CHECK-NEXT:      %4 = relax.gather_nd %x, %u
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "gather"
// TYPES: "relax.gather_elements"{{.*}} -> !relax.tensor<[m, 4], f32>
// TYPES: "relax.gather_elements"{{.*}} -> !relax.tensor<[m, 4], f32>
// TYPES: "relax.gather_nd"{{.*}} -> !relax.tensor<[m, 4], f32>
// TYPES: "relax.gather_nd"{{.*}} -> !relax.tensor<[n, m], f32>
// TYPES: "relax.gather_nd"{{.*}} -> !relax.tensor<*, f32>
relax.func @gather[%n, %m](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 4], i64>, %j: !relax.tensor<[m, 1], i64>, %k: !relax.tensor<[n, m, 1], i64>, %u: !relax.tensor<*, i64>) -> !relax.object {
  %0 = relax.gather_elements %x, %i
  %1 = relax.gather_elements %x, %i axis = -1
  %2 = relax.gather_nd %x, %j
  %3 = relax.gather_nd %x, %k batch_dims = 1
  %4 = relax.gather_nd %x, %u
  relax.return %x
}

// CHECK-LABEL: relax.func @scatter[
// CHECK-NEXT:      %0 = relax.scatter_elements %x, %i, %v
// CHECK-NEXT:      %1 = relax.scatter_elements %x, %i, %v axis = 1 reduction = "add"
// CHECK-NEXT:      %2 = relax.scatter_nd %x, %j, %v
// CHECK-NEXT:      %3 = relax.scatter_nd %x, %j, %v reduction = "max"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "scatter"
// TYPES: "relax.scatter_elements"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.scatter_elements"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.scatter_nd"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.scatter_nd"{{.*}} -> !relax.tensor<[n, 4], f32>
relax.func @scatter[%n, %m](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 4], i64>, %v: !relax.tensor<[m, 4], f32>, %j: !relax.tensor<[m, 1], i64>) -> !relax.object {
  %0 = relax.scatter_elements %x, %i, %v
  %1 = relax.scatter_elements %x, %i, %v axis = 1 reduction = "add"
  %2 = relax.scatter_nd %x, %j, %v
  %3 = relax.scatter_nd %x, %j, %v reduction = "max"
  relax.return %x
}

// CHECK-LABEL: relax.func @one_hot[
// CHECK-NEXT:      %on = relax.prim f32 1.0
// CHECK-NEXT:      %off = relax.prim f32 0.0
// CHECK-NEXT:      %0 = relax.one_hot %i, %on, %off depth = 10
// CHECK-NEXT:      %1 = relax.one_hot %i, %on, %off depth = n axis = 0
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "one_hot"
// TYPES: "relax.prim"{{.*}} -> !relax.prim<f32>
// TYPES: "relax.prim"{{.*}} -> !relax.prim<f32>
// TYPES: "relax.one_hot"{{.*}} -> !relax.tensor<[n, 2, 10], f32>
// TYPES: "relax.one_hot"{{.*}} -> !relax.tensor<[n, n, 2], f32>
relax.func @one_hot[%n](%i: !relax.tensor<[n, 2], i64>) -> !relax.object {
  %on = relax.prim f32 1.0
  %off = relax.prim f32 0.0
  %0 = relax.one_hot %i, %on, %off depth = 10
  %1 = relax.one_hot %i, %on, %off depth = n axis = 0
  relax.return %0
}

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
