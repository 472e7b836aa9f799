// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"},schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A map over contiguous memory is one loop, whatever its rank: full vectors, then the first lanes of one.
// CHECK-LABEL: tir.prim_func @map
// CHECK:         %X_1 = tir.flatten %X
// CHECK:         %Y_1 = tir.flatten %Y
// CHECK:         tir.dim m * n
// CHECK:         tir.for (%v)
// CHECK:           tir.for vectorized (%lane)
// CHECK:             tir.load %X_1
// CHECK:             tir.store {{.*}}, %Y_1
// CHECK:         tir.if
// CHECK-NEXT:      tir.for vectorized
// CHECK:             arith.cmpi slt, %lane_1
// CHECK-NEXT:        tir.if
// CHECK:               tir.store {{.*}}, %Y_1
tir.prim_func @map[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %y = arith.negf %x : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}

// A column is read once for its row, before the loop along the row.
// CHECK-LABEL: tir.prim_func @broadcast
// CHECK:         tir.for (%vi)
// CHECK:           %[[COLUMN:.*]] = tir.load %C_1[%vi]
// CHECK:           tir.for (%v)
// CHECK:             tir.for vectorized
// CHECK:               arith.addf {{.*}}, %[[COLUMN]] : f32
tir.prim_func @broadcast[%m, %n](%X: !tir.buffer<[m, n], f32>, %C: !tir.buffer<[m, 1], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %zero = arith.constant 0 : index
      %x = tir.load %X[%vi, %vj]
      %c = tir.load %C[%vi, %zero]
      %y = arith.addf %x, %c : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}

// The elements of a row that has four vectors or more are added up in four, which are halved; what is left goes to the
// one vector that short rows have, and that is halved until one number is left.
// CHECK-LABEL: tir.prim_func @rows
// CHECK:         tir.for (%vi)
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local", align = 64>
// CHECK:           tir.if
// CHECK:             %[[WIDE:sums.*]] = tir.alloc_buffer : !tir.buffer<[32], f32, scope = "local", align = 64>
// CHECK:             tir.for (%v)
// CHECK:               tir.for vectorized
// CHECK:                 tir.load %[[WIDE]]
// CHECK:                 arith.addf
// CHECK:                 tir.store {{.*}}, %[[WIDE]]
// CHECK:             tir.alloc_buffer : !tir.buffer<[16], f32, scope = "local", align = 64>
// CHECK:             tir.store {{.*}}, %sums
// CHECK:           tir.for (%v
// CHECK:             tir.for vectorized
// CHECK:               tir.load %sums
// CHECK:           tir.alloc_buffer : !tir.buffer<[4], f32, scope = "local", align = 64>
// CHECK:           tir.alloc_buffer : !tir.buffer<[1], f32, scope = "local", align = 64>
// CHECK:           tir.store {{.*}}, %S_1[%vi]
tir.prim_func @rows[%m, %n](%X: !tir.buffer<[m, n], f32>, %S: !tir.buffer<[m], f32>) {
  tir.for (%i, %r) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %S[%vi]
      }
      %s = tir.load %S[%vi]
      %x = tir.load %X[%vi, %vr]
      %t = arith.addf %s, %x : f32
      tir.store %t, %S[%vi]
    }
  }
}

// Columns are added up for eight vectors at once; the order of the additions of a column stays. What is wider is read in
// bands of eight rows, four vectors of each at a time, between which the sums are where the results will be.
// CHECK-LABEL: tir.prim_func @columns
// CHECK:         arith.cmpi sgt
// CHECK-NEXT:    tir.if
// CHECK:           tir.for (%band)
// CHECK:             %[[FIRST:.*]] = arith.muli %band
// CHECK:             %[[IS_FIRST:.*]] = arith.cmpi eq, %band
// CHECK:             tir.for (%block)
// CHECK:               %sums = tir.alloc_buffer : !tir.buffer<[32], f32, scope = "local", align = 64>
// CHECK:               tir.if %[[IS_FIRST]]
// CHECK:               } else {
// CHECK:                 tir.load %S_1
// CHECK:               tir.for (%vr) in (%[[FIRST]] to
// CHECK:                 arith.addf
// CHECK:               tir.store {{.*}}, %S_1
// CHECK:         } else {
// CHECK:           tir.alloc_buffer : !tir.buffer<[64], f32, scope = "local", align = 64>
// CHECK:           tir.for (%vr
// CHECK:             arith.addf
// CHECK:           tir.store {{.*}}, %S_1
tir.prim_func @columns[%m, %n](%X: !tir.buffer<[m, n], f32>, %S: !tir.buffer<[n], f32>) {
  tir.for (%j, %r) in (%n, %m) {
    tir.block "b" (%vj = spatial %j in %n, %vr = reduce %r in %m) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %S[%vj]
      }
      %s = tir.load %S[%vj]
      %x = tir.load %X[%vr, %vj]
      %t = arith.addf %s, %x : f32
      tir.store %t, %S[%vj]
    }
  }
}

// A chain goes row by row: powers and their sum in one loop, into memory for one row, which the quotients are made of.
// The row is multiplied by the reciprocal of its sum if that is a normal number.
// Of short rows, as many as a vector has lanes are side by side: each leaves a vector of sums, of which a tree makes one
// vector with a lane for each row, and so there is one division for all their reciprocals.
// CHECK-LABEL: tir.prim_func @shares
// CHECK-NOT:     tir.alloc_buffer : !tir.buffer<[m, n], f32>
// CHECK:         %[[IS_SHORT:.*]] = arith.cmpi sle
// CHECK:         %[[ARE_SOME:.*]] = arith.cmpi sge
// CHECK:         %[[SUITS:.*]] = arith.andi %[[IS_SHORT]], %[[ARE_SOME]]
// CHECK:         tir.if %[[SUITS]]
// CHECK:           tir.alloc_buffer : !tir.buffer<[8 * n], f32, align = 64>
// CHECK:           tir.for (%block)
// CHECK:             %[[PARTS:.*]] = tir.alloc_buffer : !tir.buffer<[64], f32, scope = "local", align = 64>
// CHECK:             tir.for (%row)
// CHECK:               math.exp
// CHECK:               tir.store {{.*}}, %[[PARTS]]
// CHECK:             tir.load %[[PARTS]]
// CHECK:             vector.shuffle
// CHECK:             arith.addf {{.*}} : vector<8xf32>
// CHECK:             %[[RECIPROCALS:.*]] = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local", align = 64>
// CHECK:             tir.for vectorized
// CHECK:               arith.divf
// CHECK:               tir.store {{.*}}, %[[RECIPROCALS]]
// CHECK:             tir.for (%row
// CHECK:               tir.load %[[RECIPROCALS]]
// CHECK:         } else {
// CHECK:         %[[E:E.*]] = tir.alloc_buffer : !tir.buffer<[n], f32, align = 64>
// CHECK:         tir.for (%row
// CHECK:           tir.for (%v
// CHECK:             tir.for vectorized
// CHECK:               %[[POWER:.*]] = math.exp
// CHECK:               tir.store %[[POWER]], %[[E]][
// CHECK:               arith.addf {{.*}}, %[[POWER]] : f32
// CHECK:           arith.cmpf oge
// CHECK:           tir.if
// CHECK:             tir.for (%v
// CHECK:               arith.mulf
// CHECK:           } else {
// CHECK:               arith.divf
tir.prim_func @shares[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %E = tir.alloc_buffer : !tir.buffer<[m, n], f32>
  %S = tir.alloc_buffer : !tir.buffer<[m], f32>
  tir.for (%i, %j) in (%m, %n) {
    tir.block "powers" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %e = math.exp %x : f32
      tir.store %e, %E[%vi, %vj]
    }
  }
  tir.for (%i, %r) in (%m, %n) {
    tir.block "sums" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %S[%vi]
      }
      %s = tir.load %S[%vi]
      %e = tir.load %E[%vi, %vr]
      %t = arith.addf %s, %e : f32
      tir.store %t, %S[%vi]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "quotients" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %e = tir.load %E[%vi, %vj]
      %s = tir.load %S[%vi]
      %y = arith.divf %e, %s : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}

// Maps in a row are one map.
// CHECK-LABEL: tir.prim_func @fused
// CHECK-NOT:     tir.alloc_buffer
// CHECK:         tir.for vectorized
// CHECK:           arith.negf
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      tir.store {{.*}}, %Y_1
tir.prim_func @fused[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  %T = tir.alloc_buffer : !tir.buffer<[n], f32>
  tir.for (%i) in (%n) {
    tir.block "first" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %t = arith.negf %x : f32
      tir.store %t, %T[%vi]
    }
  }
  tir.for (%i) in (%n) {
    tir.block "second" (%vi = spatial %i in %n) {
      %t = tir.load %T[%vi]
      %y = arith.mulf %t, %t : f32
      tir.store %y, %Y[%vi]
    }
  }
}

// A result that does not start with a neutral number has one accumulator, which adds in order.
// CHECK-LABEL: tir.prim_func @from_one
// CHECK:         tir.alloc_buffer : !tir.buffer<[1], f32, scope = "local", align = 64>
// CHECK-NOT:     tir.alloc_buffer
// CHECK:         arith.addf
tir.prim_func @from_one[%n](%X: !tir.buffer<[n], f32>, %S: !tir.buffer<[], f32>) {
  tir.for (%r) in (%n) {
    tir.block "b" (%vr = reduce %r in %n) {
      tir.init {
        %one = arith.constant 1.0 : f32
        tir.store %one, %S[]
      }
      %s = tir.load %S[]
      %x = tir.load %X[%vr]
      %t = arith.addf %s, %x : f32
      tir.store %t, %S[]
    }
  }
}

// A nest that reads other elements of what it writes is left alone.
// CHECK-LABEL: tir.prim_func @shifted
// CHECK:         tir.block "b"
tir.prim_func @shifted[%n](%X: !tir.buffer<[n + 1], f32>) {
  %one = arith.constant 1 : index
  tir.for (%i) in (%n) {
    tir.block "b" (%vi = spatial %i in %n) {
      %next = arith.addi %vi, %one : index
      %x = tir.load %X[%next]
      tir.store %x, %X[%vi]
    }
  }
}

// Between two memory orders, square tiles are turned in registers; the edges are moved one by one.
// CHECK-LABEL: tir.prim_func @transpose
// CHECK:         tir.for (%panel)
// CHECK:           tir.for (%block)
// CHECK:             tir.for (%tile)
// CHECK:               tir.load %X_1[{{.*}}] : vector<8xf32>
// CHECK:               tir.alloc_buffer : !tir.buffer<[64], f32, scope = "local", align = 64>
// CHECK:               vector.shuffle
// CHECK:               tir.for vectorized
// CHECK:                 tir.store {{.*}}, %Y_1
// CHECK:         annotations {llvm.loop.vectorize.enable = false, llvm.loop.unroll.disable}
tir.prim_func @transpose[%m, %n](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vj, %vi]
      tir.store %x, %Y[%vi, %vj]
    }
  }
}

// Windows that reach out of the data: the rows that count are combined first, in a row between numbers that change
// nothing; then members beside each other. Nobody asks where the data ends.
// CHECK-LABEL: tir.prim_func @windows
// CHECK:         %row = tir.alloc_buffer : !tir.buffer<[n + 10], i32, align = 64>
// CHECK:         tir.for (%vi)
// CHECK:           tir.for (%block) in ({{.*}}) {
// CHECK:             tir.for (%vk) in (
// CHECK-SAME:        to
// CHECK:               tir.for vectorized
// CHECK-NOT:             tir.if
// CHECK:                 tir.load %X_1
// CHECK:             tir.store {{.*}}, %row
// CHECK:           tir.for (%block_1)
// CHECK:             tir.for (%vl)
// CHECK:               tir.for vectorized
// CHECK-NOT:             tir.if
// CHECK:                 tir.load %row
// CHECK:             tir.store {{.*}}, %Y_1
tir.prim_func @windows[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %c3 = arith.constant 3 : index
  tir.for (%i, %j, %k, %l) in (%m, %n, %c3, %c3) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %n, %vk = reduce %k in %c3, %vl = reduce %l in %c3) {
      tir.init {
        %least = arith.constant 0xff800000 : f32
        tir.store %least, %Y[%vi, %vj]
      }
      %y = tir.load %Y[%vi, %vj]
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %i1 = arith.subi %vi, %one : index
      %row = arith.addi %i1, %vk : index
      %j1 = arith.subi %vj, %one : index
      %column = arith.addi %j1, %vl : index
      %above = arith.cmpi sge, %row, %zero : index
      %below = arith.cmpi slt, %row, %m : index
      %left = arith.cmpi sge, %column, %zero : index
      %right = arith.cmpi slt, %column, %n : index
      %in_rows = arith.andi %above, %below : i1
      %in_columns = arith.andi %left, %right : i1
      %inside = arith.andi %in_rows, %in_columns : i1
      %x = tir.if %inside -> (f32) {
        %loaded = tir.load %X[%row, %column]
        tir.yield %loaded
      } else {
        %nothing = arith.constant 0xff800000 : f32
        tir.yield %nothing
      }
      %z = arith.maximumf %y, %x : f32
      tir.store %z, %Y[%vi, %vj]
    }
  }
}

// The place of the greatest element: of four vectors, the greatest of each lane meets the greatest before, and lanes
// count iterations. Of the lanes with the greatest value the first one counts, and its elements are looked at once more,
// register by register; a row with NaN is gone through again for the first. The last iteration begins early enough to be
// whole; a row that is shorter than an iteration has one of its own.
// CHECK-LABEL: tir.prim_func @place
// CHECK:         arith.cmpi sge
// CHECK-NEXT:    tir.if
// CHECK:         %iterations = tir.alloc_buffer : !tir.buffer<[8], i32, scope = "local", align = 64>
// CHECK:         tir.for (%v)
// CHECK:           arith.minsi
// CHECK-NEXT:      %[[TURN:.*]] = arith.index_cast %v : index to i32
// CHECK:           tir.for vectorized
// CHECK-COUNT-3:     arith.cmpf ogt
// CHECK:             %[[BEST:.*]] = tir.load %best
// CHECK-NEXT:        %[[BETTER:.*]] = arith.cmpf ogt, %{{.*}}, %[[BEST]] : f32
// CHECK:             arith.select %[[BETTER]], %[[TURN]]
// CHECK:             arith.cmpf uno
// CHECK:             arith.cmpf uno
// CHECK:         arith.cmpf oeq
// CHECK:         tir.compare ne {{.*}} : vector<8xi32>
// CHECK-NEXT:    tir.first_lane
// CHECK-NEXT:    arith.cmpi slt
// CHECK-NEXT:    tir.if
// CHECK:           tir.for (%v_1)
// CHECK:         arith.minui
// CHECK:         arith.extui {{.*}} : i32 to i64
// CHECK-NOT:     vector<32x
// CHECK-COUNT-4: tir.first_lane {{.*}} : vector<8xi1>
// CHECK:         } else {
// CHECK:           arith.cmpi sgt, {{.*}} : index
// CHECK-NEXT:      tir.if
// CHECK:             tir.first_lane {{.*}} : vector<8xi1>
// CHECK:           } else {
// CHECK:             tir.store %none
tir.prim_func @place[%m, %n](%X: !tir.buffer<[m, n], f32>, %P: !tir.buffer<[m], i64>) {
  %V = tir.alloc_buffer : !tir.buffer<[m], f32>
  tir.for (%i, %r) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init {
        %worst = arith.constant 0xff800000 : f32
        %none = arith.constant 9223372036854775807 : i64
        tir.store %worst, %V[%vi]
        tir.store %none, %P[%vi]
      }
      %x = tir.load %X[%vi, %vr]
      %v = tir.load %V[%vi]
      %p = tir.load %P[%vi]
      %q = arith.index_cast %vr : index to i64
      %earlier = arith.cmpi slt, %q, %p : i64
      %x_is_nan = arith.cmpf uno, %x, %x : f32
      %v_is_number = arith.cmpf ord, %v, %v : f32
      %first_nan = arith.ori %v_is_number, %earlier : i1
      %greater = arith.cmpf ogt, %x, %v : f32
      %equal = arith.cmpf oeq, %x, %v : f32
      %first = arith.andi %equal, %earlier : i1
      %better = arith.ori %greater, %first : i1
      %takes = arith.select %x_is_nan, %first_nan, %better : i1
      %value = arith.select %takes, %x, %v : f32
      %place = arith.select %takes, %q, %p : i64
      tir.store %value, %V[%vi]
      tir.store %place, %P[%vi]
    }
  }
}

// While the powers of a row are computed, the next row is asked for, and the place of this row's result.
// CHECK-LABEL: tir.prim_func @powers
// CHECK:         tir.for (%row)
// CHECK:           tir.greater
// CHECK:           tir.for (%v_2)
// CHECK:             tir.prefetch %X_1
// CHECK:             tir.prefetch %Y_1
// CHECK-NEXT:        tir.for vectorized
// CHECK:               tir.scaled_exp
// CHECK:           arith.subf
tir.prim_func @powers[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  %T = tir.alloc_buffer : !tir.buffer<[m], f32>
  %S = tir.alloc_buffer : !tir.buffer<[m], f32>
  %least = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  tir.for (%i, %r) in (%m, %n) {
    tir.block "top" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init { tir.store %least, %T[%vi] }
      %x = tir.load %X[%vi, %vr]
      %t = tir.load %T[%vi]
      %u = arith.maximumf %t, %x : f32
      tir.store %u, %T[%vi]
    }
  }
  tir.for (%i, %r) in (%m, %n) {
    tir.block "sum" (%vi = spatial %i in %m, %vr = reduce %r in %n) {
      tir.init { tir.store %zero, %S[%vi] }
      %x = tir.load %X[%vi, %vr]
      %t = tir.load %T[%vi]
      %d = arith.subf %x, %t : f32
      %e = math.exp %d : f32
      %s = tir.load %S[%vi]
      %u = arith.addf %s, %e : f32
      tir.store %u, %S[%vi]
    }
  }
  tir.for (%i, %j) in (%m, %n) {
    tir.block "rest" (%vi = spatial %i in %m, %vj = spatial %j in %n) {
      %x = tir.load %X[%vi, %vj]
      %s = tir.load %S[%vi]
      %d = arith.subf %x, %s : f32
      tir.store %d, %Y[%vi, %vj]
    }
  }
}

// Running sums: the lanes of half a vector are added to those 1 and 2 further on, the sum of the first half to the
// second; the sum of all before comes last.
// What is left of a row is a vector under a mask.
// CHECK-LABEL: tir.prim_func @running
// CHECK:         tir.for (%row)
// CHECK:           %carry = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local", align = 64>
// CHECK:           tir.for (%v)
// CHECK:             tir.load %X_1[{{.*}}] : vector<8xf32>
// CHECK-NEXT:        vector.shuffle {{.*}}[0, 8, 9, 10, 4, 12, 13, 14]
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        vector.shuffle {{.*}}[0, 1, 8, 9, 4, 5, 12, 13]
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        vector.shuffle {{.*}}[3, 3, 3, 3, 7, 7, 7, 7]
// CHECK-NEXT:        vector.shuffle {{.*}}[0, 1, 2, 3, 8, 9, 10, 11]
// CHECK-NEXT:        vector.shuffle {{.*}}[4, 5, 6, 7, 0, 1, 2, 3]
// CHECK-NEXT:        arith.addf
// CHECK-NEXT:        arith.addf
// CHECK:             tir.store {{.*}}, %carry
// CHECK:             tir.store {{.*}}, %Y_1
// CHECK-NOT:       tir.for
// CHECK:           %[[LEFT:.*]] = arith.subi
// CHECK:           arith.cmpi sgt, %[[LEFT]]
// CHECK:           tir.if
// CHECK:             %[[MASK:.*]] = vector.create_mask %[[LEFT]] : vector<8xi1>
// CHECK:             tir.load %X_1[{{.*}}] mask %[[MASK]]
// CHECK:             tir.store {{.*}}, %Y_1[{{.*}}] mask %[[MASK]]
tir.prim_func @running[%m, %n](%X: !tir.buffer<[m, n], f32>, %Y: !tir.buffer<[m, n], f32>) {
  tir.for (%i, %j) in (%m, %n) {
    tir.block "b" (%vi = spatial %i in %m, %vj = scan %j in %n) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %before = arith.subi %vj, %one : index
      %is_later = arith.cmpi sgt, %vj, %zero : index
      %s = tir.if %is_later -> (f32) {
        %y = tir.load %Y[%vi, %before]
        %x = tir.load %X[%vi, %vj]
        %t = arith.addf %y, %x : f32
        tir.yield %t
      } else {
        %x = tir.load %X[%vi, %vj]
        tir.yield %x
      }
      tir.store %s, %Y[%vi, %vj]
    }
  }
}

// Channels that do not fill their groups stay one axis.
// CHECK-LABEL: tir.prim_func @unfilled
// CHECK-NOT:     tir.for (%group)
// CHECK:         arith.divui
// CHECK:         tir.store {{.*}}, %Y
tir.prim_func @unfilled(%M: !tir.buffer<[2, 3], f32>, %Y: !tir.buffer<[2, 40], f32>) {
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  tir.for (%i, %j) in (%c2, %c40) {
    tir.block "b" (%vi = spatial %i in %c2, %vj = spatial %j in %c40) {
      %c16 = arith.constant 16 : index
      %g = arith.divui %vj, %c16 : index
      %m = tir.load %M[%vi, %g]
      tir.store %m, %Y[%vi, %vj]
    }
  }
}

// What is asserted of sizes stays in front of the loops.
// CHECK-LABEL: tir.prim_func @asserted
// CHECK:         tir.assert %{{.*}}, "fits"
// CHECK:         tir.for vectorized
tir.prim_func @asserted[%n, %m](%X: !tir.buffer<[m], f32>, %Y: !tir.buffer<[n], f32>) {
  %fits = arith.cmpi sle, %n, %m : index
  tir.assert %fits, "fits"
  tir.for (%i) in (%n) {
    tir.block "b" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      tir.store %x, %Y[%vi]
    }
  }
}
