// RUN: RELAX_INVALID

// CHECK: 'relax.image.resize2d' op operand #0 expected rank 4, got !relax.tensor<[n, 3, 4], f32>
relax.func @image_resize2d_c1[%n](%x: !relax.tensor<[n, 3, 4], f32>, %s: !relax.shape<[8, 8]>) -> !relax.object {
  %0 = relax.image.resize2d %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize2d' op operand #1 expected 2 dimensions, got !relax.shape<[8]>
relax.func @image_resize2d_c1[%n](%x: !relax.tensor<[n, 3, 4, 4], f32>, %s: !relax.shape<[8]>) -> !relax.object {
  %0 = relax.image.resize2d %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize2d' op layout expected a permutation of NCHW, got NCDW
relax.func @image_resize2d_c2[%n](%x: !relax.tensor<[n, 3, 4, 4], f32>, %s: !relax.shape<[8, 8]>) -> !relax.object {
  %0 = relax.image.resize2d %x, %s layout = "NCDW"
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize2d' op method expected one of nearest_neighbor, linear, cubic, got bicubic
relax.func @image_resize2d_c3[%n](%x: !relax.tensor<[n, 3, 4, 4], f32>, %s: !relax.shape<[8, 8]>) -> !relax.object {
  %0 = relax.image.resize2d %x, %s method = "bicubic"
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize2d' op roi expected 4 numbers, got 1
relax.func @image_resize2d_c4[%n](%x: !relax.tensor<[n, 3, 4, 4], f32>, %s: !relax.shape<[8, 8]>) -> !relax.object {
  %0 = relax.image.resize2d %x, %s roi = [0.0]
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize2d' op expected images with at least one row and column, got 1 and 0
relax.func @image_resize2d_c5[%n](%x: !relax.tensor<[n, 3, 0, 4], f32>, %s: !relax.shape<[8, 8]>) -> !relax.object {
  %0 = relax.image.resize2d %x, %s
  relax.return %0
}

// -----

// CHECK: 'relax.image.resize2d' op expected a size that is not negative, got 0 and -8
relax.func @image_resize2d_c6[%n](%x: !relax.tensor<[n, 3, 4, 4], f32>) -> !relax.object {
  %s = relax.shape [8, -8]
  %0 = relax.image.resize2d %x, %s
  relax.return %0
}
