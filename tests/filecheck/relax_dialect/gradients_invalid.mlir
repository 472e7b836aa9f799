// RUN: RELAX_INVALID

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
