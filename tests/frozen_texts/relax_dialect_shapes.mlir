builtin.module {
  relax.func @shapes[%n, %m](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<[_, m], f32>, %v: !relax.tensor<*, _>, %t: !relax.tensor<[3], i64>, %w: !relax.tensor<[n], i64>) -> !relax.object {
    %0 = relax.shape [n, 4 * m]
    %1 = relax.shape []
    %2 = relax.shape_of %x
    %3 = relax.shape_of %u
    %4 = relax.shape_of %v
    %5 = relax.tensor_to_shape %t
    %6 = relax.tensor_to_shape %w
    %7 = relax.shape_to_tensor %0
    %8 = relax.shape_to_tensor %4
    relax.return %0
  }
  relax.func @dimensions[%n](%s: !relax.shape<[n, _]>, %u: !relax.shape<*>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[_], f32>) -> !relax.object {
    %0 = relax.shape_get %s[0]
    %1 = relax.shape_get %s[1]
    %2 = relax.shape_get %u[7]
    %3 = relax.size %x
    %4 = relax.size %y
    relax.return %0
  }
  relax.func @tuples[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.tuple()
    %1 = relax.tuple(%x, %0)
    %2 = relax.tuple(%1, %x)
    %3 = relax.tuple_get %2[0]
    %4 = relax.tuple_get %3[0]
    relax.return %4
  }
}
