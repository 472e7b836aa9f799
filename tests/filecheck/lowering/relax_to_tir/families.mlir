// RUN: relax-opt %s -p legalize-ops --split-input-file | filecheck %s

// A matmul is a reduction block: two spatial iterators and one for K, which starts at zero.
// CHECK-LABEL: tir.prim_func @matmul[%m, %k, %n]
// CHECK-NEXT:    tir.for (%i0, %i1, %r) in (%m, %n, %k)
// CHECK-NEXT:      tir.block "matmul" (%vi0 = spatial %i0 in %m, %vi1 = spatial %i1 in %n, %vr = reduce %r in %k)
// CHECK-NEXT:        tir.init {
// CHECK-NEXT:          %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:          tir.store %[[ZERO]], %matmul[%vi0, %vi1]
// CHECK:             %[[SUM:.*]] = tir.load %matmul[%vi0, %vi1]
// CHECK-NEXT:        %[[A:.*]] = tir.load %x[%vi0, %vr]
// CHECK-NEXT:        %[[B:.*]] = tir.load %y[%vr, %vi1]
// CHECK-NEXT:        %[[AB:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:        %[[NEW:.*]] = arith.addf %[[SUM]], %[[AB]] : f32
// CHECK-NEXT:        tir.store %[[NEW]], %matmul[%vi0, %vi1]
relax.func @gemm[%m, %k, %n](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, n], f32>) -> !relax.tensor<[m, n], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}

// -----

// A convolution pads its data in a stage of its own, so that the reduction has no condition.
// CHECK-LABEL: tir.prim_func @nn_conv2d[%n]
// CHECK:         %padded = tir.alloc_buffer : !tir.buffer<[n, 3, 10, 10], f32>
// CHECK:         tir.block "padded"
// CHECK:           tir.if {{.*}} -> (f32) {
// CHECK-NEXT:        tir.load %x
// CHECK:           } else {
// CHECK-NEXT:        arith.constant 0.000000e+00 : f32
// CHECK:         tir.block "conv2d" ({{.*}}%vc = reduce %c in %c3, %vk0 = reduce %k0 in %c3, %vk1 = reduce %k1 in %c3)
// CHECK-NOT:       tir.if
// CHECK:           %[[ROW:.*]] = arith.addi %vi2{{.*}}, %vk0 : index
// CHECK-NEXT:      %[[COLUMN:.*]] = arith.addi %vi3{{.*}}, %vk1 : index
// CHECK-NEXT:      tir.load %padded[%vi0{{.*}}, %vc, %[[ROW]], %[[COLUMN]]]
relax.func @padded[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.tensor<[n, 4, 8, 8], f32> {
  %0 = relax.nn.conv2d %x, %w padding = [1, 1, 1, 1]
  relax.return %0
}

// -----

// Softmax subtracts the maximum of a row, so that no exponential overflows: four stages.
// CHECK-LABEL: tir.prim_func @nn_softmax[%m, %n]
// CHECK:         tir.block "top"
// CHECK:           arith.constant 0xff800000 : f32
// CHECK:           arith.maximumf
// CHECK:         tir.block "exps"
// CHECK:           %[[DIFFERENCE:.*]] = arith.subf
// CHECK-NEXT:      math.exp %[[DIFFERENCE]] : f32
// CHECK:         tir.block "sums"
// CHECK:           arith.addf
// CHECK:         tir.block "softmax"
// CHECK:           arith.divf
// CHECK-NOT:     tir.block
relax.func @stable[%m, %n](%x: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32> {
  %0 = relax.nn.softmax %x axis = -1
  relax.return %0
}

// -----

// The number of elements of a mean is known when the kernel runs.
// CHECK-LABEL: tir.prim_func @mean[%m, %n]
// CHECK:         tir.block "means"
// CHECK:           %[[COUNT:.*]] = arith.index_cast %n : index to i64
// CHECK-NEXT:      %[[FLOAT:.*]] = arith.sitofp %[[COUNT]] : i64 to f32
// CHECK-NEXT:      arith.divf {{.*}}, %[[FLOAT]] : f32
relax.func @average[%m, %n](%x: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m], f32> {
  %0 = relax.mean %x axes = [1]
  relax.return %0
}

// -----

// Indices of `take` count from the end if they are negative, and are clipped to the axis: no access is out of bounds.
// CHECK-LABEL: tir.prim_func @take[%n, %k]
// CHECK:         %[[INDEX:.*]] = arith.index_cast
// CHECK:         %[[NEGATIVE:.*]] = arith.cmpi slt, %[[INDEX]]
// CHECK-NEXT:    %[[FROM_END:.*]] = arith.addi %[[INDEX]], %n : index
// CHECK-NEXT:    %[[EITHER:.*]] = arith.select %[[NEGATIVE]], %[[FROM_END]], %[[INDEX]] : index
// CHECK-NEXT:    %[[LAST:.*]] = tir.dim n - 1
// CHECK-NEXT:    %[[BELOW:.*]] = arith.minsi %[[EITHER]], %[[LAST]] : index
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.maxsi %[[BELOW]]
// CHECK-NEXT:    tir.load %x[%[[INSIDE]], %vi1]
relax.func @picked[%n, %k](%x: !relax.tensor<[n, 4], f32>, %i: !relax.tensor<[k], i64>) -> !relax.tensor<[k, 4], f32> {
  %0 = relax.take %x, %i axis = 0
  relax.return %0
}
