// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"},schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A sum along a row has four vector accumulators, if the row is that long, which are folded. The remainder goes to the
// one accumulator of short rows, which is folded to a scalar.
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

// Sums of columns have eight vector accumulators; the order of the additions of a column stays. Wider matrices are read
// in bands of eight rows, with four accumulators each, and the sums are in the result between two bands.
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

// A reduction whose initial value is not neutral has one accumulator, which adds in order.
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

// Pooling at the edges: the rows of a window are combined first, in a row padded with neutral elements; then its taps.
// There is no condition for the end of the data.
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

// Argmax: of four vectors, the maximum of each lane is compared with the best so far, and lanes count iterations. Of the
// lanes with the maximum the first iteration counts, and its elements are searched once more, register by register. A row
// with NaN is scanned again for the first one. The last iteration overlaps the one before; a row that is shorter than an
// iteration has code of its own.
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
