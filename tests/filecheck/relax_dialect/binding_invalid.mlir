// RUN: RELAX_INVALID

// CHECK: 'relax.match_cast' op can never succeed: dimension 1: 4 does not match 5
relax.func @match_cast_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[n, 5], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed: expected !relax.tensor<[n], f32>, got !relax.tensor<[n, 4], f32>
relax.func @match_cast_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed: expected !relax.tensor<[n, 4], f16>, got !relax.tensor<[n, 4], f32>
relax.func @match_cast_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[n, 4], f16>
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed: expected !relax.shape<*>, got !relax.tensor<[n, 4], f32>
relax.func @match_cast_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.shape<*>
  relax.return %0
}

// -----

// 10 is no multiple of 4.
// CHECK: 'relax.match_cast' op can never succeed: dimension 0: 10 does not match 4 * m
relax.func @match_cast_c1(%x: !relax.tensor<[10], f32>) -> !relax.object {
  %0, %m = relax.match_cast %x : !relax.tensor<[4 * m], f32> binds [m]
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed: dimension 0: expected m in [1, 8], got 10
relax.func @match_cast_c1(%x: !relax.tensor<[10], f32>) -> !relax.object {
  %0, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m in [1, 8]]
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed: dimension 0: cannot solve m * m for 'm': expected 'm' alone in some dimension, or one that is linear in it
relax.func @match_cast_c2(%x: !relax.object) -> !relax.object {
  %0, %m = relax.match_cast %x : !relax.tensor<[m * m], f32> binds [m]
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op can never succeed: nothing binds the symbol m
relax.func @match_cast_c2(%x: !relax.object) -> !relax.object {
  %0, %m = relax.match_cast %x : !relax.tensor<[_], f32> binds [m]
  relax.return %0
}

// -----

// CHECK: 'relax.match_cast' op expected the witnesses !relax.prim<i64, m>, got !relax.prim<i64, 4>
relax.func @match_cast_c3(%x: !relax.object) -> !relax.object {
  %0, %m = "relax.match_cast"(%x) <{symbols = [#tir.symbol<m>]}> : (!relax.object) -> (!relax.tensor<[m], f32>, !relax.prim<i64, 4>)
  relax.return %0
}

// -----

// The number of results is one more than that of the bound symbols.
// CHECK: 'relax.match_cast' op has 2 results, expected as many names, got 1: %0
relax.func @match_cast(%x: !relax.object) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
  relax.return %0
}

// -----

// CHECK: 'relax.check_args' op expected 2 results and 1 names, got 1 and 1
relax.func @check_args_c1(%a: !relax.object) -> !relax.object impure {
  %0 = "relax.check_args"(%a) <{symbols = [#tir.symbol<n>], arg_names = ["a"], function = "f"}> : (!relax.object) -> !relax.object
  relax.return %0
}

// -----

// CHECK: 'relax.check_args' op expected 0 to 1 captured arguments, got 2
relax.func @check_args_c2(%a: !relax.object) -> !relax.object impure {
  %0 = relax.check_args(%a) : (!relax.object) binds [] names ["a"] of "f" captured 2
  relax.return %0
}

// -----

// CHECK: 'relax.guard' op expected a result of type !relax.tensor<[4], f32>, got !relax.tensor<[_], f32>
relax.func @guard_c1(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[_], f32> {
  %0 = "relax.guard"(%x) <{relation = #relax<relation equal>, lhs = #tir.dim<4>, rhs = #tir.dim<4>, message = ""}> : (!relax.tensor<[4], f32>) -> !relax.tensor<[_], f32>
  relax.return %0
}

// -----

// CHECK: Expected `equal`, `broadcast`, or `at_most`
relax.func @unknown_relation(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %0 = relax.guard %x, similar 4, 4, ""
  relax.return %0
}
