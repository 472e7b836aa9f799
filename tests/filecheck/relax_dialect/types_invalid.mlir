// RUN: RELAX_INVALID

// CHECK: 'relax.tensor' type expected an element type, got i3
relax.func @tensor(%x: !relax.tensor<[4], i3>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected a dimension: an integer, a symbol, a function or '('
relax.func @tensor(%x: !relax.tensor<[4 +], f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: Expected ','
relax.func @tensor(%x: !relax.tensor<[4]>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.prim' type carries a value only for i64, got f32
relax.func @prim(%x: !relax.prim<f32, 4>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected a relax type, got f32
relax.func @tuple(%x: !relax.tuple<f32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected a relax type, got tensor<4xf32>
relax.func @parameter(%x: tensor<4xf32>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.func' type binds a symbol twice: n, n
relax.func @function(%x: !relax.func<[n, n]() -> !relax.object>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: Expected one of 'impure', 'pure'
relax.func @function(%x: !relax.func<() -> !relax.object, maybe>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: division of 4 by zero
relax.func @shape(%x: !relax.shape<[floordiv(4, 0)]>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: 'relax.object' type has no parameters
relax.func @object(%x: !relax.object<i64>) -> !relax.object {
  relax.return %x
}
