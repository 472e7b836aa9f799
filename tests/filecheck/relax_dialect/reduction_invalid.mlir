// RUN: RELAX_INVALID

// CHECK: 'relax.sum' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @sum_c1[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.sum %x
  relax.return %x
}

// -----

// CHECK: 'relax.mean' op operand #0 expected a floating-point dtype, got i64
relax.func @mean_c1[%n](%x: !relax.tensor<[n], i64>) -> !relax.object {
  %0 = relax.mean %x
  relax.return %x
}

// -----

// CHECK: 'relax.sum' op axis 2 is out of range for rank 2
relax.func @sum_c2[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.sum %x axes = [2]
  relax.return %x
}

// -----

// CHECK: 'relax.sum' op expected each axis once, got [1, 1]
relax.func @sum_c2[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.sum %x axes = [1, -1]
  relax.return %x
}

// -----

// CHECK: 'relax.cumsum' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @cumsum_c1[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.cumsum %x axis = 0
  relax.return %x
}

// -----

// CHECK: 'relax.cumsum' op dtype expected an integer or floating-point dtype, got i1
relax.func @cumsum_c1_dtype[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cumsum %x axis = 0 dtype = i1
  relax.return %x
}

// -----

// CHECK: 'relax.cumsum' op axis 1 is out of range for rank 1
relax.func @cumsum_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cumsum %x axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.max' op expected at least one element along each reduced axis, got 1 and 0
relax.func @max_c3[%n](%x: !relax.tensor<[n, 0], f32>) -> !relax.object {
  %0 = relax.max %x axes = [1]
  relax.return %x
}
