builtin.module {
  relax.func @reshape[%n, %k](%x: !relax.tensor<[n, k], f32>, %u: !relax.tensor<*, f32>, %s: !relax.shape<[_, _]>, %t: !relax.shape<*>) -> !relax.object {
    %0 = relax.shape [k, n]
    %1 = relax.reshape %x, %0
    %2 = relax.reshape %x, %s
    %3 = relax.reshape %u, %0
    %4 = relax.reshape %u, %t
    %5 = relax.flatten %x
    %6 = relax.flatten %u
    relax.return %x
  }
  relax.func @permute[%n, %k](%x: !relax.tensor<[n, k, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.permute_dims %x
    %1 = relax.permute_dims %x axes = [0, -1, 1]
    %2 = relax.permute_dims %u axes = [1, 0]
    %3 = relax.permute_dims %u
    %4 = relax.flip %x axis = -1
    relax.return %x
  }
  relax.func @ones[%n](%x: !relax.tensor<[1, n, 1], f32>, %c: !relax.tensor<[1, 4, 1], f32>, %u: !relax.tensor<[_, n], f32>, %s: !relax.shape<[4, n, 5]>) -> !relax.object {
    %0 = relax.expand_dims %x axes = [0, -1]
    %1 = relax.squeeze %x axes = [0, -1]
    %2 = relax.squeeze %c
    %3 = relax.squeeze %x
    %4 = relax.squeeze %u axes = [0]
    %5 = relax.broadcast_to %x, %s
    relax.return %x
  }
}
