// RUN: relax-opt %s -p convert-tir-to-llvm --print-debuginfo | filecheck %s

// What an op becomes is where the op was.
// CHECK-LABEL: llvm.func @scale
// CHECK-NOT:     {{^    .*}}loc(unknown)
// CHECK:         llvm.icmp "slt" {{.*}} loc("model.mlir":3:1)
// CHECK:       ^{{.*}}(%i: i64 loc("model.mlir":3:1)):
// CHECK:         llvm.load {{.*}} loc("model.mlir":4:1)
// CHECK-NEXT:    llvm.fmul {{.*}} loc("model.mlir":5:1)
// CHECK-NEXT:    llvm.store {{.*}} loc("model.mlir":6:1)
// CHECK:         llvm.icmp "ne" {{.*}} loc("model.mlir":3:1)
tir.prim_func @scale[%n](%X: !tir.buffer<[n], f32>, %a: f32) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i] loc("model.mlir":4:1)
    %y = arith.mulf %x, %a : f32 loc("model.mlir":5:1)
    tir.store %y, %X[%i] loc("model.mlir":6:1)
  } loc("model.mlir":3:1)
} loc("model.mlir":2:1)
