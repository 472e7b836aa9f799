builtin.module {
  relax.func @filled[%n](%x: !relax.tensor<[n, _], f32>, %v: !relax.tensor<[], f16>, %u: !relax.shape<*>) -> !relax.object {
    %s = relax.shape [n, 4]
    %p = relax.prim f32 0.5
    %0 = relax.full %s, %v
    %1 = relax.full %u, %p dtype = f64
    %2 = relax.full_like %x, %p
    %3 = relax.full_like %x, %v dtype = i8
    %4 = relax.zeros %s dtype = f32
    %5 = relax.ones %u dtype = i1
    %6 = relax.zeros_like %x
    %7 = relax.ones_like %x dtype = i64
    relax.return %x
  }
  relax.func @ranges[%n](%x: !relax.tensor<[n], f32>, %f: !relax.prim<f32>, %i: !relax.prim<i64>) -> !relax.object {
    %a = relax.prim 1
    %b = relax.prim n
    %c = relax.prim 2
    %d = relax.prim -1
    %0 = relax.arange %a, %b, %c
    %1 = relax.arange %b, %a, %d
    %2 = relax.arange %a, %i, %c
    %3 = relax.arange %a, %b, %c dtype = f32
    %4 = relax.arange %f, %f, %f
    relax.return %0
  }
  relax.func @matrices[%n](%x: !relax.tensor<[2, n, 4], f32>, %y: !relax.tensor<[n, 4], f32>) -> !relax.object {
    %0 = relax.tril %x
    %1 = relax.triu %x k = n - 1
    %2 = relax.eye rows = n columns = 4 dtype = f32
    %3 = relax.eye_like %y k = -1 dtype = i8
    relax.return %0
  }
}
