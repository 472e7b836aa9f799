builtin.module {
  relax.func @gradients[%n, %h, %p](%x: !relax.tensor<[n, 3, 6, h], f32>, %g: !relax.tensor<[n, 3, 3, p], f32>, %y: !relax.tensor<[n, 6, h, _], f32>, %z: !relax.tensor<*, _>) -> !relax.object {
    %0 = relax.grad.max_pool2d_backward %x, %g pool_size = [2, 2] strides = [2, 2]
    %1 = relax.grad.avg_pool2d_backward %x, %g pool_size = [n, 3] strides = [2, 2] padding = [1, 1, 1, 1] ceil_mode count_include_pad
    %2 = relax.grad.avg_pool2d_backward %y, %g pool_size = [2, 2] strides = [2, 2] layout = "NHWC" out_layout = "NCHW"
    %3 = relax.grad.max_pool2d_backward %z, %g pool_size = [2, 2]
    relax.return %x
  }
}
