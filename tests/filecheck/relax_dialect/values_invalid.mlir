// RUN: RELAX_INVALID

// CHECK: 'relax.constant' op expected elements of a supported dtype, got i3
relax.func @constant_c1() -> !relax.object {
  %0 = relax.constant dense<1> : tensor<2xi3>
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

// CHECK: 'relax.prim' op expected a scalar of a supported dtype, got 1 : i3
relax.func @prim_c1() -> !relax.object {
  %0 = relax.prim i3 1
  relax.return %0
}

// -----

// CHECK: expected i8 in the range -128 to 127, got 128
relax.func @prim_c2() -> !relax.object {
  %0 = relax.prim i8 128
  relax.return %0
}

// -----

// A number of the run time has 64 bits and a sign.
// CHECK: expected ui64 in the range 0 to 9223372036854775807, got 18446744073709551615
relax.func @prim_c2() -> !relax.object {
  %0 = "relax.prim"() <{value = 18446744073709551615 : ui64}> : () -> !relax.prim<ui64>
  relax.return %0
}

// -----

// CHECK: 'relax.prim' op expected i64 in the range -9223372036854775808 to 9223372036854775807, got 9223372036854775808
relax.func @prim_c2() -> !relax.object {
  %0 = relax.prim 9223372036854775808
  relax.return %0
}

// -----

// CHECK: the number 65520.0 is too large for f16
relax.func @prim() -> !relax.object {
  %0 = relax.prim f16 65520.0
  relax.return %0
}

// -----

// CHECK: a number is too large for its floating-point type
relax.func @constant() -> !relax.object {
  %0 = relax.constant dense<1.0e+9> : tensor<2xf16>
  relax.return %0
}

// -----

// CHECK: Integer value 300 is out of range for type i8
relax.func @constant() -> !relax.object {
  %0 = relax.constant dense<300> : tensor<2xi8>
  relax.return %0
}

// -----

// CHECK: expected dense<...> or the name of a tensor, got 3.0 : f32; did you mean dense<3.0> : tensor<f32>?
relax.func @constant() -> !relax.object {
  %0 = relax.constant 3.0 : f32
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
