// RUN: RELAX_INVALID

// CHECK: 'relax.nn.max_pool2d' op operand #0 expected rank 4, got !relax.tensor<[n, 3, 8], f32>
relax.func @nn_max_pool2d_c1[%n](%x: !relax.tensor<[n, 3, 8], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @nn_max_pool2d_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], i1>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op layout expected a permutation of NCHW, got NCH
relax.func @nn_max_pool2d_c2[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCH"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op expected 2 window sizes of at least 1, got [2, 0]
relax.func @nn_max_pool2d_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 0]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op expected strides and dilations of at least 1
relax.func @nn_max_pool2d_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2] dilation = [0, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op expected a window within the padded data, got 2 and 1
relax.func @nn_max_pool2d_c2[%n](%x: !relax.tensor<[n, 3, 8, 1], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.adaptive_avg_pool2d' op expected 2 output sizes of at least 1, got [1]
relax.func @nn_adaptive_avg_pool2d_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.adaptive_avg_pool2d %x output_size = [1]
  relax.return %x
}
