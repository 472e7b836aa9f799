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

// CHECK: expected regions of one block that ends in 'relax.yield'
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
