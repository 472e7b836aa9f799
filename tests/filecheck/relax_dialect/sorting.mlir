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
