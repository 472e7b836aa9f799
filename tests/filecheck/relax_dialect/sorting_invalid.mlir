// RUN: RELAX_INVALID

// CHECK: 'relax.sort' op axis 1 is out of range for rank 1
relax.func @sort_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.sort %x axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.argsort' op axis 1 is out of range for rank 1
relax.func @argsort_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.argsort %x axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.argsort' op property dtype expected an element type, got !relax.object
relax.func @argsort_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.argsort %x dtype = !relax.object
  relax.return %x
}

// -----

// CHECK: 'relax.topk' op axis 1 is out of range for rank 1
relax.func @topk_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0, %1 = relax.topk %x k = 1 axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.topk' op expected a k that is at most the dimension, got 5 and 4
relax.func @topk_c2(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0, %1 = relax.topk %x k = 5
  relax.return %x
}

// -----

// CHECK: 'relax.topk' op expected a k that is not negative, got -1
relax.func @topk_c2(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0, %1 = relax.topk %x k = -1
  relax.return %x
}

// -----

// CHECK: 'relax.topk' op property dtype expected an element type, got !relax.object
relax.func @topk_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0, %1 = relax.topk %x k = 1 dtype = !relax.object
  relax.return %x
}

// -----

// CHECK: 'relax.topk' op ret_type expected both, values or indices, got all
relax.func @topk_c4[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0, %1 = relax.topk %x k = 1 ret_type = "all"
  relax.return %x
}
