// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s
// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"},schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A scan: within half a vector lanes are added to those 1 and 2 further on, then the total of the first half to the
// second; the carry is added last.
// Blocks of 128 vectors are scanned from zero, so that long sums are accurate; what the blocks before have is added at
// the store. The vectors after the last whole block follow, and the remainder of a row is a masked vector.
// CHECK-LABEL: tir.prim_func @running
// CHECK:         tir.for (%row)
// CHECK:           %carry = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local", align = 64>
// CHECK:           %[[TOTAL:carry_.*]] = tir.alloc_buffer : !tir.buffer<[8], f32, scope = "local", align = 64>
// CHECK:           tir.for (%block)
// CHECK-NEXT:        %[[BEFORE:.*]] = tir.load %[[TOTAL]]
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
// CHECK:             arith.addf %[[BEFORE]], {{.*}}
// CHECK-NEXT:        tir.store {{.*}}, %Y_1
// CHECK:           tir.for (%v{{.*}}
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
