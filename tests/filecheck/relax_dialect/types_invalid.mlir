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

// -----

// CHECK: expected a placement within rank 1, got S[1]
relax.func @sharding(%x: !relax.tensor<[4], f32, sharding<x = 2: S[1]>>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected each dimension to be sharded once, got x = 2: S[0], y = 2: S[0]
relax.func @sharding(%x: !relax.tensor<[4], f32, sharding<x = 2: S[0], y = 2: S[0]>>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected axes of a mesh with different names, got x, x
relax.func @sharding(%x: !relax.tensor<[4], f32, sharding<x = 2: S[0], x = 2: R>>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected at least one worker along axis x, got 0
relax.func @sharding(%x: !relax.tensor<[4], f32, sharding<x = 0: S[0]>>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected terms combined by sum, prod, min, max, got P[mean]
relax.func @sharding(%x: !relax.tensor<[4], f32, sharding<x = 2: P[mean]>>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected a placement: S[0], R or P
relax.func @sharding(%x: !relax.tensor<[4], f32, sharding<x = 2: T>>) -> !relax.object {
  relax.return %x
}

// -----

// CHECK: expected a tensor shared as x = 2: S[0], got x = 2: R; use relax.dist.redistribute
relax.func @given(%x: !relax.tensor<[4], f32, sharding<x = 2: S[0]>>) -> !relax.object {
  relax.return %x
}
relax.func @gives(%x: !relax.tensor<[4], f32, sharding<x = 2: R>>) -> !relax.object {
  %0 = relax.call @given(%x) : !relax.object
  relax.return %0
}
