// RUN: RELAX_INVALID

// CHECK: 'relax.astype' op property dtype expected an element type, got i4
relax.func @astype_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.astype %x dtype = i4
  relax.return %x
}
