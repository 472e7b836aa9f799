builtin.module {
  relax.func @convolutions[%n, %h](%x: !relax.tensor<[n, 3, 32, h], f32>, %w: !relax.tensor<[16, 3, 3, 3], f32>, %d: !relax.tensor<[16, 1, 3, 3], f32>, %y: !relax.tensor<[n, 16, 8, 8], f32>) -> !relax.object {
    %0 = relax.nn.conv2d %x, %w
    %1 = relax.nn.conv2d %x, %w strides = [2, 2] padding = [1, 1, 1, 1]
    %2 = relax.nn.conv2d %x, %w dilation = [2, 3] out_dtype = f64
    %3 = relax.nn.conv2d %y, %d groups = 16
    relax.return %x
  }
  relax.func @layouts[%n](%x: !relax.tensor<[n, 8, 9, 4], f32>, %w: !relax.tensor<[3, 3, 4, 16], f32>) -> !relax.object {
    %0 = relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO"
    %1 = relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO" out_layout = "NCHW"
    relax.return %x
  }
  relax.func @blocks[%n, %h](%x: !relax.tensor<[n, 3, h, 9], f32>, %f: !relax.tensor<[2, 3, 1, 1, 16], f32>, %w: !relax.tensor<[2, 2, 3, 3, 16, 16], f32>, %d: !relax.tensor<[2, 1, 3, 3, 16], f32>) -> !relax.object {
    %0 = relax.nn.conv2d %x, %f kernel_layout = "OIHW16o" out_layout = "NCHW16c"
    %1 = relax.nn.conv2d %0, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
    %2 = relax.nn.conv2d %1, %d groups = 32 data_layout = "NCHW16c" kernel_layout = "OIHW16o"
    %3 = relax.nn.conv2d %2, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o" out_layout = "NHWC"
    relax.return %3
  }
  relax.func @ranks[%n](%x: !relax.tensor<[n, 3, 10], f32>, %v: !relax.tensor<[8, 3, 5], f32>, %y: !relax.tensor<[n, 3, 6, 7, 8], f32>, %w: !relax.tensor<[8, 3, 2, 3, 4], f32>) -> !relax.object {
    %0 = relax.nn.conv1d %x, %v padding = [2, 2]
    %1 = relax.nn.conv3d %y, %w strides = [1, 2, 3]
    relax.return %x
  }
  relax.func @transposed[%n, %h](%a: !relax.tensor<[n, 4, 10], f32>, %u: !relax.tensor<[4, 8, 3], f32>, %b: !relax.tensor<[n, 4, 7, h], f32>, %v: !relax.tensor<[4, 2, 3, 3], f32>, %c: !relax.tensor<[n, 4, 5, 5, 5], f32>, %w: !relax.tensor<[4, 1, 2, 2, 2], f32>) -> !relax.object {
    %0 = relax.nn.conv1d_transpose %a, %u strides = [2]
    %1 = relax.nn.conv2d_transpose %b, %v output_padding = [1, 1] strides = [2, 2] padding = [1, 1, 1, 1] groups = 2
    %2 = relax.nn.conv3d_transpose %c, %w
    relax.return %a
  }
  relax.func @unknown(%x: !relax.tensor<*, f32>, %w: !relax.tensor<[_, _, 3, 3], f32>) -> !relax.object {
    %0 = relax.nn.conv2d %x, %w
    relax.return %0
  }
}
