// RUN: RELAX_INVALID

// CHECK: 'relax.full' op operand #1 expected a prim or a tensor of rank 0, got !relax.tensor<[n], f32>
relax.func @full_c1[%n](%s: !relax.shape<[n]>, %x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.full %s, %x
  relax.return %s
}

// -----

// CHECK: 'relax.full' op expected a size that is not negative, got 0 and -1
relax.func @full_c2[%n](%v: !relax.prim<f32>) -> !relax.object {
  %s = relax.shape [n, -1]
  %0 = relax.full %s, %v
  relax.return %0
}

// -----

// CHECK: 'relax.full_like' op operand #1 expected a prim or a tensor of rank 0, got !relax.tensor<[n], f32>
relax.func @full_like_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.full_like %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.zeros' op property dtype expected an element type, got !relax.object
relax.func @zeros[%n](%s: !relax.shape<[n]>) -> !relax.object {
  %0 = relax.zeros %s dtype = !relax.object
  relax.return %s
}

// -----

// CHECK: 'relax.zeros' op expected a size that is not negative, got 0 and -n - 1
relax.func @zeros_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [-n - 1]
  %0 = relax.zeros %s dtype = f32
  relax.return %0
}

// -----

// CHECK: 'relax.arange' op expected operands of one dtype, got f32, i64 and i64
relax.func @arange_c1(%p: !relax.prim<f32>, %q: !relax.prim<i64>) -> !relax.object {
  %0 = relax.arange %p, %q, %q
  relax.return %p
}

// -----

// CHECK: 'relax.arange' op expected a step that is not 0
relax.func @arange_c2(%q: !relax.prim<i64>, %s: !relax.prim<i64, 0>) -> !relax.object {
  %0 = relax.arange %q, %q, %s
  relax.return %q
}

// -----

// CHECK: 'relax.tril' op expected rank 2 or more, got !relax.tensor<[n], f32>
relax.func @tril_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.tril %x
  relax.return %x
}

// -----

// CHECK: 'relax.eye_like' op expected rank 2, got !relax.tensor<[n], f32>
relax.func @eye_like_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.eye_like %x
  relax.return %x
}

// -----

// CHECK: 'relax.eye' op expected a property columns
relax.func @eye[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.eye rows = n dtype = f32
  relax.return %x
}

// -----

// CHECK: 'relax.eye' op expected a size that is not negative, got 0 and -2
relax.func @eye_c1() -> !relax.object {
  %0 = relax.eye rows = 3 columns = -2 dtype = f32
  relax.return %0
}

// -----

// CHECK: 'relax.cosine_window' op dtype expected a floating-point dtype, got i32
relax.func @cosine_window_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = n coefficients = [0.5] dtype = i32
  relax.return %x
}

// -----

// CHECK: 'relax.cosine_window' op expected at least one coefficient
relax.func @cosine_window_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = n coefficients = []
  relax.return %x
}

// -----

// CHECK: 'relax.cosine_window' op expected a size that is not negative, got 0 and -n - 1
relax.func @cosine_window_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = -n - 1 coefficients = [0.5]
  relax.return %0
}

// -----

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
