// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=2\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=2\"},schedule-cpu{target=\"x86-64-v3 cores=2\"}" | filecheck %s

// GEMV: each task has chunks of rows of the matrix, with accumulators that are aligned like the matrix; then they are added up.
// Small N: each task copies the columns, and whole rows are multiplied with all at once; one column is copied to the alignment of long rows.
// Skinny: operands are read in place; for many rows from memory, columns that fit the cache are packed first (tall-skinny).
// Packed: tasks pack strips of rows for themselves; the first tile of a panel packs it, and prefetches the next one where rows are a page apart.
// CHECK-LABEL: tir.prim_func @anything
// CHECK:         arith.cmpi eq
// CHECK:         tir.if
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[{{.*}}, 8 * floordiv(n + 7, 8) + 32], f32, align = 64>
// CHECK:           tir.misalignment %B_1[{{.*}}] of 8
// CHECK:           tir.for parallel (%task)
// CHECK:             tir.for (%part)
// CHECK:               tir.call unchecked @relax.routine.vector.f32.8{{.*}}](%A_1, %B_1, %{{[0-9]+}})
// CHECK:           tir.for (%part_{{[0-9]+}})
// CHECK:           tir.store {{.*}}, %C_1[{{.*}}] mask
// CHECK:         arith.cmpi sle
// CHECK:         tir.if
// CHECK:           tir.misalignment %A_1[{{.*}}] of 8
// CHECK:           tir.for parallel (%task_{{[0-9]+}})
// CHECK:             %copies = tir.alloc_buffer : !tir.buffer<[56 * floordiv(k + 7, 8) + 56], f32, align = 64>
// CHECK:             %partial_sums = tir.alloc_buffer : !tir.buffer<[8, 8], f32, align = 64>
// CHECK:               tir.call unchecked @relax.routine.lines.f32.4x16{{.*}}](%copies, %A_1, %partial_sums)
// CHECK:               tir.call unchecked @relax.routine.columns.f32.4x1{{.*}}](%copies, %A_1, %C_1)
// CHECK:               tir.call unchecked @relax.routine.columns.f32.4x2{{.*}}](%copies, %A_1, %C_1)
// CHECK:               tir.call unchecked @relax.routine.columns.f32.2x4{{.*}}](%copies, %A_1, %C_1)
// CHECK:         arith.cmpi sgt
// CHECK:         tir.if
// CHECK:           %packed_columns = tir.alloc_buffer
// CHECK:           tir.for parallel (%task_{{[0-9]+}})
// CHECK:             tir.call unchecked @relax.routine.pack.f32.2x8{{.*}}](%B_1, [[PACKED:%[0-9]+]])
// CHECK:           tir.for parallel (%task_{{[0-9]+}})
// CHECK-NOT:         tir.for
// CHECK:             tir.call unchecked @relax.routine.tall.f32.6x16{{.*}}](%A_1, [[PACKED]], %C_1)
// CHECK:         } else {
// CHECK:           tir.for parallel (%task_{{[0-9]+}})
// CHECK-NOT:         tir.for
// CHECK:             tir.call unchecked @relax.routine.streamed.f32.16{{.*}}](%A_1, %B_1, %C_1)
// CHECK:         %packed_rows = tir.alloc_buffer
// CHECK:         %packed_columns_{{[0-9]+}} = tir.alloc_buffer
// CHECK:         tir.for parallel (%task
// CHECK:           tir.for (%strip)
// CHECK:             tir.load %A_1[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:             tir.store
// CHECK:           tir.for (%panel)
// CHECK:             tir.call unchecked @relax.routine.tile.f32.6x16{{.*}}, %C_1)
// CHECK:             %tile = tir.alloc_buffer : !tir.buffer<[6, 16], f32, align = 64>
// CHECK:             [[BYTES:%[0-9]+]] = tir.dim 4 * n
// CHECK:             [[PAGE:%[0-9]+]] = arith.constant 4096 : index
// CHECK:             [[APART:%[0-9]+]] = arith.cmpi sge, [[BYTES]], [[PAGE]] : index
// CHECK:             arith.select [[APART]]
// CHECK:             tir.call unchecked @relax.routine.tile.f32.6x16{{.*}}, %tile)
// CHECK:             tir.store {{.*}}, %C_1[{{.*}}] mask
// CHECK-NOT:         tir.prefetch
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

// One row times columns that lie along the sum: vectors are multiplied element by element, transposed and added. Where columns are long, the row is copied to where it lies as they do; else some are read side by side.
// CHECK-LABEL: tir.prim_func @dot
// CHECK-NOT:     packed
// CHECK:         tir.misalignment %W_1[{{.*}}] of 8
// CHECK:         %copies = tir.alloc_buffer
// CHECK:         tir.call unchecked @relax.routine.lines.f32.4x16{{.*}}](%copies, %W_1, %partial_sums)
// CHECK:         vector.shuffle
// CHECK:         tir.store {{.*}}, %y_1[{{.*}}] mask
// CHECK:       } else {
// CHECK:         %sums{{.*}} = tir.alloc_buffer : !tir.buffer<[4, 8], f32, scope = "local", align = 64>
// CHECK:         tir.load %W_1[%{{[0-9]+}}] : vector<8xf32>
// CHECK:         arith.cmpi slt
// CHECK:         tir.load %W_1[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:         vector.shuffle
// CHECK:         arith.addf {{.*}} : vector<8xf32>
// CHECK:         tir.store {{.*}}, %y_1[{{.*}}] mask
tir.prim_func @dot[%n, %k](%x: !tir.buffer<[k], f32>, %W: !tir.buffer<[n, k], f32>, %y: !tir.buffer<[n], f32>) {
  tir.for (%j, %r) in (%n, %k) {
    tir.block "b" (%vj = spatial %j in %n, %vr = reduce %r in %k) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %y[%vj]
      }
      %a = tir.load %x[%vr]
      %b = tir.load %W[%vj, %vr]
      %c = tir.load %y[%vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %y[%vj]
    }
  }
}

// Rows that are known and spaced well are not packed; what follows is computed from the tile, and the sums are not stored.
// CHECK-LABEL: tir.prim_func @followed
// CHECK-NOT:     packed_rows
// CHECK-NOT:     alloc_buffer : !tir.buffer<[20
// CHECK:         tir.call unchecked @relax.routine.columns.f32.2x4{{.*}}](%copies, %A_1, %totals{{.*}})
// CHECK:         tir.call unchecked @relax.routine.tile.f32.6x16{{.*}}, %tile)
// CHECK:         tir.load %tile
// CHECK:         tir.load %bias_1[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:         arith.addf {{.*}} : vector<8xf32>
// CHECK:         arith.maximumf {{.*}} : vector<8xf32>
// CHECK:         tir.store {{.*}}, %C_1[{{.*}}] mask
tir.prim_func @followed[%n](%A: !tir.buffer<[20, 40], f32>, %B: !tir.buffer<[40, n], f32>, %bias: !tir.buffer<[n], f32>, %C: !tir.buffer<[20, n], f32>) {
  %sum = tir.alloc_buffer : !tir.buffer<[20, n], f32>
  %c20 = arith.constant 20 : index
  %c40 = arith.constant 40 : index
  tir.for (%i, %j, %r) in (%c20, %n, %c40) {
    tir.block "b" (%vi = spatial %i in %c20, %vj = spatial %j in %n, %vr = reduce %r in %c40) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %sum[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %b = tir.load %B[%vr, %vj]
      %c = tir.load %sum[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %sum[%vi, %vj]
    }
  }
  tir.for (%i, %j) in (%c20, %n) {
    tir.block "bias_relu" (%vi = spatial %i in %c20, %vj = spatial %j in %n) {
      %zero = arith.constant 0.0 : f32
      %c = tir.load %sum[%vi, %vj]
      %b = tir.load %bias[%vj]
      %s = arith.addf %c, %b : f32
      %relu = arith.maximumf %s, %zero : f32
      tir.store %relu, %C[%vi, %vj]
    }
  }
}

// A sum that does not start at zero is no contraction.
// CHECK-LABEL: tir.prim_func @other
// CHECK-NOT:     packed
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

// Columns that lie in panels as wide as a tile are read where they are, whole vectors also past the last column; what is
// read soon is asked for. Tiles are made by functions that kernels share, the lowest in parts of the sums here.
// CHECK-LABEL: tir.prim_func @panels
// CHECK-NOT:     packed_columns
// CHECK:         tir.call unchecked @relax.routine.tile.f32.6x16
// CHECK:         tir.for (%step{{.*}}) in
// CHECK:         tir.prefetch %B_1[%{{.*}}] level 1
// CHECK:         tir.prefetch %B_1[%{{.*}}] level 2
// CHECK-NOT:     tir.load %B_1{{.*}} mask
// CHECK:         tir.load %B_1[%{{.*}}] : vector<8xf32>
// CHECK:         tir.store {{.*}}, %C_1[{{.*}}] mask
tir.prim_func @panels[%m](%A: !tir.buffer<[m, 40], f32>, %B: !tir.buffer<[2, 40, 16], f32>, %C: !tir.buffer<[m, 20], f32>) {
  %c16 = arith.constant 16 : index
  %c20 = arith.constant 20 : index
  %c40 = arith.constant 40 : index
  tir.for (%i, %j, %r) in (%m, %c20, %c40) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %c20, %vr = reduce %r in %c40) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %panel = arith.divui %vj, %c16 : index
      %within = arith.remui %vj, %c16 : index
      %b = tir.load %B[%panel, %vr, %within]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}

// An epilogue that chooses does so for all lanes of a vector at once.
// CHECK-LABEL: tir.prim_func @chosen
// CHECK:         %[[MASK:.*]] = tir.compare ogt %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK:         tir.select %[[MASK]], %{{.*}}, %{{.*}} : vector<8xf32>
tir.prim_func @chosen[%m, %n, %k](%A: !tir.buffer<[m, k], f32>, %B: !tir.buffer<[k, n], f32>, %D: !tir.buffer<[m, n], f32>) {
  %C = tir.alloc_buffer : !tir.buffer<[m, n], f32>
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
  tir.for (%i, %j) in (%m, %n) {
    tir.block "d" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %zero = arith.constant 0.0 : f32
      %half = arith.constant 0.5 : f32
      %c = tir.load %C[%vi, %vj]
      %above = arith.cmpf ogt, %c, %zero : f32
      %less = arith.mulf %c, %half : f32
      %d = arith.select %above, %c, %less : f32
      tir.store %d, %D[%vi, %vj]
    }
  }
}

// What sees the memory of another buffer is left to its own loops: accesses of both may meet.
// CHECK-LABEL: tir.prim_func @views
tir.prim_func @views[%n, %m](%A: !tir.buffer<[n, m], f32>, %C: !tir.buffer<[n, m], f32>) {
  // CHECK: tir.for (%i) in (%k) {
  // CHECK-NEXT: tir.block "copy"
  %F = tir.flatten %A
  %G = tir.view %C : !tir.buffer<[n * m], f32>
  %k = tir.dim n * m
  tir.for (%i) in (%k) {
    tir.block "copy" (%v = spatial %i in %k) {
      %a = tir.load %F[%v]
      tir.store %a, %G[%v]
    }
  }
}

// The sums of one row: several lines of the matrix at once, whole vectors of them without masks, then line by line.
// CHECK-LABEL: tir.prim_func private @relax.routine.vector.f32.8
// CHECK:         tir.for (%iteration)
// CHECK:           tir.if
// CHECK:             tir.load %columns[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:           tir.for (%group)
// CHECK:             tir.load %columns[%{{[0-9]+}}] : vector<8xf32>
// CHECK:           tir.load %columns[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:         tir.for (%line)

// Columns are packed, for which all rows are there; a strip of rows uses all of them, while the next one is asked for. It is stored, nothing added.
// CHECK-LABEL: tir.prim_func private @relax.routine.pack.f32.2x8
// CHECK:         tir.load %columns[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:         tir.store {{.*}}, %packed
// CHECK-LABEL: tir.prim_func private @relax.routine.tall.f32.6x16
// CHECK:         tir.for (%strip) in (%lower to %upper)
// CHECK:           tir.for (%panel) in (%panels)
// CHECK:             tir.for (%r)
// CHECK:               tir.prefetch %rows
// CHECK:               tir.load %columns
// CHECK-NOT:         tir.load %output
// CHECK:             tir.store {{.*}}, %output[%{{[0-9]+}}]{{$}}
// CHECK:             tir.store {{.*}}, %output[{{.*}}] mask

// Few rows or columns: a function for all sizes. Groups of rows share a vector of columns; sums of earlier blocks of the reduction are added.
// Where masks are no registers, only vectors of which lanes are missing are stored under one. The last panel may be of one vector.
// CHECK-LABEL: tir.prim_func private @relax.routine.streamed.f32.16
// CHECK:         tir.for (%k_block) in (%k_blocks)
// CHECK:           tir.for (%block)
// CHECK:             tir.for (%panel)
// CHECK:             tir.if
// CHECK:               tir.for (%group)
// CHECK:                 tir.alloc_buffer : !tir.buffer<[6, 8], f32, scope = "local", align = 64>
// CHECK-NOT:             tir.prefetch
// CHECK:             } else {
// CHECK:             tir.for (%group_{{[0-9]+}})
// CHECK:               %sums_{{[0-9]+}} = tir.alloc_buffer : !tir.buffer<[6, 16], f32, scope = "local", align = 64>
// CHECK:               tir.load %columns[{{.*}}] : vector<8xf32>
// CHECK-NOT:           tir.load %output
// CHECK:               tir.store {{.*}}, %output[%{{[0-9]+}}]{{$}}
// CHECK:               tir.load %output[%{{[0-9]+}}] : vector<8xf32>
// CHECK-NEXT:          arith.addf
// CHECK-NEXT:          tir.store {{.*}}, %output[%{{[0-9]+}}]{{$}}
// CHECK:               tir.load %columns[{{.*}}] mask {{.*}} : vector<8xf32>
// CHECK:               tir.store {{.*}}, %output[{{.*}}] mask
// CHECK:               tir.alloc_buffer : !tir.buffer<[4, 16], f32, scope = "local", align = 64>
// CHECK:               tir.alloc_buffer : !tir.buffer<[3, 16], f32, scope = "local", align = 64>
// CHECK:               tir.alloc_buffer : !tir.buffer<[2, 16], f32, scope = "local", align = 64>
// CHECK:               tir.alloc_buffer : !tir.buffer<[1, 16], f32, scope = "local", align = 64>

// A whole tile is stored where it belongs, whose lines are asked for before, or added to what earlier blocks of the reduction left.

// CHECK-LABEL: tir.prim_func private @relax.routine.tile.f32.6x16{{.*}}%first, %each, %k_block
// CHECK:         tir.prefetch %tile
// CHECK:         tir.for (%r)
// CHECK:         arith.cmpi eq, %k_block
// CHECK:         tir.if
// CHECK-NOT:       tir.load %tile
// CHECK:           tir.store {{.*}}, %tile
// CHECK:         } else {
// CHECK:           tir.load %tile
// CHECK:           arith.addf
// CHECK-NEXT:      tir.store {{.*}}, %tile
