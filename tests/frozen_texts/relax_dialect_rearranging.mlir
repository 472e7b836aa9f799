builtin.module {
  relax.func @reversed[%n, %m](%x: !relax.tensor<[n, m, 4], f32>, %l: !relax.tensor<[n], i64>, %k: !relax.tensor<[m], i32>) -> !relax.object {
    %0 = relax.reverse_sequence %x, %l
    %1 = relax.reverse_sequence %x, %k seq_axis = 0 batch_axis = 1
    relax.return %x
  }
  relax.func @grids[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>, %z: !relax.tensor<[3], f32>) -> !relax.object {
    %a, %b, %c = relax.meshgrid %x, %y, %z
    %d, %e = relax.meshgrid %x, %y indexing = "xy"
    relax.return %x
  }
  relax.func @layouts[%n, %c, %h, %w](%x: !relax.tensor<[n, c, h, w], f32>, %y: !relax.tensor<[n, c, h, w, 8], f32>) -> !relax.object {
    %0 = relax.layout_transform %x source = "NCHW" target = "NCHW8c"
    %1 = relax.layout_transform %y source = "NCHW8c" target = "NHWC"
    relax.return %x
  }
  relax.func @samples[%n, %m, %k](%x: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[k, 1], f32>, %r: !relax.tensor<[k, 1], i64>) -> !relax.object {
    %0 = relax.multinomial_from_uniform %x, %u, %r
    %1 = relax.multinomial_from_uniform %x, %u, %r dtype = i32
    relax.return %x
  }
}
