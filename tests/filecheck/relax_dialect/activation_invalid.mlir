// RUN: RELAX_INVALID

// CHECK: 'relax.nn.relu' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @nn_relu_c1[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.nn.relu %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.gelu' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_gelu_c1[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.nn.gelu %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.leakyrelu' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_leakyrelu_c1[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.nn.leakyrelu %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.softplus' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_softplus_c1[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.nn.softplus %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.prelu' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @nn_prelu_c1[%k, %n](%x: !relax.tensor<[n, k], f32>, %s: !relax.tensor<[k], f16>) -> !relax.object {
  %0 = relax.nn.prelu %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.nn.prelu' op operand #1 expected rank 1, got !relax.tensor<[k, 1], f32>
relax.func @nn_prelu_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %s: !relax.tensor<[k, 1], f32>) -> !relax.object {
  %0 = relax.nn.prelu %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.nn.prelu' op axis 2 is out of range for rank 2
relax.func @nn_prelu_c3[%k, %n](%x: !relax.tensor<[n, k], f32>, %s: !relax.tensor<[k], f32>) -> !relax.object {
  %0 = relax.nn.prelu %x, %s axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.nn.prelu' op expected a dimension that is 1 or the one of the shape, got 5 and 4
relax.func @nn_prelu_c4[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.nn.prelu %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.clip' op operand #0 expected an integer or floating-point dtype, got i1
relax.func @clip_c1[%n](%x: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.clip %x min = 0.0 max = 1.0
  relax.return %x
}

// -----

// CHECK: 'relax.clip' op expected min to be at most max, got 1.0 and 0.0
relax.func @clip_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.clip %x min = 1.0 max = 0.0
  relax.return %x
}

// -----

// CHECK: 'relax.nn.softmax' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_softmax_c1[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.nn.softmax %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.softmax' op axis 1 is out of range for rank 1
relax.func @nn_softmax_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.nn.softmax %x axis = 1
  relax.return %x
}
