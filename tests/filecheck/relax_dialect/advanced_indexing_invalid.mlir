// RUN: RELAX_INVALID

// CHECK: 'relax.index_tensor' op expected 1 to 1 index operands, got 0
relax.func @index_tensor_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.index_tensor %x
  relax.return %x
}

// -----

// CHECK: 'relax.index_tensor' op expected 1 to 1 index operands, got 2
relax.func @index_tensor_c1[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m], i64>) -> !relax.object {
  %0 = relax.index_tensor %x, %i, %i
  relax.return %x
}

// -----

// CHECK: 'relax.index_tensor' op operand #1 expected an integer dtype, got f32
relax.func @index_tensor_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.index_tensor %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.index_tensor' op dimensions 2 and 3 do not broadcast
relax.func @index_tensor_c2[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[2], i64>, %j: !relax.tensor<[3], i64>) -> !relax.object {
  %0 = relax.index_tensor %x, %i, %j
  relax.return %x
}

// -----

// CHECK: 'relax.index_put' op expected 1 to 1 index operands, got 0
relax.func @index_put_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.index_put %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.index_put' op dimensions 2 and 3 do not broadcast
relax.func @index_put_c2[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[2], i64>, %j: !relax.tensor<[3], i64>) -> !relax.object {
  %0 = relax.index_put %x, %x, %i, %j
  relax.return %x
}

// -----

// CHECK: 'relax.index_put' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @index_put_c3[%m, %n](%x: !relax.tensor<[n], f32>, %v: !relax.tensor<[m], f16>, %i: !relax.tensor<[m], i64>) -> !relax.object {
  %0 = relax.index_put %x, %v, %i
  relax.return %x
}

// -----

// CHECK: 'relax.index_put' op expected a dimension that is 1 or the one of the shape, got 3 and 2
relax.func @index_put_c4[%n](%x: !relax.tensor<[n], f32>, %v: !relax.tensor<[3], f32>, %i: !relax.tensor<[2], i64>) -> !relax.object {
  %0 = relax.index_put %x, %v, %i
  relax.return %x
}

// -----

// CHECK: 'relax.index_put' op operand #1 expected rank 1 or less, got !relax.tensor<[1, 2], f32>
relax.func @index_put_c4[%n](%x: !relax.tensor<[n], f32>, %v: !relax.tensor<[1, 2], f32>, %i: !relax.tensor<[2], i64>) -> !relax.object {
  %0 = relax.index_put %x, %v, %i
  relax.return %x
}

// -----

// CHECK: 'relax.slice_scatter' op expected operands of one rank, got 1 and 2
relax.func @slice_scatter_c1[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.slice_scatter %x, %s start = 0 end = 1
  relax.return %x
}

// -----

// CHECK: 'relax.slice_scatter' op axis 2 is out of range for rank 2
relax.func @slice_scatter_c2[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.slice_scatter %x, %x start = 0 end = 1 axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.slice_scatter' op expected a step of at least 1, got 0
relax.func @slice_scatter_c3[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.slice_scatter %x, %x start = 0 end = 1 step = 0
  relax.return %x
}

// -----

// CHECK: 'relax.slice_scatter' op expected a source of the slice's shape, got 4 and 1
relax.func @slice_scatter_c4[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.slice_scatter %x, %x start = 0 end = 1 axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.index_tensor' op expected dimensions with elements to index, got 2 and 0
relax.func @index_tensor_c3(%x: !relax.tensor<[4, 0], f32>, %i: !relax.tensor<[2], i64>) -> !relax.object {
  %0 = relax.index_tensor %x, %i, %i
  relax.return %0
}
