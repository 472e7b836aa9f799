builtin.module {
  relax.func @identity[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %s = relax.shape [n]
    %0 = relax.reshape %x, %s
    %1 = relax.flatten %0
    %2 = relax.permute_dims %1 axes = [0]
    %3 = relax.exp %2
    relax.return %3
  }
  relax.func @twice[%n, %m](%x: !relax.tensor<[2, n, m], f32>) -> !relax.object {
    %s = relax.shape [m, 2 * n]
    %0 = relax.flatten %x
    %1 = relax.reshape %0, %s
    %2 = relax.permute_dims %x
    %3 = relax.permute_dims %2 axes = [1, 0, 2]
    %4 = relax.permute_dims %2
    %5 = relax.exp %4
    %6 = relax.tanh %1
    %7 = relax.tuple(%6, %3, %5)
    relax.return %7
  }
  relax.func @stays(%x: !relax.tensor<[_], f32>, %s: !relax.shape<[_]>) -> !relax.object impure {
    %0 = relax.permute_dims %x axes = [0]
    relax.call_packed "change"(%0)
    %1 = relax.reshape %x, %s
    relax.return %1
  }
}
