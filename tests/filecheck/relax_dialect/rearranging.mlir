// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// The shape stays.
// CHECK-LABEL: relax.func @reversed[
// CHECK-NEXT:      %0 = relax.reverse_sequence %x, %l
// CHECK-NEXT:      %1 = relax.reverse_sequence %x, %k seq_axis = 0 batch_axis = 1
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "reversed"
// TYPES: "relax.reverse_sequence"{{.*}} -> !relax.tensor<[n, m, 4], f32>
// TYPES: "relax.reverse_sequence"{{.*}} -> !relax.tensor<[n, m, 4], f32>
relax.func @reversed[%n, %m](%x: !relax.tensor<[n, m, 4], f32>, %l: !relax.tensor<[n], i64>, %k: !relax.tensor<[m], i32>) -> !relax.object {
  %0 = relax.reverse_sequence %x, %l
  %1 = relax.reverse_sequence %x, %k seq_axis = 0 batch_axis = 1
  relax.return %x
}

// A dimension for each vector.
// CHECK-LABEL: relax.func @grids[
// CHECK-NEXT:      %a, %b, %c = relax.meshgrid %x, %y, %z
// CHECK-NEXT:      %d, %e = relax.meshgrid %x, %y indexing = "xy"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "grids"
// TYPES: "relax.meshgrid"{{.*}} -> (!relax.tensor<[n, m, 3], f32>, !relax.tensor<[n, m, 3], f32>, !relax.tensor<[n, m, 3], f32>)
// TYPES: "relax.meshgrid"{{.*}} -> (!relax.tensor<[m, n], f32>, !relax.tensor<[m, n], f32>)
relax.func @grids[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>, %z: !relax.tensor<[3], f32>) -> !relax.object {
  %a, %b, %c = relax.meshgrid %x, %y, %z
  %d, %e = relax.meshgrid %x, %y indexing = "xy"
  relax.return %x
}

// Blocks are rounded up.
// CHECK-LABEL: relax.func @layouts[
// CHECK-NEXT:      %0 = relax.layout_transform %x source = "NCHW" target = "NCHW8c"
// CHECK-NEXT:      %1 = relax.layout_transform %y source = "NCHW8c" target = "NHWC"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "layouts"
// TYPES: "relax.layout_transform"{{.*}} -> !relax.tensor<[n, floordiv(c + 7, 8), h, w, 8], f32>
// TYPES: "relax.layout_transform"{{.*}} -> !relax.tensor<[n, h, w, 8 * c], f32>
relax.func @layouts[%n, %c, %h, %w](%x: !relax.tensor<[n, c, h, w], f32>, %y: !relax.tensor<[n, c, h, w, 8], f32>) -> !relax.object {
  %0 = relax.layout_transform %x source = "NCHW" target = "NCHW8c"
  %1 = relax.layout_transform %y source = "NCHW8c" target = "NHWC"
  relax.return %x
}

// A sample for each number.
// CHECK-LABEL: relax.func @samples[
// CHECK-NEXT:      %0 = relax.multinomial_from_uniform %x, %u, %r
// CHECK-NEXT:      %1 = relax.multinomial_from_uniform %x, %u, %r dtype = i32
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "samples"
// TYPES: "relax.multinomial_from_uniform"{{.*}} -> !relax.tensor<[k, 1], i64>
// TYPES: "relax.multinomial_from_uniform"{{.*}} -> !relax.tensor<[k, 1], i32>
relax.func @samples[%n, %m, %k](%x: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[k, 1], f32>, %r: !relax.tensor<[k, 1], i64>) -> !relax.object {
  %0 = relax.multinomial_from_uniform %x, %u, %r
  %1 = relax.multinomial_from_uniform %x, %u, %r dtype = i32
  relax.return %x
}

// CHECK-LABEL: relax.func @pad[
// CHECK-NEXT:      %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2]
// CHECK-NEXT:      %1 = relax.nn.pad %x pad_width = [1, 1, 0, -2] pad_value = 0.5
// CHECK-NEXT:      %2 = relax.nn.pad %x pad_width = [1, 0, 1, 1] mode = "reflect"
// CHECK-NEXT:      %3 = relax.nn.pad %u pad_width = [1, 0] mode = "replicate"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "pad"
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[n, 7], f32>
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[n + 2, 2], f32>
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[n + 1, 6], f32>
// TYPES: "relax.nn.pad"{{.*}} -> !relax.tensor<[_], f32>
relax.func @pad[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2]
  %1 = relax.nn.pad %x pad_width = [1, 1, 0, -2] pad_value = 0.5
  %2 = relax.nn.pad %x pad_width = [1, 0, 1, 1] mode = "reflect"
  %3 = relax.nn.pad %u pad_width = [1, 0] mode = "replicate"
  relax.return %x
}

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
