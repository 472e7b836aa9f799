builtin.module {
  relax.func @gather[%n, %m](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 4], i64>, %j: !relax.tensor<[m, 1], i64>, %k: !relax.tensor<[n, m, 1], i64>, %u: !relax.tensor<*, i64>) -> !relax.object {
    %0 = relax.gather_elements %x, %i
    %1 = relax.gather_elements %x, %i axis = -1
    %2 = relax.gather_nd %x, %j
    %3 = relax.gather_nd %x, %k batch_dims = 1
    %4 = relax.gather_nd %x, %u
    relax.return %x
  }
  relax.func @scatter[%n, %m](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[m, 4], i64>, %v: !relax.tensor<[m, 4], f32>, %j: !relax.tensor<[m, 1], i64>) -> !relax.object {
    %0 = relax.scatter_elements %x, %i, %v
    %1 = relax.scatter_elements %x, %i, %v axis = 1 reduction = "add"
    %2 = relax.scatter_nd %x, %j, %v
    %3 = relax.scatter_nd %x, %j, %v reduction = "max"
    relax.return %x
  }
  relax.func @one_hot[%n](%i: !relax.tensor<[n, 2], i64>) -> !relax.object {
    %on = relax.prim f32 1.0
    %off = relax.prim f32 0.0
    %0 = relax.one_hot %i, %on, %off depth = 10
    %1 = relax.one_hot %i, %on, %off depth = n axis = 0
    relax.return %0
  }
}
