builtin.module {
  relax.func @pad[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2]
    %1 = relax.nn.pad %x pad_width = [1, 1, 0, -2] pad_value = 0.5
    %2 = relax.nn.pad %x pad_width = [1, 0, 1, 1] mode = "reflect"
    %3 = relax.nn.pad %u pad_width = [1, 0] mode = "replicate"
    relax.return %x
  }
}
