// RUN: RELAX_INVALID

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

// CHECK: 'relax.image.resize1d' op coordinates expected one of half_pixel, align_corners, asymmetric, pytorch_half_pixel, half_pixel_symmetric, tf_crop_and_resize, got middle
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
