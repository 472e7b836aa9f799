builtin.module {
  relax.func @branches[%n, %m](%c: !relax.tensor<[], i1>, %p: !relax.prim<i1>, %x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[m, 4], f32>) -> !relax.tensor<[_, 4], f32> {
    %r = relax.if %c {
      %0 = relax.exp %x
      relax.yield %0
    } else {
      relax.yield %y
    }
    %s, %t = relax.if %p {
      relax.yield %x, %c
    } else {
      relax.yield %x, %x
    } : !relax.tensor<*, f32>, !relax.object
    relax.return %r
  }
  relax.func @effects(%c: !relax.prim<i1>) -> !relax.tuple<> impure {
    relax.if %c {
      relax.print "yes"()
      relax.yield
    } else {
      relax.yield
    }
    %0 = relax.tuple()
    relax.return %0
  }
  relax.func @local_symbol(%c: !relax.prim<i1>, %x: !relax.tensor<[_], f32>) -> !relax.object {
    %r = relax.if %c {
      %0, %m = relax.match_cast %x : !relax.tensor<[2 * m], f32> binds [m]
      relax.yield %0
    } else {
      relax.yield %x
    }
    %s = relax.shape_of %r
    relax.return %s
  }
  relax.func @common_symbol[%n](%c: !relax.prim<i1>, %x: !relax.tensor<[n], f32>, %y: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
    %r, %k = relax.if %c {
      %0, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
      relax.yield %0, %m
    } else {
      %1, %m_1 = relax.match_cast %y : !relax.tensor<[m], f32> binds [m]
      relax.yield %1, %m_1
    }
    %s = relax.shape [m]
    relax.return %r
  }
  relax.func @new_symbol[%n, %m](%c: !relax.prim<i1>, %x: !relax.tensor<[2 * n, 4], f32>, %y: !relax.tensor<[m, 4], f32>) -> !relax.tensor<[_, 4], f32> {
    %a = relax.prim 2 * n
    %b = relax.prim m
    %r, %k = relax.if %c {
      relax.yield %x, %a
    } else {
      relax.yield %y, %b
    } : !relax.tensor<[k, 4], f32>, !relax.prim<i64, k>
    %s = relax.shape [k]
    relax.return %r
  }
}
