// RUN: RELAX_INVALID

// CHECK: 'relax.reverse_sequence' op expected each axis once, got [0, 0]
relax.func @reverse_sequence_c1[%n, %m](%x: !relax.tensor<[n, m], f32>, %l: !relax.tensor<[n], i64>) -> !relax.object {
  %0 = relax.reverse_sequence %x, %l seq_axis = 0
  relax.return %x
}

// -----

// CHECK: 'relax.reverse_sequence' op operand #1 expected an integer dtype, got f32
relax.func @reverse_sequence_c2[%n, %m](%x: !relax.tensor<[n, m], f32>, %l: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.reverse_sequence %x, %l
  relax.return %x
}

// -----

// CHECK: 'relax.reverse_sequence' op operand #1 expected rank 1, got !relax.tensor<[n, 1], i64>
relax.func @reverse_sequence_c2[%n, %m](%x: !relax.tensor<[n, m], f32>, %l: !relax.tensor<[n, 1], i64>) -> !relax.object {
  %0 = relax.reverse_sequence %x, %l
  relax.return %x
}

// -----

// CHECK: 'relax.meshgrid' op operand #0 expected rank 1, got !relax.tensor<[n, m], f32>
relax.func @meshgrid_c1[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.meshgrid %x
  relax.return %x
}

// -----

// CHECK: 'relax.meshgrid' op indexing expected ij or xy, got yx
relax.func @meshgrid_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.meshgrid %x indexing = "yx"
  relax.return %x
}

// -----

// CHECK: 'relax.layout_transform' op target expected capitals and blocks of them, got NC4w
relax.func @layout_transform_c1[%n, %c](%x: !relax.tensor<[n, c], f32>) -> !relax.object {
  %0 = relax.layout_transform %x source = "NC" target = "NC4w"
  relax.return %x
}

// -----

// CHECK: 'relax.layout_transform' op expected layouts of the same dimensions
relax.func @layout_transform_c1[%n, %c](%x: !relax.tensor<[n, c], f32>) -> !relax.object {
  %0 = relax.layout_transform %x source = "NC" target = "NCH"
  relax.return %x
}

// -----

// CHECK: 'relax.layout_transform' op operand #0 expected rank 2, got !relax.tensor<[n, c, h], f32>
relax.func @layout_transform_c2[%n, %c, %h](%x: !relax.tensor<[n, c, h], f32>) -> !relax.object {
  %0 = relax.layout_transform %x source = "NC" target = "CN"
  relax.return %x
}

// -----

// CHECK: 'relax.layout_transform' op expected blocks c of 4, got 3 and 4
relax.func @layout_transform_c2[%n, %c](%x: !relax.tensor<[n, c, 3], f32>) -> !relax.object {
  %0 = relax.layout_transform %x source = "NC4c" target = "CN"
  relax.return %x
}

// -----

// CHECK: 'relax.multinomial_from_uniform' op expected one column, got 2 and 1
relax.func @multinomial_from_uniform_c1[%n, %m, %k](%x: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[k, 2], f32>, %r: !relax.tensor<[k, 1], i64>) -> !relax.object {
  %0 = relax.multinomial_from_uniform %x, %u, %r
  relax.return %x
}

// -----

// CHECK: 'relax.multinomial_from_uniform' op operand #2 expected an integer dtype, got f32
relax.func @multinomial_from_uniform_c2[%n, %m, %k](%x: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[k, 1], f32>, %r: !relax.tensor<[k, 1], f32>) -> !relax.object {
  %0 = relax.multinomial_from_uniform %x, %u, %r
  relax.return %x
}

// -----

// CHECK: 'relax.multinomial_from_uniform' op expected at least one place, got 1 and 0
relax.func @multinomial_from_uniform_c3[%n, %k](%x: !relax.tensor<[n, 0], f32>, %u: !relax.tensor<[k, 1], f32>, %r: !relax.tensor<[k, 1], i64>) -> !relax.object {
  %0 = relax.multinomial_from_uniform %x, %u, %r
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected 4 pad widths, got 2
relax.func @nn_pad_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [1, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op mode expected one of constant, reflect, replicate, circular, got edge
relax.func @nn_pad_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [1, 1] mode = "edge"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension that does not become negative, got 0 and -1
relax.func @nn_pad_c3(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [-3, 4] mode = "reflect"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension with an element to repeat, got 1 and 0
relax.func @nn_pad_c4(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [-2, 4] mode = "reflect"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension that does not become negative, got 0 and -1
relax.func @nn_pad_c3(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [-1, -2]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension with an element to repeat, got 1 and 0
relax.func @nn_pad_c4(%x: !relax.tensor<[0], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [1, 0] mode = "reflect"
  relax.return %0
}

// -----

// CHECK: 'relax.map_indices' op index_map expected 2 indices, got (d0) -> (d0)
relax.func @map_indices_c1[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0) -> (d0)>
  relax.return %x
}

// -----

// CHECK: 'relax.map_indices' op index_map expected no symbols, got (d0)[s0] -> ((d0 + s0))
relax.func @map_indices_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0)[s0] -> (d0 + s0)>
  relax.return %x
}

// -----

// CHECK: 'relax.map_indices' op expected an index_map that sends no two elements to one place, got (d0, d1) -> (((d0 * 8) + d1))
relax.func @map_indices_c2[%n](%x: !relax.tensor<[n, 9], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0 * 8 + d1)>
  relax.return %x
}

// -----

// CHECK: 'relax.map_indices' op expected an index_map whose indices are at least 0 and bounded, got (d0) -> ((d0 + -1))
relax.func @map_indices_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0) -> (d0 - 1)>
  relax.return %x
}
