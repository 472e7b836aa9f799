// RUN: RELAX_INVALID

// CHECK: 'relax.gather_elements' op operand #1 expected an integer dtype, got f32
relax.func @gather_elements_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.gather_elements %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.gather_elements' op expected operands of one rank, got 1 and 2
relax.func @gather_elements_c2[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m], i64>) -> !relax.object {
  %0 = relax.gather_elements %x, %i
  relax.return %x
}

// -----

// CHECK: 'relax.gather_elements' op axis 2 is out of range for rank 2
relax.func @gather_elements_c2[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 4], i64>) -> !relax.object {
  %0 = relax.gather_elements %x, %i axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.gather_nd' op operand #1 expected an integer dtype, got f32
relax.func @gather_nd_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.gather_nd %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.gather_nd' op expected batch_dims within the ranks 2 and 2, got 2
relax.func @gather_nd_c2[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 1], i64>) -> !relax.object {
  %0 = relax.gather_nd %x, %i batch_dims = 2
  relax.return %x
}

// -----

// CHECK: 'relax.gather_nd' op expected at most 2 coordinates, got 3
relax.func @gather_nd_c3[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 3], i64>) -> !relax.object {
  %0 = relax.gather_nd %x, %i
  relax.return %x
}

// -----

// CHECK: 'relax.gather_nd' op expected equal batch dimensions, got 2 and 3
relax.func @gather_nd_c4(%x: !relax.tensor<[2, 4], f32>, %i: !relax.tensor<[3, 1], i64>) -> !relax.object {
  %0 = relax.gather_nd %x, %i batch_dims = 1
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_elements' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @scatter_elements_c1[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m], i64>, %v: !relax.tensor<[m], f16>) -> !relax.object {
  %0 = relax.scatter_elements %x, %i, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_elements' op expected operands of one rank, got 1 and 2
relax.func @scatter_elements_c2[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m, 1], i64>, %v: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.scatter_elements %x, %i, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_elements' op expected indices and updates of equal shapes, got 2 and 3
relax.func @scatter_elements_c3[%n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[2], i64>, %v: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.scatter_elements %x, %i, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_elements' op reduction expected one of update, add, mul, max, min, got sub
relax.func @scatter_elements_c4[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m], i64>, %v: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.scatter_elements %x, %i, %v reduction = "sub"
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_nd' op operand #1 expected an integer dtype, got f32
relax.func @scatter_nd_c1[%m, %n](%x: !relax.tensor<[n], f32>, %v: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.scatter_nd %x, %v, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_nd' op expected at most 1 coordinates, got 2
relax.func @scatter_nd_c2[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m, 2], i64>, %v: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.scatter_nd %x, %i, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_nd' op updates expected rank 2, got 1
relax.func @scatter_nd_c3[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 1], i64>, %v: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.scatter_nd %x, %i, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_nd' op expected updates with one slice per place, got 5 and 4
relax.func @scatter_nd_c3[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 1], i64>, %v: !relax.tensor<[m, 5], f32>) -> !relax.object {
  %0 = relax.scatter_nd %x, %i, %v
  relax.return %x
}

// -----

// CHECK: 'relax.scatter_nd' op reduction expected one of update, add, mul, max, min, got sub
relax.func @scatter_nd_c4[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m, 1], i64>, %v: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.scatter_nd %x, %i, %v reduction = "sub"
  relax.return %x
}

// -----

// CHECK: 'relax.one_hot' op operand #0 expected an integer dtype, got f32
relax.func @one_hot_c1[%n](%x: !relax.tensor<[n], f32>, %p: !relax.prim<f32>) -> !relax.object {
  %0 = relax.one_hot %x, %p, %p depth = 2
  relax.return %x
}

// -----

// CHECK: 'relax.one_hot' op expected on and off of one dtype, got f32 and i8
relax.func @one_hot_c2[%n](%x: !relax.tensor<[n], i64>, %p: !relax.prim<f32>, %q: !relax.prim<i8>) -> !relax.object {
  %0 = relax.one_hot %x, %p, %q depth = 2
  relax.return %x
}

// -----

// CHECK: 'relax.one_hot' op axis 2 is out of range for rank 2
relax.func @one_hot_c3[%n](%x: !relax.tensor<[n], i64>, %p: !relax.prim<f32>) -> !relax.object {
  %0 = relax.one_hot %x, %p, %p depth = 2 axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.one_hot' op expected a size that is not negative, got 0 and -1
relax.func @one_hot_c4[%n](%x: !relax.tensor<[n], i64>, %p: !relax.prim<f32>) -> !relax.object {
  %0 = relax.one_hot %x, %p, %p depth = -1
  relax.return %0
}

// -----

// CHECK: 'relax.gather_elements' op expected indices within the tensor along the other axes, got 5 and 4
relax.func @gather_elements_c3[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[2, 5], i64>) -> !relax.object {
  %0 = relax.gather_elements %x, %i
  relax.return %x
}

// -----

// CHECK: 'relax.gather_elements' op expected an axis with elements to index, got 8 and 0
relax.func @gather_elements_c3(%x: !relax.tensor<[0, 4], f32>, %i: !relax.tensor<[2, 4], i64>) -> !relax.object {
  %0 = relax.gather_elements %x, %i
  relax.return %x
}

// -----

// CHECK: 'relax.gather_nd' op expected dimensions with elements to index, got 3 and 0
relax.func @gather_nd_c5(%x: !relax.tensor<[0], f32>, %i: !relax.tensor<[3, 1], i64>) -> !relax.object {
  %0 = relax.gather_nd %x, %i
  relax.return %x
}

// -----

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
