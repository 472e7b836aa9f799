// RUN: RELAX_INVALID

// CHECK: 'relax.call_tir' op result #0 expected known dtype and dimensions to allocate memory, got !relax.tensor<[_], f32>; give an unknown shape by 'shape(%s)'
tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_c1(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %0 = relax.call_tir @exp(%x) : !relax.tensor<[_], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op expected 0 or 1 shapes, one per result, got 2
relax.func @call_tir_c2(%x: !relax.tensor<[_], f32>, %s: !relax.shape<*>) -> !relax.object {
  %0 = relax.call_tir @exp(%x) shape(%s, %s) : !relax.tensor<[_], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op expected a 'tir.prim_func', but @missing is not defined in the module
relax.func @call_tir_c3(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call_tir @missing(%x) : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op calls @exp, parameter #1 dimension 0: 5 does not match n with n = 4
tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_c3(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call_tir @exp(%x) : !relax.tensor<[5], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op calls @exp with 3 arguments and results, expected 2
tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_c3(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call_tir @exp(%x, %x) : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op calls @exp, parameter #0: expected !relax.tensor<[n], f32>, got !relax.tensor<[4], f16>
tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_c3(%x: !relax.tensor<[4], f16>) -> !relax.object {
  %0 = relax.call_tir @exp(%x) : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op calls @scale, parameter #1: expected !relax.prim<f32>, got !relax.prim<i64>
tir.prim_func private @scale[%n](%x: !tir.buffer<[n], f32>, %a: f32, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_c3(%x: !relax.tensor<[4], f32>, %a: !relax.prim<i64>) -> !relax.object {
  %0 = relax.call_tir @scale(%x, %a) : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir' op calls @shift with 0 tir_vars, expected the values of its symbols [k], which no buffer's shape determines
tir.prim_func private @shift[%n, %k](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_c3(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.call_tir @shift(%x) : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op result #0 expected known dtype and dimensions to allocate memory, got !relax.tensor<[4], _>; give an unknown shape by 'shape(%s)'
relax.func @call_tir_inplace_c1(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0 = relax.call_tir_inplace @f(%x) inplace [0] : !relax.tensor<[4], _>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op expected 0 or 1 shapes, one per result, got 2
relax.func @call_tir_inplace_c2(%x: !relax.tensor<[4], f32>, %s: !relax.shape<*>) -> !relax.object impure {
  %0 = relax.call_tir_inplace @f(%x) inplace [0] shape(%s, %s) : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op expected a 'tir.prim_func', but @missing is not defined in the module
relax.func @call_tir_inplace_c3(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0 = relax.call_tir_inplace @missing(%x) inplace [0] : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op expected for each of 2 results -1 or another tensor argument, got [0, 0]
relax.func @call_tir_inplace_c4(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0, %1 = relax.call_tir_inplace @f(%x) inplace [0, 0] : !relax.tensor<[4], f32>, !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op expected for each of 1 results -1 or another tensor argument, got [1]
relax.func @call_tir_inplace_c4(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0 = relax.call_tir_inplace @f(%x) inplace [1] : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op result #0 expected !relax.tensor<[4], f32> as argument #0 has, got !relax.tensor<[5], f32>
relax.func @call_tir_inplace_c5(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0 = relax.call_tir_inplace @f(%x) inplace [0] : !relax.tensor<[5], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op writes result #0 into a constant, argument #0
relax.func @call_tir_inplace_c6() -> !relax.object impure {
  %c = relax.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %x = relax.flatten %c
  %0 = relax.call_tir_inplace @f(%x) inplace [0] : !relax.tensor<[2], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_tir_inplace' op writes its argument #1, which argument #0 is part of too: pass a copy, or let the PrimFunc say 'may_alias'
tir.prim_func private @add_to[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
}
relax.func @call_tir_inplace_c7(%x: !relax.tensor<[2, 2], f32>) -> !relax.object impure {
  %y = relax.flatten %x
  %0 = relax.call_tir_inplace @add_to(%y, %y) inplace [1] : !relax.tensor<[4], f32>
  relax.return %0
}

// -----

// A tensor is row-major.
// CHECK: 'relax.call_tir' op calls @strided, whose parameter #0 expected a plain layout, got !tir.buffer<[n, 4], f32, strides = [8, 1]>
tir.prim_func private @strided[%n](%x: !tir.buffer<[n, 4], f32, strides = [8, 1]>, %y: !tir.buffer<[n, 4], f32>) {
}
relax.func @call_tir_c3(%x: !relax.tensor<[2, 4], f32>) -> !relax.object {
  %0 = relax.call_tir @strided(%x) : !relax.tensor<[2, 4], f32>
  relax.return %0
}

// -----

tir.prim_func @even[%m](%A: !tir.buffer<[2 * floordiv(m, 2)], f32>, %B: !tir.buffer<[2 * floordiv(m, 2)], f32>) {
}

// CHECK: 'relax.call_tir' op calls @even, parameter #0 dimension 0: cannot solve 2 * floordiv(m, 2) for 'm'
// CHECK-SAME: or give the values of [m] as tir_vars
relax.func @nothing_determines_a_symbol[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.call_tir @even(%x) : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_dps_packed' op result #0 expected known dtype and dimensions to allocate memory, got !relax.tensor<[4], _>; give an unknown shape by 'shape(%s)'
relax.func @call_dps_packed_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.call_dps_packed "f"(%x) : !relax.tensor<[4], _>
  relax.return %0
}

// -----

// CHECK: 'relax.call_dps_packed' op result #0 expected known dtype and dimensions to allocate memory, got !relax.tensor<*, f32>; give an unknown shape by 'shape(%s)'
relax.func @call_dps_packed_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.call_dps_packed "f"(%x) : !relax.tensor<*, f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_dps_packed' op expected 0 or 2 shapes, one per result, got 1
relax.func @call_dps_packed_c2(%x: !relax.object, %s: !relax.shape<*>) -> !relax.object {
  %0, %1 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>, !relax.tensor<*, f32>
  relax.return %0
}

// -----

// CHECK: expected tensor types, got !relax.object
relax.func @call_dps_packed(%x: !relax.object) -> !relax.object {
  %0 = relax.call_dps_packed "f"(%x) : !relax.object
  relax.return %0
}
