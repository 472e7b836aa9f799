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

// CHECK: 'relax.nn.adaptive_avg_pool1d' op expected an output size of at least 1, got 1 and 0
relax.func @nn_adaptive_avg_pool1d_c1[%n](%x: !relax.tensor<[n, 3, 8], f32>) -> !relax.object {
  %0 = relax.nn.adaptive_avg_pool1d %x output_size = [0]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op layout expected a permutation of NCHW with blocks of C at most, got NCH
relax.func @nn_max_pool2d_c2[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCH"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op expected a window size of at least 1, got 1 and 0
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

// CHECK: 'relax.nn.adaptive_avg_pool2d' op output_size expected 2 dimensions, got 1
relax.func @nn_adaptive_avg_pool2d_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.adaptive_avg_pool2d %x output_size = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op layout expected a permutation of NCHW with blocks of C at most, got NCHW4h
relax.func @nn_max_pool2d_c2[%n](%x: !relax.tensor<[n, 3, 8, 8, 4], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCHW4h"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.max_pool2d' op expected blocks c of 4, got 3 and 4
relax.func @nn_max_pool2d_c3[%n](%x: !relax.tensor<[n, 3, 8, 8, 3], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCHW4c"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.avg_pool2d' op expected channels in blocks of 4, got 6
relax.func @nn_avg_pool2d_c3[%n](%x: !relax.tensor<[n, 6, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.avg_pool2d %x pool_size = [2, 2] out_layout = "NCHW4c"
  relax.return %x
}

// -----

// CHECK: 'relax.grad.max_pool2d_backward' op operand #0 expected a floating-point dtype, got i32
relax.func @grad_max_pool2d_backward_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], i32>, %g: !relax.tensor<[n, 3, 7, 7], i32>) -> !relax.object {
  %0 = relax.grad.max_pool2d_backward %x, %g pool_size = [2, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.grad.avg_pool2d_backward' op expected operands of one dtype, got f32 and f64
relax.func @grad_avg_pool2d_backward_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %g: !relax.tensor<[n, 3, 7, 7], f64>) -> !relax.object {
  %0 = relax.grad.avg_pool2d_backward %x, %g pool_size = [2, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.grad.avg_pool2d_backward' op expected a gradient with the shape of the pooling's result, got 8 and 7
relax.func @grad_avg_pool2d_backward_c2[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %g: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.object {
  %0 = relax.grad.avg_pool2d_backward %x, %g pool_size = [2, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.grad.max_pool2d_backward' op operand #1 expected rank 4, got !relax.tensor<[n, 3, 7], f32>
relax.func @grad_max_pool2d_backward_c2[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %g: !relax.tensor<[n, 3, 7], f32>) -> !relax.object {
  %0 = relax.grad.max_pool2d_backward %x, %g pool_size = [2, 2]
  relax.return %x
}

// -----

// A window has to fit into the data, as in the pooling.
// CHECK: 'relax.grad.max_pool2d_backward' op expected a window within the padded data, got 9 and 8
relax.func @grad_max_pool2d_backward_c2[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %g: !relax.tensor<[n, 3, 7, 7], f32>) -> !relax.object {
  %0 = relax.grad.max_pool2d_backward %x, %g pool_size = [9, 2]
  relax.return %x
}
