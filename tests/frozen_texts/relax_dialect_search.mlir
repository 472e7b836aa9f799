builtin.module {
  relax.func @where[%n](%c: !relax.tensor<[n, 1], i1>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[], f32>) -> !relax.object {
    %0 = relax.where %c, %x, %y
    %1 = relax.where %c, %y, %y
    relax.return %0
  }
  relax.func @places[%n](%x: !relax.tensor<[n, 4], f32>, %b: !relax.tensor<[5], f32>) -> !relax.object {
    %0 = relax.argmax %x
    %1 = relax.argmax %x axis = 1 keepdims
    %2 = relax.argmin %x axis = 0
    %3 = relax.bucketize %x, %b
    %4 = relax.bucketize %x, %b out_int32 right
    relax.return %0
  }
}
