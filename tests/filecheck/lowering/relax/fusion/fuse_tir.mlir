// RUN: relax-opt %s -p fuse-tir --split-input-file | filecheck %s
// RUN: relax-opt %s -p fuse-tir,fuse-tir --split-input-file | filecheck %s
// RUN: relax-opt %s -p fuse-tir --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The value between two elementwise functions needs no memory; PrimFuncs that are called no more go.
// CHECK-LABEL: tir.prim_func @fused_exp_negative[%k](%x: !tir.buffer<[k], f32>, %y: !tir.buffer<[k], f32>) {
// CHECK-NEXT:    tir.for (%i) in (%k) {
// CHECK-NEXT:      tir.block "negative" (%vi = spatial %i in %k) {
// CHECK-NEXT:        %0 = tir.load %x[%vi]
// CHECK-NEXT:        %1 = math.exp %0 : f32
// CHECK-NEXT:        %2 = arith.negf %1 : f32
// CHECK-NEXT:        tir.store %2, %y[%vi]
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %y = relax.call_tir @fused_exp_negative(%x) : !relax.tensor<[k], f32>
// CHECK-NEXT:    %z = relax.call_tir @negative(%y) : !relax.tensor<[k], f32>
// LOC: math.exp {{.*}}fuse_tir.mlir":23:7)
// LOC: arith.negf {{.*}}fuse_tir.mlir":32:7)
// LOC: relax.call_tir @fused_exp_negative{{.*}}fuse_tir.mlir":38:3)
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %0 = tir.load %X[%vi]
      %1 = math.exp %0 : f32
      tir.store %1, %Y[%vi]
    }
  }
}
tir.prim_func @negative[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "negative" (%vi = spatial %i in %n) {
      %0 = tir.load %X[%vi]
      %1 = arith.negf %0 : f32
      tir.store %1, %Y[%vi]
    }
  }
}
relax.func @chain[%k](%x: !relax.tensor<[k], f32>) -> !relax.tensor<[k], f32> {
  %y = relax.fused {
    %0 = relax.call_tir @exp(%x) : !relax.tensor<[k], f32>
    %1 = relax.call_tir @negative(%0) : !relax.tensor<[k], f32>
    relax.yield %1
  }
  %z = relax.call_tir @negative(%y) : !relax.tensor<[k], f32>
  relax.return %z
}

// -----

// What a reduction gives, and what would be computed too often, stays in memory of the kernel. Sizes that no buffer
// tells are given by the caller.
// CHECK-LABEL: tir.prim_func @fused_half_sum
// CHECK-SAME:    (%x: !tir.buffer<[d0], f32>, %s: !tir.buffer<[], f32>)
// CHECK-NEXT:    %0 = tir.alloc_buffer : !tir.buffer<[n], f32>
// CHECK-NEXT:    tir.for (%i) in (%n) {
// CHECK:           math.exp
// CHECK:         tir.for (%{{.*}}, %{{.*}}) in (%n, %n) {
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %s = relax.call_tir @fused_half_sum(%x) tir_vars [n] : !relax.tensor<[], f32>
tir.prim_func @half[%n](%X: !tir.buffer<[2 * n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "half" (%vi = spatial %i in %n) {
      %0 = tir.load %X[%vi]
      %1 = math.exp %0 : f32
      tir.store %1, %Y[%vi]
    }
  }
}
tir.prim_func @sum[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[], f32>) {
  tir.for (%i, %j) in (%n, %n) {
    tir.block "sum" (%vi = reduce %i in %n, %vj = reduce %j in %n) {
      tir.init {
        %0 = arith.constant 0.0 : f32
        tir.store %0, %Y[]
      }
      %1 = tir.load %Y[]
      %2 = tir.load %X[%vi]
      %3 = arith.addf %1, %2 : f32
      tir.store %3, %Y[]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[2 * n], f32>) -> !relax.tensor<[], f32> {
  %s = relax.fused {
    %0 = relax.call_tir @half(%x) : !relax.tensor<[n], f32>
    %1 = relax.call_tir @sum(%0) : !relax.tensor<[], f32>
    relax.yield %1
  }
  relax.return %s
}
