// RUN: RELAX_INVALID

// CHECK: 'relax.if' op condition expected a scalar tensor of i1 or a prim of i1, got !relax.tensor<[1], i1>
relax.func @if_c1(%c: !relax.tensor<[1], i1>) -> !relax.object {
  relax.if %c {
    relax.yield
  } else {
    relax.yield
  }
  relax.return %c
}

// -----

// CHECK: 'relax.if' op condition expected a scalar tensor of i1 or a prim of i1, got !relax.prim<i64>
relax.func @if_c1(%c: !relax.prim<i64>) -> !relax.object {
  relax.if %c {
    relax.yield
  } else {
    relax.yield
  }
  relax.return %c
}

// -----

// CHECK: 'relax.if' op else region expected 0 values as the op has results, got 1
relax.func @if_c2(%c: !relax.prim<i1>) -> !relax.object {
  relax.if %c {
    relax.yield
  } else {
    relax.yield %c
  }
  relax.return %c
}

// -----

// CHECK: 'relax.if' op else region value #0 expected !relax.tensor<[4], f32>, got !relax.tensor<[5], f32>
relax.func @if_c3(%c: !relax.prim<i1>, %x: !relax.tensor<[4], f32>, %y: !relax.tensor<[5], f32>) -> !relax.object {
  %r = relax.if %c {
    relax.yield %x
  } else {
    relax.yield %y
  } : !relax.tensor<[4], f32>
  relax.return %r
}

// -----

// A new symbol has the value that the branch gives to it.
// CHECK: 'relax.if' op else region value #0 expected !relax.tensor<[m], f32>, got !relax.tensor<[n], f32>
relax.func @if_c3[%n, %m](%c: !relax.prim<i1>, %x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.object {
  %a = relax.prim n
  %b = relax.prim m
  %r, %k = relax.if %c {
    relax.yield %x, %a
  } else {
    relax.yield %x, %b
  } : !relax.tensor<[k], f32>, !relax.prim<i64, k>
  relax.return %r
}

// -----

// No symbol is negative.
// CHECK: 'relax.if' op else region expected a value for k that is provably not negative, got n - 1; bind it with
relax.func @if_c4[%n](%c: !relax.prim<i1>) -> !relax.object {
  %a = relax.prim n
  %b = relax.prim n - 1
  %k = relax.if %c {
    relax.yield %a
  } else {
    relax.yield %b
  } : !relax.prim<i64, k>
  relax.return %k
}

// -----

// CHECK: the region has to end with 'relax.yield': add `relax.yield %value` before the brace
relax.func @if(%c: !relax.prim<i1>) -> !relax.object {
  relax.if %c {
    relax.print "x"()
  } else {
    relax.yield
  }
  relax.return %c
}

// -----

// CHECK: 'relax.yield' op expected to end a region of a branch, loop or group, got 'relax.func'
relax.func @yield(%x: !relax.object) -> !relax.object {
  relax.yield %x
}

// -----

// CHECK: 'relax.while' op expected block arguments for 0 symbols and 1 carried values, got (!relax.tensor<*, f32>)
relax.func @while_c1(%x: !relax.object, %c: !relax.prim<i1>) -> !relax.object {
  %r = "relax.while"(%x) <{symbols = []}> ({
  ^bb0(%a: !relax.object):
    "relax.yield"(%c) : (!relax.prim<i1>) -> ()
  }, {
  ^bb0(%b: !relax.tensor<*, f32>):
    "relax.yield"(%b) : (!relax.tensor<*, f32>) -> ()
  }) : (!relax.object) -> !relax.object
  relax.return %r
}

// -----

// CHECK: 'relax.while' op initial value #0: expected !relax.tensor<*, f32>, got !relax.shape<*>
relax.func @while_c2(%x: !relax.shape<*>, %c: !relax.prim<i1>) -> !relax.object {
  %r = relax.while (%a: !relax.tensor<*, f32> = %x) {
    relax.yield %c
  } do (%b) {
    relax.yield %b
  }
  relax.return %r
}

// -----

// CHECK: 'relax.while' op condition expected a scalar tensor of i1 or a prim of i1, got (!relax.object)
relax.func @while_c3(%x: !relax.object) -> !relax.object {
  %r = relax.while (%a: !relax.object = %x) {
    relax.yield %a
  } do (%b) {
    relax.yield %b
  }
  relax.return %r
}

// -----

// CHECK: 'relax.while' op yielded value #0: expected !relax.tensor<[n], f32>, got !relax.tensor<[2, n], f32>
relax.func @while_c4[%n](%x: !relax.tensor<[n], f32>, %c: !relax.prim<i1>) -> !relax.object {
  %r = relax.while (%a: !relax.tensor<[n], f32> = %x) {
    relax.yield %c
  } do (%b) {
    %0 = relax.stack %b, %b
    relax.yield %0
  }
  relax.return %r
}

// -----

// CHECK: 'relax.while' op expected 1 yielded values, got 0
relax.func @while_c4(%c: !relax.prim<i1>) -> !relax.object {
  %r = relax.while (%a: !relax.object = %c) {
    relax.yield %c
  } do (%b) {
    relax.yield
  }
  relax.return %r
}

// -----

// CHECK: 'relax.while' op expected results (!relax.tensor<[_], f32>) as the carried values have, got (!relax.tensor<[n], f32>)
relax.func @while_c5[%n](%x: !relax.tensor<[n], f32>, %c: !relax.prim<i1>) -> !relax.object {
  %r = "relax.while"(%x) <{symbols = [#tir.symbol<m>]}> ({
  ^bb0(%m: !relax.prim<i64, m>, %a: !relax.tensor<[m], f32>):
    "relax.yield"(%c) : (!relax.prim<i1>) -> ()
  }, {
  ^bb0(%m: !relax.prim<i64, m>, %b: !relax.tensor<[m], f32>):
    "relax.yield"(%b) : (!relax.tensor<[m], f32>) -> ()
  }) : (!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>
  relax.return %r
}

// -----

// CHECK: expected the symbols and carried values of the loop
relax.func @while(%x: !relax.object, %c: !relax.prim<i1>) -> !relax.object {
  %r = relax.while (%a: !relax.object = %x) {
    relax.yield %c
  } do (%b, %d) {
    relax.yield %b
  }
  relax.return %r
}

// -----

// CHECK: 'relax.for' op expected the counter as first argument, a !relax.prim<i64>
relax.func @for_c1(%n: !relax.prim<i64>) -> !relax.object {
  "relax.for"(%n, %n) <{symbols = [], operandSegmentSizes = array<i32: 1, 1, 0, 0>}> ({
  ^bb0(%i: !relax.prim<f32>):
    "relax.yield"() : () -> ()
  }) : (!relax.prim<i64>, !relax.prim<i64>) -> ()
  relax.return %n
}

// -----

// CHECK: 'relax.for' op expected bounds and step of i64, got !relax.prim<i32>
relax.func @for_c2(%n: !relax.prim<i32>) -> !relax.object {
  relax.for %i = %n to %n () {
    relax.yield
  }
  relax.return %n
}

// -----

// CHECK: 'relax.for' op counts by a symbol, so expected a lower bound that is provably not negative, got !relax.prim<i64>
relax.func @for_c3(%n: !relax.prim<i64>) -> !relax.object {
  relax.for %i as i = %n to %n () {
    relax.yield
  }
  relax.return %n
}

// -----

// CHECK: 'relax.for' op counts by a symbol, so expected an upper bound that is provably at least -1, got !relax.prim<i64>
relax.func @for_c3(%n: !relax.prim<i64>) -> !relax.object {
  %s = relax.prim -1
  relax.for %i as i = %n to %n step %s () {
    relax.yield
  }
  relax.return %n
}

// -----

// CHECK: 'relax.for' op initial value #0: expected !relax.tensor<*, f32>, got !relax.prim<i64>
relax.func @for_c4(%n: !relax.prim<i64>) -> !relax.object {
  %r = relax.for %i = %n to %n (%a: !relax.tensor<*, f32> = %n) {
    relax.yield %a
  }
  relax.return %n
}

// -----

// CHECK: 'relax.for' op yielded value #0: expected !relax.prim<i64>, got !relax.tuple<>
relax.func @for_c5(%n: !relax.prim<i64>) -> !relax.object {
  %r = relax.for %i = %n to %n (%a: !relax.prim<i64> = %n) {
    %0 = relax.tuple()
    relax.yield %0
  }
  relax.return %n
}

// -----

// CHECK: 'relax.for' op expected results (!relax.object) as the carried values have, got (!relax.prim<i64>)
relax.func @for_c6(%n: !relax.prim<i64>) -> !relax.object {
  %r = "relax.for"(%n, %n, %n) <{symbols = [], operandSegmentSizes = array<i32: 1, 1, 0, 1>}> ({
  ^bb0(%i: !relax.prim<i64>, %a: !relax.object):
    "relax.yield"(%a) : (!relax.object) -> ()
  }) : (!relax.prim<i64>, !relax.prim<i64>, !relax.prim<i64>) -> !relax.prim<i64>
  relax.return %n
}

// -----

// CHECK: 'relax.for' op expected a step other than 0, got 0
relax.func @for_c7(%n: !relax.prim<i64>) -> !relax.object {
  %s = relax.prim 0
  relax.for %i = %n to %n step %s () {
    relax.yield
  }
  relax.return %n
}

// -----

// CHECK: 'relax.for' op expected carried types that do not name the counter i, got !relax.tensor<[i], f32>
relax.func @for_c8(%n: !relax.prim<i64>, %x: !relax.tensor<[0], f32>) -> !relax.object {
  %z = relax.prim 0
  %r = relax.for %i as i = %z to %n (%a: !relax.tensor<[i], f32> = %x) {
    relax.yield %a
  }
  relax.return %r
}
