builtin.module {
  relax.func @activations[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[n], i8>, %s: !relax.tensor<[4], f32>) -> !relax.object {
    %0 = relax.nn.relu %x
    %1 = relax.nn.relu %i
    %2 = relax.nn.gelu %x
    %3 = relax.nn.gelu_tanh %x
    %4 = relax.nn.silu %x
    %5 = relax.nn.selu %x
    %6 = relax.nn.leakyrelu %x
    %7 = relax.nn.leakyrelu %x alpha = 0.25
    %8 = relax.nn.softplus %x beta = 2.0
    %9 = relax.nn.prelu %x, %s
    %10 = relax.clip %x min = 0.0 max = 6.0
    %11 = relax.clip %i min = -inf max = 6.0
    relax.return %x
  }
  relax.func @softmax[%n](%x: !relax.tensor<[n, _], f32>) -> !relax.object {
    %0 = relax.nn.softmax %x
    %1 = relax.nn.log_softmax %x axis = 0
    relax.return %x
  }
}
