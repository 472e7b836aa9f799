// RUN: relax-opt %s -p check-accesses | filecheck %s
// RUN: relax-opt %s -p check-accesses,check-accesses | filecheck %s

// A read by the index of another buffer, whose size may be another.
// CHECK-LABEL: tir.prim_func @sum
// CHECK-NEXT:    %{{.*}} = tir.dim n
// CHECK-NEXT:    %{{.*}} = tir.dim m
// CHECK-NEXT:    %{{.*}} = arith.cmpi sle
// CHECK-NEXT:    tir.assert %{{.*}}, "sum: a 'tir.load' whose index 0 of %B reaches n - 1, expected less than m"
// CHECK-NEXT:    tir.for (%i) in (%n) {
tir.prim_func @sum[%n, %m](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[m], f32>, %C: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "sum" (%v = spatial %i in %n) {
      %a = tir.load %A[%v]
      %b = tir.load %B[%v]
      %s = arith.addf %a, %b : f32
      tir.store %s, %C[%v]
    }
  }
}

// Nothing is read where a loop is empty, and what the program itself asserts comes first. Each end is checked once.
// CHECK-LABEL: tir.prim_func @shifted
// CHECK:         tir.assert %{{.*}}, "m is positive"
// CHECK-NEXT:    tir.dim n + 2
// CHECK-NEXT:    tir.dim m
// CHECK-NEXT:    arith.cmpi sle
// CHECK-NEXT:    tir.dim n{{$}}
// CHECK-NEXT:    tir.dim 0
// CHECK-NEXT:    arith.cmpi sle
// CHECK-NEXT:    tir.dim k
// CHECK-NEXT:    tir.dim 0
// CHECK-NEXT:    arith.cmpi sle
// CHECK-NEXT:    arith.ori
// CHECK-NEXT:    arith.ori
// CHECK-NEXT:    tir.assert %{{.*}}, "shifted: a 'tir.load' whose index 0 of %A reaches n + 1, expected less than m"
// CHECK-NEXT:    tir.for
tir.prim_func @shifted[%n, %m, %k](%A: !tir.buffer<[m], f32>, %B: !tir.buffer<[n, k], f32>) {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %ok = arith.cmpi slt, %zero, %m : index
  tir.assert %ok, "m is positive"
  tir.for (%i, %j) in (%n, %k) {
    tir.block "copy" (%vi = spatial %i in %n, %vj = spatial %j in %k) {
      %at = arith.addi %vi, %two : index
      %a = tir.load %A[%at]
      %b = tir.load %A[%at]
      %s = arith.addf %a, %b : f32
      tir.store %s, %B[%vi, %vj]
    }
  }
}

// Known to fit, under a condition too.
// CHECK-LABEL: tir.prim_func @fits
// CHECK-NOT:     tir.assert
tir.prim_func @fits[%n, %m](%A: !tir.buffer<[n + 1], f32>, %B: !tir.buffer<[n], f32>, %C: !tir.buffer<[m], f32>) {
  %one = arith.constant 1 : index
  tir.for (%i) in (%n) {
    tir.block "copy" (%v = spatial %i in %n) {
      %at = arith.addi %v, %one : index
      %a = tir.load %A[%at]
      tir.store %a, %B[%v]
      %inside = arith.cmpi slt, %v, %m : index
      tir.if %inside {
        tir.store %a, %C[%v]
      }
    }
  }
}

// Indices that are data are checked in loops of their own, 32 at once and then what is left, each index once; where they
// are used they are brought into range.
// CHECK-LABEL: tir.prim_func @gather
// CHECK:         %[[CHUNKS:.*]] = tir.dim floordiv(m, 32)
// CHECK:         %[[REST:.*]] = tir.dim 32 * floordiv(m, 32)
// CHECK-NEXT:    tir.for (%chunk) in (%[[CHUNKS]]) {
// CHECK:           tir.for vectorized (%lane) in
// CHECK-NEXT:        %[[I:.*]] = arith.addi %{{.*}}, %lane : index
// CHECK-NEXT:        %k = tir.load %I[%[[I]]]
// CHECK:             tir.assert
// CHECK:             tir.assert
// CHECK:         tir.for (%i) in (%[[REST]] to %m) {
// CHECK-NEXT:      %[[K:k.*]] = tir.load %I[%i]
// CHECK-NEXT:      %[[J0:j.*]] = arith.index_cast %[[K]] : i64 to index
// CHECK-NEXT:      %[[N:.*]] = tir.dim n
// CHECK-NEXT:      %[[OK:.*]] = arith.cmpi ult, %[[J0]], %[[N]] : index
// CHECK-NEXT:      tir.assert %[[OK]], "gather: a 'tir.load' whose index 0 of %A is data, expected at least 0 and less than n" raises "IndexError"
// CHECK-NEXT:      %{{low.*}} = arith.maxsi
// CHECK-NEXT:      %[[INSIDE:inside.*]] = arith.minsi
// CHECK-NEXT:      %[[ABOVE:above.*]] = arith.maxsi %[[INSIDE]], %five
// CHECK-NEXT:      tir.dim n
// CHECK-NEXT:      arith.cmpi ult, %[[ABOVE]]
// CHECK-NEXT:      tir.assert
// CHECK-NEXT:    }
// CHECK:         tir.block "gather"
// CHECK-NOT:       tir.assert
// CHECK:           %[[LAST:.*]] = tir.dim n - 1
// CHECK:           %[[LOW:.*]] = arith.minsi %[[J:.*]], %[[LAST]]
// CHECK-NEXT:      %[[IN:.*]] = arith.maxsi %[[LOW]]
// CHECK-NEXT:      %x = tir.load %A[%[[IN]]] {checked}
// CHECK:           %z = tir.load %A[%inside{{[_0-9]*}}]{{$}}
tir.prim_func @gather[%n, %m](%A: !tir.buffer<[n], f32>, %I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m], f32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  %last = arith.subi %n, %one : index
  tir.for (%i) in (%m) {
    tir.block "gather" (%v = spatial %i in %m) {
      %k = tir.load %I[%v]
      %j = arith.index_cast %k : i64 to index
      %x = tir.load %A[%j]
      %y = tir.load %A[%j]
      %low = arith.maxsi %j, %zero : index
      %inside = arith.minsi %low, %last : index
      %z = tir.load %A[%inside]
      %above = arith.maxsi %inside, %five : index
      %w = tir.load %A[%above]
      %s = arith.addf %x, %y : f32
      %t = arith.addf %z, %w : f32
      %r = arith.addf %s, %t : f32
      tir.store %r, %B[%v]
    }
  }
}

// The check has no loop over what the places do not depend on, but for whether there is anything.
// CHECK-LABEL: tir.prim_func @rows
// CHECK:         tir.for (%i) in (%{{.*}} to %m) {
// CHECK:           %[[RUNS:.*]] = arith.cmpi slt, %{{.*}}, %k : index
// CHECK-NEXT:      tir.if %[[RUNS]] {
// CHECK:             tir.assert
// CHECK:         tir.for (%{{.*}}, %{{.*}}) in (%m, %k) {
// CHECK-NOT:       tir.assert
tir.prim_func @rows[%n, %m, %k](%A: !tir.buffer<[n, k], f32>, %I: !tir.buffer<[m], i64>, %B: !tir.buffer<[m, k], f32>) {
  tir.for (%i, %c) in (%m, %k) {
    tir.block "rows" (%v = spatial %i in %m, %w = spatial %c in %k) {
      %at = tir.load %I[%v]
      %j = arith.index_cast %at : i64 to index
      %x = tir.load %A[%j, %w]
      tir.store %x, %B[%v, %w]
    }
  }
}

// A vector by data begins early enough to end in the buffer; where the function writes what tells the place, it is
// asserted where it is used.
// CHECK-LABEL: tir.prim_func @vector
// CHECK:         %[[P:.*]] = tir.dim max(0, n - 3)
// CHECK-NEXT:    %[[OK:.*]] = arith.cmpi ult, %j, %[[P]] : index
// CHECK-NEXT:    tir.assert %[[OK]]
// CHECK-NEXT:    %x = tir.load %A[%j] {checked}
tir.prim_func @vector[%n](%A: !tir.buffer<[n], f32>, %I: !tir.buffer<[1], i64>, %B: !tir.buffer<[4], f32>) {
  %zero = arith.constant 0 : index
  %k = tir.load %I[%zero]
  %j = arith.index_cast %k : i64 to index
  %x = tir.load %A[%j] : vector<4xf32>
  tir.store %k, %I[%zero]
  tir.store %x, %B[%zero]
}

// Of the lanes that a mask leaves out nothing is asked.
// CHECK-LABEL: tir.prim_func @chosen
// CHECK:         %[[FAR:.*]] = tir.compare uge %j
// CHECK:         %[[USED:.*]] = tir.select %m, %[[FAR]],
// CHECK:         %[[FIRST:.*]] = tir.first_lane %[[USED]]
// CHECK-NEXT:    %[[OK:.*]] = arith.cmpi eq, %[[FIRST]]
// CHECK-NEXT:    tir.assert %[[OK]]
// CHECK-NEXT:    tir.load %A[%j] mask %m {checked}
tir.prim_func @chosen[%n](
  %A: !tir.buffer<[n], f32>, %I: !tir.buffer<[4], i64>, %M: !tir.buffer<[4], i1>, %B: !tir.buffer<[4], f32>
) {
  %zero = arith.constant 0 : index
  %m = tir.load %M[%zero] : vector<4xi1>
  %k = tir.load %I[%zero] : vector<4xi64>
  %j = tir.convert index_cast %k : vector<4xi64> to vector<4xindex>
  %x = tir.load %A[%j] mask %m
  tir.store %x, %B[%zero]
}

// A condition says that the places are inside.
// CHECK-LABEL: tir.prim_func @guarded
// CHECK-NOT:     tir.assert
tir.prim_func @guarded[%n, %m](%A: !tir.buffer<[n], f32>, %I: !tir.buffer<[m], i32>, %B: !tir.buffer<[m], f32>) {
  %zero = arith.constant 0 : index
  tir.for (%i) in (%m) {
    %k = tir.load %I[%i]
    %j = arith.index_cast %k : i32 to index
    %low = arith.cmpi sge, %j, %zero : index
    %high = arith.cmpi slt, %j, %n : index
    %inside = arith.andi %low, %high : i1
    tir.if %inside {
      %x = tir.load %A[%j]
      tir.store %x, %B[%i]
    }
  }
}

// A view is as long as its range, which a number from memory ends; of a range of known length nothing is asked.
// CHECK-LABEL: tir.prim_func @ranges
// CHECK:         %[[LENGTH:.*]] = arith.subi %end, %two : index
// CHECK-NEXT:    %[[EXTENT:.*]] = tir.dim 4
// CHECK-NEXT:    %[[OK:.*]] = arith.cmpi eq, %[[LENGTH]], %[[EXTENT]] : index
// CHECK-NEXT:    tir.assert %[[OK]], "ranges: a 'tir.match_buffer' whose range 0 of %A is not as long as the view, expected 4 elements"
// CHECK-NEXT:    tir.match_buffer %A[%two to %end]
// CHECK-NOT:     tir.assert
tir.prim_func @ranges[%n](%E: !tir.buffer<[1], i64>, %A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {
  %c0 = arith.constant 0 : index
  %e = tir.load %E[%c0]
  %end = arith.index_cast %e : i64 to index
  %two = tir.dim 2
  %V = tir.match_buffer %A[%two to %end] : !tir.buffer<[4], f32>
  %W = tir.match_buffer %B[%c0 to %n] : !tir.buffer<[n], f32>
  %a = tir.load %V[%c0]
  tir.for (%i) in (%n) {
    tir.store %a, %W[%i]
  }
}
