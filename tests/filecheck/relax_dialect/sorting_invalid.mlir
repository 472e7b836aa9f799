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

// -----

// CHECK: 'relax.where' op operand #0 expected i1, got f32
relax.func @where_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.where %x, %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.where' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @where_c2[%n](%c: !relax.tensor<[n], i1>, %x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f16>) -> !relax.object {
  %0 = relax.where %c, %x, %y
  relax.return %c
}

// -----

// CHECK: 'relax.where' op dimensions 2 and 3 do not broadcast
relax.func @where_c3(%c: !relax.tensor<[2], i1>, %x: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.where %c, %x, %x
  relax.return %c
}

// -----

// CHECK: 'relax.argmax' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @argmax_c1[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.argmax %x
  relax.return %x
}

// -----

// CHECK: 'relax.argmax' op axis 1 is out of range for rank 1
relax.func @argmax_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.argmax %x axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.bucketize' op operand #1 expected rank 1, got !relax.tensor<[n, 4], f32>
relax.func @bucketize_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.bucketize %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.bucketize' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @bucketize_c2[%m, %n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f16>) -> !relax.object {
  %0 = relax.bucketize %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.argmax' op expected at least one element along each reduced axis, got 1 and 0
relax.func @argmax_c3[%n](%x: !relax.tensor<[n, 0], f32>) -> !relax.object {
  %0 = relax.argmax %x
  relax.return %x
}

// -----

// CHECK: 'relax.unique' op axis 1 is out of range for rank 1
relax.func @unique_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.unique %x axis = 1
  relax.return %x
}
