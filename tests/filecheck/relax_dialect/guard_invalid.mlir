// RUN: RELAX_INVALID

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
