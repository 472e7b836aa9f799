// RUN: RELAX_INVALID

// CHECK: 'relax.nn.layer_norm' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @nn_layer_norm_c1[%k, %n](%x: !relax.tensor<[n, k], f32>, %g: !relax.tensor<[k], f16>) -> !relax.object {
  %0 = relax.nn.layer_norm %x, %g, %g axes = [-1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.layer_norm' op axis 2 is out of range for rank 2
relax.func @nn_layer_norm_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %g: !relax.tensor<[k], f32>) -> !relax.object {
  %0 = relax.nn.layer_norm %x, %g, %g axes = [2]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.layer_norm' op expected operand #1 to have the normalised dimensions, got 5 and 4
relax.func @nn_layer_norm_c3[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.nn.layer_norm %x, %g, %g axes = [-1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.layer_norm' op operand #1 expected rank 1, got !relax.tensor<[4, 1], f32>
relax.func @nn_layer_norm_c3[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[4, 1], f32>) -> !relax.object {
  %0 = relax.nn.layer_norm %x, %g, %g axes = [-1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rms_norm' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_rms_norm_c1[%k, %n](%x: !relax.tensor<[n, k], i8>, %g: !relax.tensor<[k], i8>) -> !relax.object {
  %0 = relax.nn.rms_norm %x, %g axes = [-1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rms_norm' op expected each axis once, got [1, 1]
relax.func @nn_rms_norm_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %g: !relax.tensor<[k], f32>) -> !relax.object {
  %0 = relax.nn.rms_norm %x, %g axes = [1, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rms_norm' op expected operand #1 to have the normalised dimensions, got 5 and 4
relax.func @nn_rms_norm_c3[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.nn.rms_norm %x, %g axes = [-1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.group_norm' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_group_norm_c1[%k, %n](%x: !relax.tensor<[n, k], i8>, %g: !relax.tensor<[k], i8>) -> !relax.object {
  %0 = relax.nn.group_norm %x, %g, %g num_groups = 1 channel_axis = 1 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.group_norm' op expected each axis once, got [1, 1]
relax.func @nn_group_norm_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %g: !relax.tensor<[k], f32>) -> !relax.object {
  %0 = relax.nn.group_norm %x, %g, %g num_groups = 1 channel_axis = 1 axes = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.group_norm' op expected operand #1 to have the normalised dimensions, got 5 and 4
relax.func @nn_group_norm_c3[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.nn.group_norm %x, %g, %g num_groups = 1 channel_axis = 1 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.group_norm' op expected a multiple of 3 channels, got 4
relax.func @nn_group_norm_c4[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.nn.group_norm %x, %g, %g num_groups = 3 channel_axis = 1 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.group_norm' op expected at least one group, got 0
relax.func @nn_group_norm_c4[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.nn.group_norm %x, %g, %g num_groups = 0 channel_axis = 1 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.instance_norm' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_instance_norm_c1[%k, %n](%x: !relax.tensor<[n, k], i8>, %g: !relax.tensor<[k], i8>) -> !relax.object {
  %0 = relax.nn.instance_norm %x, %g, %g channel_axis = 1 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.instance_norm' op axis 2 is out of range for rank 2
relax.func @nn_instance_norm_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %g: !relax.tensor<[k], f32>) -> !relax.object {
  %0 = relax.nn.instance_norm %x, %g, %g channel_axis = 2 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.instance_norm' op expected operand #1 to have the normalised dimensions, got 5 and 4
relax.func @nn_instance_norm_c3[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.nn.instance_norm %x, %g, %g channel_axis = 1 axes = []
  relax.return %x
}

// -----

// CHECK: 'relax.nn.batch_norm' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_batch_norm_c1[%k, %n](%x: !relax.tensor<[n, k], i8>, %g: !relax.tensor<[k], i8>) -> !relax.object {
  %0 = relax.nn.batch_norm %x, %g, %g, %g, %g
  relax.return %x
}

// -----

// CHECK: 'relax.nn.batch_norm' op axis 2 is out of range for rank 2
relax.func @nn_batch_norm_c2[%k, %n](%x: !relax.tensor<[n, k], f32>, %g: !relax.tensor<[k], f32>) -> !relax.object {
  %0 = relax.nn.batch_norm %x, %g, %g, %g, %g axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.nn.batch_norm' op expected operand #1 to have the normalised dimensions, got 5 and 4
relax.func @nn_batch_norm_c3[%n](%x: !relax.tensor<[n, 4], f32>, %g: !relax.tensor<[5], f32>) -> !relax.object {
  %0 = relax.nn.batch_norm %x, %g, %g, %g, %g
  relax.return %x
}
