// RUN: relax-opt %s -p rewrite-normalization --split-input-file | filecheck %s
// RUN: relax-opt %s -p rewrite-normalization,rewrite-normalization --split-input-file | filecheck %s
// RUN: relax-opt %s -p rewrite-normalization --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// As ONNX exporters write it.
// CHECK-LABEL: relax.func @layer_norm
// CHECK:         %y = relax.nn.layer_norm %x, %gamma, %beta axes = [2]
// CHECK-NEXT:    relax.return %y
// LOC: relax.nn.layer_norm {{.*}} loc("{{.*}}":[[# @LINE + 12]]:3)
relax.func @layer_norm[%n](%x: !relax.tensor<[n, 3, 4], f32>, %gamma: !relax.tensor<[4], f32>, %beta: !relax.tensor<[4], f32>) -> !relax.tensor<[n, 3, 4], f32> {
  %two = relax.constant dense<2.0> : tensor<f32>
  %epsilon = relax.constant dense<1.000000e-05> : tensor<f32>
  %m = relax.mean %x axes = [-1] keepdims
  %d = relax.subtract %x, %m
  %q = relax.power %d, %two
  %v = relax.mean %q axes = [-1] keepdims
  %e = relax.add %v, %epsilon
  %s = relax.sqrt %e
  %o = relax.divide %d, %s
  %g = relax.multiply %o, %gamma
  %y = relax.add %g, %beta
  relax.return %y
}

// -----

// CHECK-LABEL: relax.func @rms_norm
// CHECK:         %y = relax.nn.rms_norm %x, %w axes = [1] epsilon = 0.5
// CHECK-NEXT:    relax.return %y
relax.func @rms_norm[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4], f32>) -> !relax.tensor<[n, 4], f32> {
  %epsilon = relax.constant dense<0.5> : tensor<1xf32>
  %q = relax.multiply %x, %x
  %m = relax.mean %q axes = [1] keepdims
  %e = relax.add %m, %epsilon
  %r = relax.rsqrt %e
  %o = relax.multiply %x, %r
  %y = relax.multiply %w, %o
  relax.return %y
}

// -----

// Other axes than the last, and weights of another shape.
// CHECK-LABEL: relax.func @others
// CHECK-NOT:     relax.nn
relax.func @others[%n](%x: !relax.tensor<[n, n], f32>, %w: !relax.tensor<[n], f32>, %u: !relax.tensor<[n, n], f32>) -> !relax.object {
  %epsilon = relax.constant dense<0.5> : tensor<f32>
  %q = relax.multiply %x, %x
  %m = relax.mean %q axes = [0] keepdims
  %e = relax.add %m, %epsilon
  %r = relax.rsqrt %e
  %o = relax.multiply %x, %r
  %y = relax.multiply %w, %o
  %q1 = relax.multiply %y, %y
  %m1 = relax.mean %q1 axes = [1] keepdims
  %e1 = relax.add %m1, %epsilon
  %r1 = relax.rsqrt %e1
  %o1 = relax.multiply %y, %r1
  %y1 = relax.multiply %u, %o1
  relax.return %y1
}
