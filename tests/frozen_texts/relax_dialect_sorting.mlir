builtin.module {
  relax.func @sorting[%n](%x: !relax.tensor<[n, 10], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.sort %x
    %1 = relax.sort %x axis = 0 descending
    %2 = relax.argsort %x
    %3 = relax.argsort %x axis = 0 descending dtype = i32
    %4, %5 = relax.topk %x k = 5
    %6 = relax.topk %x k = n axis = 0 ret_type = "values" smallest
    %7 = relax.topk %x k = 5 ret_type = "indices" dtype = i32
    %8, %9 = relax.topk %u k = 5
    relax.return %x
  }
}
