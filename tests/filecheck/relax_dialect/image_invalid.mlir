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

// -----

// CHECK: 'relax.image.resize1d' op axis 2 is out of range for rank 2
relax.func @image_resize1d_c1[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 5 axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize1d' op method expected one of nearest_neighbor, linear, cubic, got nearest
relax.func @image_resize1d_c2[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 5 method = "nearest"
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize1d' op coordinates expected one of half_pixel, align_corners, asymmetric, pytorch_half_pixel, half_pixel_symmetric, tf_half_pixel_for_nn, tf_crop_and_resize, got middle
relax.func @image_resize1d_c2[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 5 coordinates = "middle"
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize1d' op expected an axis with at least one place, got 1 and 0
relax.func @image_resize1d_c3[%n](%x: !relax.tensor<[n, 0], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 5
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize1d' op expected a scale greater than 0, got -1.0
relax.func @image_resize1d_c4[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 5 scale = -1.0
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize1d' op roi expected 2 numbers, got 1
relax.func @image_resize1d_c5[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 5 roi = [1.0]
  relax.return %x
}

// -----

// CHECK: 'relax.image.resize1d' op expected a size that is not negative, got 0 and -n - 1
relax.func @image_resize1d_c6[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = -n - 1 axis = 0
  relax.return %0
}

// -----

// CHECK: 'relax.image.grid_sample' op expected operands of one rank, got 3 and 4
relax.func @image_grid_sample_c1[%n, %c, %h, %w, %k](%x: !relax.tensor<[n, c, h, w], f32>, %g: !relax.tensor<[n, k, 1], f32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g
  relax.return %x
}

// -----

// CHECK: 'relax.image.grid_sample' op operand #0 expected rank 3 to 5, got !relax.tensor<[n, c], f32>
relax.func @image_grid_sample_c1[%n, %c, %k](%x: !relax.tensor<[n, c], f32>, %g: !relax.tensor<[n, k], f32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g
  relax.return %x
}

// -----

// CHECK: 'relax.image.grid_sample' op expected a coordinate for each spatial dimension, got 3 and 2
relax.func @image_grid_sample_c2[%n, %c, %h, %w, %k, %l](%x: !relax.tensor<[n, c, h, w], f32>, %g: !relax.tensor<[n, k, l, 3], f32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g
  relax.return %x
}

// -----

// CHECK: 'relax.image.grid_sample' op operand #1 expected a floating-point dtype, got i32
relax.func @image_grid_sample_c3[%n, %c, %h, %w, %k, %l](%x: !relax.tensor<[n, c, h, w], f32>, %g: !relax.tensor<[n, k, l, 2], i32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g
  relax.return %x
}

// -----

// CHECK: 'relax.image.grid_sample' op padding_mode expected one of zeros, border, reflection, got zero
relax.func @image_grid_sample_c4[%n, %c, %h, %w, %k, %l](%x: !relax.tensor<[n, c, h, w], f32>, %g: !relax.tensor<[n, k, l, 2], f32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g padding_mode = "zero"
  relax.return %x
}

// -----

// CHECK: 'relax.image.grid_sample' op expected images with at least one element, got 1 and 0
relax.func @image_grid_sample_c5[%n, %c, %w, %k, %l](%x: !relax.tensor<[n, c, 0, w], f32>, %g: !relax.tensor<[n, k, l, 2], f32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g
  relax.return %x
}

// -----

// CHECK: 'relax.image.affine_grid' op operand #0 expected two or three rows, got !relax.tensor<[n, 4, 5], f32>
relax.func @image_affine_grid_c1[%n, %h, %w](%x: !relax.tensor<[n, 4, 5], f32>, %s: !relax.shape<[h, w]>) -> !relax.object {
  %0 = relax.image.affine_grid %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.image.affine_grid' op expected a column more than rows, got 4 and 3
relax.func @image_affine_grid_c1[%n, %h, %w](%x: !relax.tensor<[n, 2, 4], f32>, %s: !relax.shape<[h, w]>) -> !relax.object {
  %0 = relax.image.affine_grid %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.image.affine_grid' op operand #1 expected 3 dimensions, got !relax.shape<[h, w]>
relax.func @image_affine_grid_c2[%n, %h, %w](%x: !relax.tensor<[n, 3, 4], f32>, %s: !relax.shape<[h, w]>) -> !relax.object {
  %0 = relax.image.affine_grid %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.image.affine_grid' op expected a size that is not negative, got 0 and -4
relax.func @image_affine_grid_c3[%n](%x: !relax.tensor<[n, 2, 3], f32>) -> !relax.object {
  %s = relax.shape [4, -4]
  %0 = relax.image.affine_grid %x, %s
  relax.return %0
}
