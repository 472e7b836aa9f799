// RUN: relax-opt %s -p fold-batch-norm --split-input-file | filecheck %s
// RUN: relax-opt %s -p fold-batch-norm,fold-batch-norm --split-input-file | filecheck %s
// RUN: relax-opt %s -p fold-batch-norm --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The scale goes into the weights, the shift takes the bias in.
// CHECK-LABEL: relax.func @convolution
// CHECK-NEXT:    %w = relax.constant dense<{{\[\[\[\[}}2.000000e+00{{\]+}}, {{\[+}}8.000000e+00{{\]+}}> : tensor<2x1x1x1xf32>
// CHECK-NEXT:    %0 = relax.nn.conv2d %x, %w
// CHECK-NEXT:    %1 = relax.constant dense<{{\[\[\[}}-3.000000e+00{{\]+}}, {{\[+}}6.000000e+00{{\]+}}> : tensor<2x1x1xf32>
// CHECK-NEXT:    %y = relax.add %0, %1
// CHECK-NEXT:    relax.return %y
// LOC: relax.add {{.*}} loc(fused[{{.*}}:[[# @LINE + 7]]:3{{.*}}:[[# @LINE + 10]]:3{{.*}}])
relax.func @convolution[%n](%x: !relax.tensor<[n, 1, 4, 4], f32>) -> !relax.tensor<[n, 2, 4, 4], f32> {
  %w = relax.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %gamma = relax.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %beta = relax.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %mean = relax.constant dense<[3.0, 0.0]> : tensor<2xf32>
  %variance = relax.constant dense<1.0> : tensor<2xf32>
  %0 = relax.nn.conv2d %x, %w
  %bias = relax.constant dense<1.0> : tensor<2x1x1xf32>
  %1 = relax.add %0, %bias
  %y = relax.nn.batch_norm %1, %gamma, %beta, %mean, %variance epsilon = 0.0
  relax.return %y
}

// -----

// Where there are no weights, or somebody else uses the product, the scale is multiplied.
// CHECK-LABEL: relax.func @elsewhere
// CHECK:         %0 = relax.nn.conv2d %x, %w
// CHECK:         %[[SCALED:.*]] = relax.multiply %0,
// CHECK:         %y = relax.add %[[SCALED]],
// CHECK:         relax.tuple(%0, %y)
relax.func @elsewhere[%n](%x: !relax.tensor<[n, 1, 4, 4], f32>, %w: !relax.tensor<[2, 1, 1, 1], f32>) -> !relax.object {
  %c = relax.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %0 = relax.nn.conv2d %x, %w
  %y = relax.nn.batch_norm %0, %c, %c, %c, %c
  %1 = relax.tuple(%0, %y)
  relax.return %1
}

// -----

// Statistics that only the run time knows stay.
// CHECK-LABEL: relax.func @unknown
// CHECK-NEXT:    %y = relax.nn.batch_norm
relax.func @unknown[%n](%x: !relax.tensor<[n, 2], f32>, %c: !relax.tensor<[2], f32>) -> !relax.tensor<[n, 2], f32> {
  %y = relax.nn.batch_norm %x, %c, %c, %c, %c
  relax.return %y
}

// -----

// What else exporters make of a normalisation: the scale goes into weights and bias, the shifts become one.
// CHECK-LABEL: relax.func @scale
// CHECK-NEXT:    %w = relax.constant dense<{{\[\[\[\[}}2.000000e+00{{\]+}}, {{\[+}}8.000000e+00{{\]+}}> : tensor<2x1x1x1xf32>
// CHECK-NEXT:    %0 = relax.nn.conv2d %x, %w
// CHECK-NEXT:    %1 = relax.constant dense<{{\[\[\[}}7.000000e+00{{\]+}}, {{\[+}}9.000000e+00{{\]+}}> : tensor<2x1x1xf32>
// CHECK-NEXT:    %y = relax.add %0, %1
// CHECK-NEXT:    relax.return %y
relax.func @scale[%n](%x: !relax.tensor<[n, 1, 4, 4], f32>) -> !relax.tensor<[n, 2, 4, 4], f32> {
  %w = relax.constant dense<[[[[1.0]]], [[[2.0]]]]> : tensor<2x1x1x1xf32>
  %bias = relax.constant dense<1.0> : tensor<2x1x1xf32>
  %scale = relax.constant dense<[[[2.0]], [[4.0]]]> : tensor<2x1x1xf32>
  %shift = relax.constant dense<5.0> : tensor<2x1x1xf32>
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.add %0, %bias
  %2 = relax.multiply %1, %scale
  %y = relax.add %2, %shift
  relax.return %y
}
