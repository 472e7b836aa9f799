// RUN: relax-opt %s -p lower-init-blocks,lower-blocks --print-debuginfo | filecheck %s

// What replaces a block is where the block, or its init, was.
// CHECK-LABEL: tir.prim_func @sum
// CHECK:       arith.constant 0.000000e+00 : f32 loc("model.mlir":7:1)
// CHECK:       tir.store %{{.*}}, %C[%i] loc("model.mlir":8:1)
// CHECK:       tir.if %inside {
// CHECK:       } loc("model.mlir":5:1)
tir.prim_func @sum[%m, %n](%A: !tir.buffer<[m, n], f32>, %C: !tir.buffer<[m], f32>) {
  tir.for (%i) in (%m) {
    tir.for (%r) in (%n) {
      %inside = arith.cmpi slt, %r, %n : index loc("model.mlir":4:1)
      tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) where %inside {
        tir.init {
          %zero = arith.constant 0.0 : f32 loc("model.mlir":7:1)
          tir.store %zero, %C[%vi] loc("model.mlir":8:1)
        } loc("model.mlir":6:1)
        %c = tir.load %C[%vi] loc("model.mlir":9:1)
        tir.store %c, %C[%vi] loc("model.mlir":10:1)
      } loc("model.mlir":5:1)
    } loc("model.mlir":3:1)
  } loc("model.mlir":2:1)
} loc("model.mlir":1:1)
