// RUN: RELAX_INVALID

// CHECK: 'relax.random.uniform' op operand #0 expected the dtype i64, got !relax.prim<i32>
relax.func @random_uniform_c1(%seed: !relax.prim<i32>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.uniform %seed, %s
  relax.return %0
}

// -----

// CHECK: 'relax.random.normal' op operand #0 expected a prim value, got !relax.tensor<[], i64>
relax.func @random_normal_c1(%seed: !relax.tensor<[], i64>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.normal %seed, %s
  relax.return %0
}

// -----

// CHECK: 'relax.random.uniform' op expected a size that is not negative, got 0 and -2
relax.func @random_uniform_c2(%seed: !relax.prim<i64>) -> !relax.object {
  %s = relax.shape [-2]
  %0 = relax.random.uniform %seed, %s
  relax.return %0
}

// -----

// CHECK: 'relax.random.normal' op dtype expected a floating-point dtype, got i32
relax.func @random_normal_c3(%seed: !relax.prim<i64>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.normal %seed, %s dtype = i32
  relax.return %0
}

// -----

// CHECK: 'relax.random.uniform' op expected low <= high, at a distance that f32 has, got 2.0 and 1.0
relax.func @random_uniform_c1(%seed: !relax.prim<i64>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.uniform %seed, %s low = 2.0
  relax.return %0
}

// -----

// CHECK: 'relax.random.normal' op expected a mean, and a scale of at least 0, that f32 has, got 0.0 and -1.0
relax.func @random_normal_c1(%seed: !relax.prim<i64>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.normal %seed, %s scale = -1.0
  relax.return %0
}

// -----

// CHECK: 'relax.random.normal' op stream expected a number that is not negative, got -1
relax.func @random_normal_c4(%seed: !relax.prim<i64>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.normal %seed, %s stream = -1
  relax.return %0
}

// -----

// CHECK: 'relax.random.uniform' op expected low <= high, at a distance that f32 has, got -3e+38 and 3e+38
relax.func @random_uniform_c1(%seed: !relax.prim<i64>, %s: !relax.shape<[2, 3]>) -> !relax.object {
  %0 = relax.random.uniform %seed, %s low = -3.0e38 high = 3.0e38
  relax.return %0
}
