// RUN: RELAX_INVALID

// CHECK: 'relax.concat' op expected at least one operand, got none
relax.func @concat_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.concat
  relax.return %x
}

// -----

// CHECK: 'relax.concat' op expected operands of one dtype, got f32 and i8; convert with 'relax.astype'
relax.func @concat_c2[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.concat %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.concat' op expected operands of one rank, got 1 and 2
relax.func @concat_c2[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n, 1], f32>) -> !relax.object {
  %0 = relax.concat %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.concat' op axis 2 is out of range for rank 2
relax.func @concat_c3[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.concat %x, %x axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.concat' op expected equal dimensions besides the axis, got 4 and 5
relax.func @concat_c4[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 5], f32>) -> !relax.object {
  %0 = relax.concat %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.split' op expected either sections or indices
relax.func @split_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.split %x
  relax.return %x
}

// -----

// CHECK: 'relax.split' op expected either sections or indices
relax.func @split_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.split %x sections = 1 indices = []
  relax.return %x
}

// -----

// CHECK: 'relax.split' op axis 2 is out of range for rank 2
relax.func @split_c2[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.split %x sections = 1 axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.split' op expected at least one section, got 0
relax.func @split_c3[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.split %x sections = 0
  relax.return %x
}

// -----

// CHECK: 'relax.split' op expected at most 65536 sections, got 4611686018427387904
relax.func @split_c3_too_many[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.split %x sections = 4611686018427387904
  relax.return %x
}

// -----

// CHECK: 'relax.split' op expected indices that do not decrease and are within the dimension, got 5 and 4
relax.func @split_c4[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0, %1 = relax.split %x indices = [5] axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.split' op expected indices that do not decrease and are within the dimension, got 3 and 2
relax.func @split_c4[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0, %1, %2 = relax.split %x indices = [3, 2] axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.stack' op expected at least one operand, got none
relax.func @stack_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.stack
  relax.return %x
}

// -----

// CHECK: 'relax.stack' op expected equal shapes, got 4 and 5
relax.func @stack_c2[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 5], f32>) -> !relax.object {
  %0 = relax.stack %x, %y
  relax.return %x
}

// -----

// CHECK: 'relax.stack' op axis 2 is out of range for rank 2
relax.func @stack_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.stack %x, %x axis = 2
  relax.return %x
}

// -----

// CHECK: 'relax.repeat' op expected a number of repeats that is not negative, got -1
relax.func @repeat_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.repeat %x repeats = -1
  relax.return %x
}

// -----

// CHECK: 'relax.repeat' op axis 1 is out of range for rank 1
relax.func @repeat_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.repeat %x repeats = 2 axis = 1
  relax.return %x
}

// -----

// CHECK: 'relax.tile' op expected repeats that are not negative, got [2, -1]
relax.func @tile_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.tile %x repeats = [2, -1]
  relax.return %x
}

// -----

// CHECK: 'relax.concat' op expected operands without parentheses: relax.concat %x, %x
relax.func @concat_in_parentheses[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.concat(%x, %x)
  relax.return %x
}
