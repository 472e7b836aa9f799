// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

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
