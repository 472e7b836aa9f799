// RUN: RELAX_INVALID

// CHECK: 'relax.take' op operand #1 expected an integer dtype, got f32
relax.func @take_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.take %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.take' op expected an axis, as the operand has rank 2
relax.func @take_c2[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m], i64>) -> !relax.object {
  %0 = relax.take %x, %i
  relax.return %x
}

// -----

// CHECK: 'relax.take' op axis 2 is out of range for rank 2
relax.func @take_c2[%m, %n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m], i64>) -> !relax.object {
  %0 = relax.take %x, %i axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.take' op mode expected one of fast, wrap, clip, got slow
relax.func @take_c3[%m, %n](%x: !relax.tensor<[n], f32>, %i: !relax.tensor<[m], i64>) -> !relax.object {
  %0 = relax.take %x, %i mode = "slow"
  relax.return %x
}

// -----

// CHECK: 'relax.strided_slice' op axis 2 is out of range for rank 2
relax.func @strided_slice_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.strided_slice %x axes = [2] begin = [0] end = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.strided_slice' op expected each axis once, got [1, 1]
relax.func @strided_slice_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.strided_slice %x axes = [1, -1] begin = [0, 0] end = [1, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.strided_slice' op expected 2 begins, ends and strides, got 1, 2 and 2
relax.func @strided_slice_c2[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.strided_slice %x axes = [0, 1] begin = [0] end = [1, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.strided_slice' op expected strides that are not 0
relax.func @strided_slice_c3[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.strided_slice %x axes = [0] begin = [0] end = [1] strides = [0]
  relax.return %x
}

// -----

// CHECK: 'relax.dynamic_strided_slice' op operand #1 expected rank 1 and dtype i64, got !relax.tensor<[2], i32>
relax.func @dynamic_strided_slice_c1[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[2], i32>) -> !relax.object {
  %0 = relax.dynamic_strided_slice %x, %i, %i, %i
  relax.return %x
}

// -----

// CHECK: 'relax.dynamic_strided_slice' op expected one element per dimension, got 3 and 2
relax.func @dynamic_strided_slice_c2[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[3], i64>) -> !relax.object {
  %0 = relax.dynamic_strided_slice %x, %i, %i, %i
  relax.return %x
}

// -----

// CHECK: 'relax.take' op expected an axis with elements to take, got 3 and 0
relax.func @take_c4(%x: !relax.tensor<[0], f32>, %i: !relax.tensor<[3], i64>) -> !relax.object {
  %0 = relax.take %x, %i
  relax.return %x
}

// -----

// CHECK: 'relax.strided_slice' op expected places within the dimension, in the order of the stride, got 5 and 4
relax.func @strided_slice_c4(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.strided_slice %x axes = [0] begin = [2] end = [5] assume_inbound
  relax.return %x
}
