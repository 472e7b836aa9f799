builtin.module {
  relax.func @empty[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %lower = relax.prim n + 2
    %upper = relax.prim n
    %r = relax.for %i = %lower to %upper (%a: !relax.tensor<[n], f32> = %x) {
      %0 = relax.add %a, %a
      relax.yield %0
    }
    relax.return %r
  }
  relax.func @empty_downwards[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %lower = relax.prim n
    %upper = relax.prim n + 2
    %step = relax.prim -2
    %r = relax.for %i = %lower to %upper step %step (%a: !relax.tensor<[n], f32> = %x) {
      %0 = relax.add %a, %a
      relax.yield %0
    }
    relax.return %r
  }
  relax.func @stays[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %zero = relax.prim 0
    %upper = relax.prim n
    %r = relax.for %i = %zero to %upper (%a: !relax.tensor<[n], f32> = %x) {
      relax.yield %a
    }
    %s = relax.for %i_1 = %zero to %zero (%a_1: !relax.tensor<[4], f32> = %x) {
      relax.yield %a_1
    }
    %t = relax.tuple(%r, %s)
    relax.return %t
  }
}
