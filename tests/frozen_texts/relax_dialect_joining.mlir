builtin.module {
  relax.func @join[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[_, k], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.concat %x, %y axis = 1
    %1 = relax.concat %x, %u axis = -1
    %2 = relax.concat %x, %u
    %3 = relax.concat %v, %x axis = 1
    %4 = relax.concat %v, %v
    %5 = relax.stack %x, %u axis = 2
    %6 = relax.stack %v, %v
    relax.return %x
  }
  relax.func @split[%n](%x: !relax.tensor<[n, 10], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0, %1, %2 = relax.split %x sections = 3 axis = 1
    %3, %4 = relax.split %x sections = 2
    %5, %6, %7 = relax.split %x indices = [2, 7] axis = 1
    %8, %9 = relax.split %x indices = [n]
    %10, %11 = relax.split %u sections = 2
    relax.return %x
  }
  relax.func @repetition[%n](%x: !relax.tensor<[n, 2], f32>, %u: !relax.tensor<[_, 2], f32>) -> !relax.object {
    %0 = relax.repeat %x repeats = 3 axis = 1
    %1 = relax.repeat %x repeats = 3
    %2 = relax.repeat %u repeats = 3
    %3 = relax.tile %x repeats = [2, 1, 3]
    %4 = relax.tile %u repeats = [2]
    relax.return %x
  }
}
