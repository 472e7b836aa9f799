// RUN: relax-opt %s -p "schedule-cpu{target=x86-64-v3}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=x86-64-v3},schedule-cpu{target=x86-64-v3}" | filecheck %s

// With few rows, the columns are used from where they are. Otherwise they are packed in parallel, then blocks of rows are multiplied in parallel, with a tile of sums of constant size.
// CHECK-LABEL: tir.prim_func @anything
// CHECK:         %packed_columns = tir.alloc_buffer
// CHECK:         arith.cmpi sle
// CHECK:         tir.if
// CHECK:           tir.for parallel (%part)
// CHECK:             %sums = tir.alloc_buffer : !tir.buffer<[4, 32], f32, scope = "local", align = 64>
// CHECK:             tir.load %B[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:         tir.for parallel (%panel)
// CHECK:           tir.load %B[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:         tir.for parallel (%task)
// CHECK:           %packed_rows = tir.alloc_buffer
// CHECK:           %sums{{.*}} = tir.alloc_buffer : !tir.buffer<[6, 16], f32, scope = "local", align = 64>
// CHECK:           math.fma
// CHECK:           tir.store {{.*}}, %C[{{.*}}] mask
tir.prim_func @anything[%m, %n, %k](%A: !tir.buffer<[m, k], f32>, %B: !tir.buffer<[k, n], f32>, %C: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j, %r) in (%m, %n, %k) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}

// A sum that does not start at zero is no contraction: it is a reduction, with nothing packed.
// CHECK-LABEL: tir.prim_func @other
// CHECK-NOT:     packed
// CHECK:         tir.for vectorized
tir.prim_func @other[%m, %n, %k](%A: !tir.buffer<[m, k], f32>, %B: !tir.buffer<[k, n], f32>, %C: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j, %r) in (%m, %n, %k) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vr = reduce %r in %k) {
      tir.init {
        %one = arith.constant 1.0 : f32
        tir.store %one, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}
