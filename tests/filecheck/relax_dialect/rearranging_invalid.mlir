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
