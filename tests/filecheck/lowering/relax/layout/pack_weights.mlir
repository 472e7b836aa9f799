// RUN: relax-opt %s -p "pack-weights{target=x86-64-v4}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "pack-weights{target=x86-64-v4},pack-weights{target=x86-64-v4}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "pack-weights{target=x86-64-v3}" --split-input-file | filecheck %s --check-prefix AVX2
// RUN: relax-opt %s -p "pack-weights{target=x86-64-v4}" --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The constant lies in panels as wide as the tiles of the machine. The PrimFunc stays for the call without a constant;
// calls with equal layouts share the variant, and equal constants are packed once.
// CHECK-LABEL: tir.prim_func @matmul[
// CHECK:         tir.load %B[%vr, %vj]
// CHECK-LABEL: tir.prim_func @matmul_panels[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[2, 4, 32], f32>, %C: !tir.buffer<[m, 48], f32>) {
// CHECK:         %[[W:.*]] = arith.constant 32 : index
// CHECK-NEXT:    %[[PANEL:.*]] = arith.divui %vj, %[[W]] : index
// CHECK-NEXT:    %[[WITHIN:.*]] = arith.remui %vj, %[[W]] : index
// CHECK-NEXT:    %b = tir.load %B[%[[PANEL]], %vr, %[[WITHIN]]]
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %w = relax.constant dense<{{.*}}> : tensor<2x4x32xf32>
// CHECK-NEXT:    %0 = relax.call_tir @matmul_panels(%x, %w) : !relax.tensor<[n, 48], f32>
// CHECK-NEXT:    %1 = relax.call_tir @matmul_panels(%x, %w) : !relax.tensor<[n, 48], f32>
// CHECK-NEXT:    %2 = relax.call_tir @matmul(%x, %y) : !relax.tensor<[n, 48], f32>
// AVX2:        %B: !tir.buffer<[3, 4, 16], f32>
// LOC-LABEL:   @matmul_panels
// LOC:         %b = tir.load %B[%{{[0-9]+}}, %vr, %{{[0-9]+}}] loc("{{.*}}pack_weights.mlir":34:7)
tir.prim_func @matmul[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[4, 48], f32>, %C: !tir.buffer<[m, 48], f32>) {
  %c4 = arith.constant 4 : index
  %c48 = arith.constant 48 : index
  tir.for (%i, %j, %r) in (%m, %c48, %c4) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %c48, %vr = reduce %r in %c4) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[4, 48], f32>) -> !relax.tensor<[n, 48], f32> {
  %w = relax.constant dense<2.0> : tensor<4x48xf32>
  %0 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 48], f32>
  %1 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 48], f32>
  %2 = relax.call_tir @matmul(%x, %y) : !relax.tensor<[n, 48], f32>
  relax.return %2
}

// -----

// A constant whose columns lie along the sums becomes the same panels; a PrimFunc that is called no more goes.
// CHECK-NOT:   tir.prim_func @linear[
// CHECK-LABEL: tir.prim_func @linear_panels[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[1, 4, 32], f32>
// CHECK-LABEL: relax.func @main
tir.prim_func @linear[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[32, 4], f32>, %C: !tir.buffer<[m, 32], f32>) {
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  tir.for (%i, %j, %r) in (%m, %c32, %c4) {
    tir.block "linear" (%vi = spatial %i in %m, %vj = spatial %j in %c32, %vr = reduce %r in %c4) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vj, %vr]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 32], f32> {
  %w = relax.constant dense<2.0> : tensor<32x4xf32>
  %0 = relax.call_tir @linear(%x, %w) : !relax.tensor<[n, 32], f32>
  relax.return %0
}

// -----

// Left alone: what is not here, and what panels would make half as large again.
// CHECK-LABEL: tir.prim_func @narrow
// CHECK-NOT:   panels
tir.prim_func @narrow[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[4, 10], f32>, %C: !tir.buffer<[m, 10], f32>) {
  %c4 = arith.constant 4 : index
  %c10 = arith.constant 10 : index
  tir.for (%i, %j, %r) in (%m, %c10, %c4) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %c10, %vr = reduce %r in %c4) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
tir.prim_func @wide[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[4, 32], f32>, %C: !tir.buffer<[m, 32], f32>) {
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  tir.for (%i, %j, %r) in (%m, %c32, %c4) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %c32, %vr = reduce %r in %c4) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 32], f32> {
  %w = relax.constant dense<2.0> : tensor<4x10xf32>
  %0 = relax.call_tir @narrow(%x, %w) : !relax.tensor<[n, 10], f32>
  %v = relax.constant "elsewhere" : !relax.tensor<[4, 32], f32>
  %1 = relax.call_tir @wide(%x, %v) : !relax.tensor<[n, 32], f32>
  relax.return %1
}

// -----

// Parameters that may be parts of each other are read where they are: no tile may be computed before another is read.
// CHECK-LABEL: tir.prim_func @aliased
// CHECK-NOT:   panels
// CHECK-LABEL: relax.func @reads_where_it_is
// CHECK:         relax.call_tir @aliased(%x, %w)
tir.prim_func @aliased[%m](%A: !tir.buffer<[m, 4], f32>, %B: !tir.buffer<[4, 48], f32>, %C: !tir.buffer<[m, 48], f32>) may_alias {
  %c4 = arith.constant 4 : index
  %c48 = arith.constant 48 : index
  tir.for (%i, %j, %r) in (%m, %c48, %c4) {
    tir.block "matmul" (%vi = spatial %i in %m, %vj = spatial %j in %c48, %vr = reduce %r in %c4) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %c = tir.load %C[%vi, %vj]
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
relax.func @reads_where_it_is[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 48], f32> {
  %w = relax.constant dense<2.0> : tensor<4x48xf32>
  %0 = relax.call_tir @aliased(%x, %w) : !relax.tensor<[n, 48], f32>
  relax.return %0
}
