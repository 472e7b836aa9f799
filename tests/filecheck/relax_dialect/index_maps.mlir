// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Quotients are rounded up, remainders have the length of their divisor; sums are as long as their greatest value.
// CHECK-LABEL: relax.func @maps[
// CHECK-NEXT:      %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NEXT:      %1 = relax.map_indices %x index_map = affine_map<(d0, d1) -> ((d0 floordiv 4), d1, (d0 mod 4))> pad_value = 0.5
// CHECK-NEXT:      %2 = relax.map_indices %y index_map = affine_map<(d0) -> ((d0 floordiv 4), (d0 mod 4))>
// CHECK-NEXT:      %3 = relax.map_indices %z index_map = affine_map<(d0, d1) -> (((d0 * 8) + d1))>
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "maps"
// TYPES: "relax.map_indices"{{.*}} -> !relax.tensor<[m, n], f32>
// TYPES: "relax.map_indices"{{.*}} -> !relax.tensor<[floordiv(n + 3, 4), m, 4], f32>
// TYPES: "relax.map_indices"{{.*}} -> !relax.tensor<[1, 4], i8>
// TYPES: "relax.map_indices"{{.*}} -> !relax.tensor<[8 * n], f32>
relax.func @maps[%n, %m](%x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[3], i8>, %z: !relax.tensor<[n, 8], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d1, d0)>
  %1 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0 floordiv 4, d1, d0 mod 4)> pad_value = 0.5
  %2 = relax.map_indices %y index_map = affine_map<(d0) -> (d0 floordiv 4, d0 mod 4)>
  %3 = relax.map_indices %z index_map = affine_map<(d0, d1) -> (d0 * 8 + d1)>
  relax.return %x
}

// The rank of the result is that of the map.
// CHECK-LABEL: relax.func @unknown(
// CHECK-NEXT:      %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0, (d1 floordiv 2), (d1 mod 2))>
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "unknown"
// TYPES: "relax.map_indices"{{.*}} -> !relax.tensor<[_, _, _], _>
relax.func @unknown(%x: !relax.tensor<*, _>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0, d1 floordiv 2, d1 mod 2)>
  relax.return %0
}
