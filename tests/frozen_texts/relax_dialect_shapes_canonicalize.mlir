builtin.module {
  relax.func @known[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
    %0 = relax.shape_of %x
    %1 = relax.shape_get %0[0]
    %2 = relax.size %x
    %3 = relax.tuple(%0, %1, %2)
    relax.return %3
  }
  relax.func @unknown(%x: !relax.tensor<[_, 4], f32>) -> !relax.object {
    %0 = relax.shape_of %x
    %1 = relax.shape_get %0[0]
    %2 = relax.size %x
    %3 = relax.tuple(%0, %1, %2)
    relax.return %3
  }
  relax.func @fields(%x: !relax.object, %y: !relax.object) -> !relax.object {
    %0 = relax.tuple(%x, %y)
    %1 = relax.tuple(%0, %x)
    %2 = relax.tuple_get %1[0]
    %3 = relax.tuple_get %2[1]
    relax.return %3
  }
  relax.func @parameter(%x: !relax.tuple<!relax.object>) -> !relax.object {
    %0 = relax.tuple_get %x[0]
    relax.return %0
  }
  relax.func @whole(%x: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
    %0 = relax.tuple_get %x[0]
    %1 = relax.tuple_get %x[1]
    %2 = relax.tuple(%0, %1)
    %3 = relax.tuple(%1, %0)
    %4 = relax.tuple(%0)
    %5 = relax.tuple(%2, %3, %4)
    relax.return %5
  }
  relax.func @there_and_back(%s: !relax.shape<[_, _]>) -> !relax.object {
    %0 = relax.shape_to_tensor %s
    %1 = relax.tensor_to_shape %0
    relax.return %1
  }
}
