// RUN: RELAX_INVALID

// CHECK: 'relax.unique' op axis 1 is out of range for rank 1
relax.func @unique_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.unique %x axis = 1
  relax.return %x
}
