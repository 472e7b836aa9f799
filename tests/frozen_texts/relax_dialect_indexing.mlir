builtin.module {
  relax.func @take[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %i: !relax.tensor<[m, 2], i64>, %v: !relax.tensor<[n], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.take %x, %i axis = 1
    %1 = relax.take %x, %i axis = -2 mode = "clip"
    %2 = relax.take %v, %i
    %3 = relax.take %u, %i axis = 0
    relax.return %x
  }
  relax.func @slices[%n, %m](%z: !relax.prim<i64, m>, %x: !relax.tensor<[10], f32>, %y: !relax.tensor<[n, 10], f32>, %u: !relax.tensor<[_, 10], f32>) -> !relax.object {
    %0 = relax.strided_slice %x axes = [0] begin = [2] end = [7]
    %1 = relax.strided_slice %x axes = [0] begin = [-3] end = [100]
    %2 = relax.strided_slice %x axes = [0] begin = [9] end = [-9223372036854775808] strides = [-2]
    %3 = relax.strided_slice %x axes = [0] begin = [7] end = [2]
    %4 = relax.strided_slice %y axes = [0, 1] begin = [0, 1] end = [m, -1]
    %5 = relax.strided_slice %y axes = [0] begin = [1] end = [9223372036854775807] strides = [2]
    %6 = relax.strided_slice %y axes = [0] begin = [m] end = [2 * m] assume_inbound
    %7 = relax.strided_slice %u axes = [0] begin = [0] end = [4]
    %8 = relax.strided_slice %u axes = [-1] begin = [0] end = [4]
    relax.return %x
  }
  relax.func @dynamic_slice[%n](%x: !relax.tensor<[n, 4], f32>, %p: !relax.tensor<[2], i64>) -> !relax.object {
    %0 = relax.dynamic_strided_slice %x, %p, %p, %p
    relax.return %x
  }
}
