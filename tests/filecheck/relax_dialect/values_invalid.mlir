// RUN: RELAX_INVALID

// CHECK: 'relax.constant' op expected elements of a supported dtype, got i4
relax.func @constant_c1() -> !relax.object {
  %0 = relax.constant dense<1> : tensor<2xi4>
  relax.return %0
}

// -----

// CHECK: 'relax.constant' op kept by name expected known dtype and constant dimensions, got !relax.tensor<[n], f32>
relax.func @constant_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.constant "w" : !relax.tensor<[n], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.constant' op result #0 expected !relax.tensor<[2], f32> as inferred, got !relax.tensor<[3], f32>
relax.func @constant() -> !relax.object {
  %0 = relax.constant dense<1.0> : tensor<2xf32> : !relax.tensor<[3], f32>
  relax.return %0
}

// -----

// CHECK: 'relax.prim' op expected a scalar of a supported dtype, got 1 : i4
relax.func @prim_c1() -> !relax.object {
  %0 = relax.prim i4 1
  relax.return %0
}

// -----

// CHECK: expected an element type, got tensor<2xf32>
relax.func @prim() -> !relax.object {
  %0 = relax.prim tensor<2xf32> 1
  relax.return %0
}

// -----

// CHECK: 'relax.dtype' op property value expected an element type, got !relax.object
relax.func @dtype_c1() -> !relax.object {
  %0 = relax.dtype !relax.object
  relax.return %0
}
