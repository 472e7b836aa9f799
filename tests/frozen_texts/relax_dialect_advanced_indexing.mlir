builtin.module {
  relax.func @places[%n, %m](%x: !relax.tensor<[n, 4, 5], f32>, %i: !relax.tensor<[m, 1], i64>, %j: !relax.tensor<[3], i64>, %v: !relax.tensor<[m, 3, 5], f32>) -> !relax.object {
    %0 = relax.index_tensor %x, %i
    %1 = relax.index_tensor %x, %i, %j
    %2 = relax.index_put %x, %v, %i, %j
    %3 = relax.index_put %x, %v, %i, %j accumulate
    relax.return %x
  }
  relax.func @slices[%n](%x: !relax.tensor<[n, 10], f32>, %s: !relax.tensor<[n, 4], f32>) -> !relax.object {
    %0 = relax.slice_scatter %x, %s start = 1 end = -1 step = 2 axis = 1
    relax.return %0
  }
}
