// RUN: RELAX_INVALID

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
