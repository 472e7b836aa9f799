builtin.module {
  relax.func @reductions[%n](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[n, 4], i64>, %u: !relax.tensor<[_, n], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.sum %x
    %1 = relax.sum %i axes = [1]
    %2 = relax.prod %x axes = [-1] keepdims
    %3 = relax.max %x keepdims
    %4 = relax.min %u axes = [1]
    %5 = relax.mean %x axes = [0, 1]
    %6 = relax.variance %x axes = []
    %7 = relax.std %v
    %8 = relax.median %v axes = [0] keepdims
    relax.return %x
  }
  relax.func @running[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<[_, 4], i32>) -> !relax.object {
    %0 = relax.cumsum %x axis = 0 exclusive
    %1 = relax.cumsum %u dtype = i64
    %2 = relax.cumprod %x
    relax.return %x
  }
}
