// RUN: RELAX_INVALID

// CHECK: 'relax.nn.pad' op expected 4 pad widths, got 2
relax.func @nn_pad_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [1, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op mode expected one of constant, reflect, replicate, circular, got edge
relax.func @nn_pad_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [1, 1] mode = "edge"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension that does not become negative, got 0 and -1
relax.func @nn_pad_c3(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [-3, 4] mode = "reflect"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension with an element to repeat, got 1 and 0
relax.func @nn_pad_c4(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [-2, 4] mode = "reflect"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension that does not become negative, got 0 and -1
relax.func @nn_pad_c3(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [-1, -2]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pad' op expected a dimension with an element to repeat, got 1 and 0
relax.func @nn_pad_c4(%x: !relax.tensor<[0], f32>) -> !relax.object {
  %0 = relax.nn.pad %x pad_width = [1, 0] mode = "reflect"
  relax.return %0
}
