builtin.module {
  relax.func @layers[%n, %c](%x: !relax.tensor<[n, 4 * c, 3, 5], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.nn.dropout %x
    %1 = relax.nn.dropout %x rate = 0.1
    %2 = relax.nn.batch_flatten %x
    %3 = relax.nn.batch_flatten %u
    %4 = relax.nn.pixel_shuffle %x upscale_factor = 2
    relax.return %x
  }
}
