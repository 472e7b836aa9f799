// RUN: relax-opt %s -p fold-shape-computations --split-input-file | filecheck %s
// RUN: relax-opt %s -p fold-shape-computations,fold-shape-computations --split-input-file | filecheck %s
// RUN: relax-opt %s -p fold-shape-computations --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// What exporters write for a reshape to [batch, -1].
// CHECK-LABEL: relax.func @reshape
// CHECK-NEXT:    %d = relax.shape [n, 32]
// CHECK-NEXT:    %y = relax.reshape %x, %d
// CHECK-NEXT:    relax.return %y
// LOC: %d = relax.shape [n, 32] loc("{{.*}}fold_shape_computations.mlir":20:3)
relax.func @reshape[%n](%x: !relax.tensor<[n, 4, 8], f32>) -> !relax.tensor<[n, 32], f32> {
  %s = relax.shape_of %x
  %t = relax.shape_to_tensor %s
  %i = relax.constant dense<0> : tensor<i64>
  %b = relax.take %t, %i axis = 0
  %e = relax.expand_dims %b axes = [0]
  %r = relax.constant dense<[4, 8]> : tensor<2xi64>
  %p = relax.prod %r keepdims
  %c = relax.concat %e, %p axis = 0
  %d = relax.tensor_to_shape %c
  %y = relax.reshape %x, %d : !relax.tensor<[_, _], f32>
  relax.return %y
}

// -----

// Types that follow from a folded shape are the source of the next one.
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %d = relax.shape [2 * n]
// CHECK-NEXT:    %y = relax.reshape %x, %d
// CHECK-NEXT:    %z = relax.exp %y
// CHECK-NEXT:    %g = relax.shape [2, n]
// CHECK-NEXT:    %w = relax.reshape %z, %g
// CHECK-NEXT:    relax.return %w
relax.func @chain[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[_, _], f32> {
  %a = relax.shape_of %x
  %b = relax.shape_to_tensor %a
  %c = relax.prod %b keepdims
  %d = relax.tensor_to_shape %c
  %y = relax.reshape %x, %d : !relax.tensor<[_], f32>
  %z = relax.exp %y : !relax.tensor<[_], f32>
  %e = relax.shape_of %z : !relax.shape<[_]>
  %f = relax.shape_to_tensor %e
  %two = relax.constant dense<2> : tensor<1xi64>
  %half = relax.floor_divide %f, %two
  %both = relax.concat %two, %half axis = 0
  %g = relax.tensor_to_shape %both
  %w = relax.reshape %z, %g : !relax.tensor<[_, _], f32>
  relax.return %w
}

// -----

// -1 marks a dimension to keep; places of a slice are shapes too.
// CHECK-LABEL: relax.func @choice
// CHECK-NEXT:    %d = relax.shape [n, m]
// CHECK-NEXT:    %y = relax.broadcast_to %x, %d
// CHECK-NEXT:    %0 = relax.strided_slice %y axes = [0, 1] begin = [0, 1] end = [n, m] strides = [1, 1]
// CHECK-NEXT:    relax.return %0
relax.func @choice[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[_, _], f32> {
  %s = relax.shape_of %x
  %t = relax.shape_to_tensor %s
  %wanted = relax.constant dense<-1> : tensor<2xi64>
  %keep = relax.constant dense<-1> : tensor<2xi64>
  %same = relax.equal %wanted, %keep
  %c = relax.where %same, %t, %wanted
  %d = relax.tensor_to_shape %c
  %y = relax.broadcast_to %x, %d : !relax.tensor<[_, _], f32>
  %begin = relax.constant dense<[0, 1]> : tensor<2xi64>
  %steps = relax.constant dense<1> : tensor<2xi64>
  %0 = relax.dynamic_strided_slice %y, %begin, %t, %steps
  relax.return %0
}

// -----

// What is data stays; a tensor that is returned is made of the known shape.
// CHECK-LABEL: relax.func @data
// CHECK-NEXT:    %d = relax.tensor_to_shape %v
// CHECK-NEXT:    %y = relax.reshape %x, %d
// CHECK-NEXT:    %{{.*}} = relax.shape [6, n]
// CHECK-NEXT:    %t = relax.shape_to_tensor
// CHECK-NEXT:    %{{.*}} = relax.tuple(%y, %t)
relax.func @data[%n](%x: !relax.tensor<[6, n], f32>, %v: !relax.tensor<[2], i64>) -> !relax.tuple<!relax.tensor<[_, _], f32>, !relax.tensor<[2], i64>> {
  %d = relax.tensor_to_shape %v
  %y = relax.reshape %x, %d : !relax.tensor<[_, _], f32>
  %s = relax.shape_of %x
  %t = relax.shape_to_tensor %s
  %r = relax.tuple(%y, %t)
  relax.return %r
}

tir.prim_func @negate[%n](%X: !tir.buffer<[n], i64>) {
}

// A tensor that somebody writes into has memory of its own, also one without elements, whose values are known for that.
// CHECK-LABEL: relax.func @written
// CHECK:         %t = relax.flatten %x
// CHECK-NEXT:    %y = relax.call_tir_inplace @negate(%t) inplace [0]
// CHECK-NEXT:    relax.return %y
relax.func @written(%e: !relax.tensor<[0, 2], i64>) -> !relax.tensor<[0], i64> {
  %x = relax.negative %e
  %t = relax.flatten %x
  %y = relax.call_tir_inplace @negate(%t) inplace [0] : !relax.tensor<[0], i64>
  relax.return %y
}

// -----

// What fails when it is run has no value.
// CHECK-LABEL: relax.func @fails
// CHECK:         relax.add
// CHECK:         relax.concat
relax.func @fails(%x: !relax.tensor<[2], i64>, %y: !relax.tensor<[3], i64>, %z: !relax.tensor<[1, 1], i64>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[_], i64>
  %1 = relax.add %0, %y
  %2 = relax.match_cast %x : !relax.tensor<*, i64>
  %3 = relax.concat %2, %z
  %4 = relax.tuple(%1, %3)
  relax.return %4
}
