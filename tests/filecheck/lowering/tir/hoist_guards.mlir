// RUN: relax-opt %s -p hoist-guards | filecheck %s
// RUN: relax-opt %s -p hoist-guards,hoist-guards | filecheck %s

// The innermost loop in which all predicates of a block are decided is split. Those that are decided in loops around it
// go there, too; inside of the first half the next loop is split.
// CHECK-LABEL: tir.prim_func @tiles
// CHECK:         tir.for parallel (%i0) in
// CHECK-NEXT:      tir.for (%j0) in
// CHECK:             %[[I:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK-NEXT:        %[[I_INSIDE:.*]] = arith.cmpi slt, %[[I]], %c1 : index
// CHECK:             %[[J:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK-NEXT:        %[[J_INSIDE:.*]] = arith.cmpi slt, %[[J]], %c1 : index
// CHECK-NEXT:        %[[INSIDE:.*]] = arith.andi %[[I_INSIDE]], %[[J_INSIDE]] : i1
// CHECK-NEXT:        tir.if %[[INSIDE]] attributes {whole_tiles} {
// CHECK:               tir.block "init" (%{{.*}} = spatial %{{.*}} in %n, %{{.*}} = spatial %{{.*}} in %m) {
// CHECK:               tir.for (%r0) in
// CHECK:                 tir.if %{{.*}} attributes {whole_tiles} {
// CHECK:                   tir.block "update" (%{{.*}} in %k) {
// CHECK:                 } else {
// CHECK:                   %[[R_INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %k : index
// CHECK-NEXT:              tir.block "update" (%{{.*}} in %k) where %[[R_INSIDE]] {
// CHECK:             } else {
// CHECK:               tir.block "init" (%{{.*}} in %m) where %{{.*}} {
// CHECK:               tir.for (%r0_1, 
// CHECK-NOT:             tir.if
// CHECK:                 tir.block "update" (%{{.*}} in %k) where %{{.*}} {
tir.prim_func @tiles[%n, %m, %k](%X: !tir.buffer<[n, k], f32>, %Y: !tir.buffer<[n, m], f32>) {
  %c4 = arith.constant 4 : index
  %i_tiles = tir.dim ceildiv(n, 4)
  %j_tiles = tir.dim ceildiv(m, 4)
  %r_tiles = tir.dim ceildiv(k, 4)
  tir.for parallel (%i0) in (%i_tiles) {
    tir.for (%j0) in (%j_tiles) {
      tir.for (%i1, %j1) in (%c4, %c4) {
        %ib = arith.muli %i0, %c4 : index
        %i = arith.addi %ib, %i1 : index
        %jb = arith.muli %j0, %c4 : index
        %j = arith.addi %jb, %j1 : index
        %in_i = arith.cmpi slt, %i, %n : index
        %in_j = arith.cmpi slt, %j, %m : index
        %inside = arith.andi %in_i, %in_j : i1
        tir.block "init" (%vi = spatial %i in %n, %vj = spatial %j in %m) where %inside {
          %zero = arith.constant 0.0 : f32
          tir.store %zero, %Y[%vi, %vj]
        }
      }
      tir.for (%r0) in (%r_tiles) {
        tir.for (%r1, %i1, %j1) in (%c4, %c4, %c4) {
          %ib = arith.muli %i0, %c4 : index
          %i = arith.addi %ib, %i1 : index
          %jb = arith.muli %j0, %c4 : index
          %j = arith.addi %jb, %j1 : index
          %rb = arith.muli %r0, %c4 : index
          %r = arith.addi %rb, %r1 : index
          %in_i = arith.cmpi slt, %i, %n : index
          %in_j = arith.cmpi slt, %j, %m : index
          %in_r = arith.cmpi slt, %r, %k : index
          %in_ij = arith.andi %in_i, %in_j : i1
          %inside = arith.andi %in_ij, %in_r : i1
          tir.block "update" (%vi = spatial %i in %n, %vj = spatial %j in %m, %vr = reduce %r in %k) where %inside {
            %x = tir.load %X[%vi, %vr]
            %y = tir.load %Y[%vi, %vj]
            %s = arith.addf %x, %y : f32
            tir.store %s, %Y[%vi, %vj]
          }
        }
      }
    }
  }
}

// A predicate that no tile decides stays: that of a single loop, that of data, and one of which the loops inside have no
// constant bounds.
// CHECK-LABEL: tir.prim_func @stay
// CHECK-NOT:     tir.if
// CHECK:         tir.block "single" {{.*}} where %{{.*}} {
// CHECK:         tir.block "data" {{.*}} where %{{.*}} {
// CHECK:         tir.block "long" {{.*}} where %{{.*}} {
// CHECK-NOT:     tir.if
tir.prim_func @stay[%n, %m](%X: !tir.buffer<[n], i32>, %Y: !tir.buffer<[n * m], i32>) {
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %half = tir.dim floordiv(n, 2)
  %all = tir.dim n * m
  tir.for (%i) in (%n) {
    %inside = arith.cmpi slt, %i, %half : index
    tir.block "single" (%vi = spatial %i in %n) where %inside {
      tir.store %zero, %X[%vi]
    }
  }
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    %inside = arith.cmpi slt, %x, %zero : i32
    tir.block "data" (%vi = spatial %i in %n) where %inside {
      tir.store %zero, %X[%vi]
    }
  }
  tir.for (%i, %j) in (%n, %m) {
    %b = arith.muli %i, %m : index
    %f = arith.addi %b, %j : index
    %inside = arith.cmpi slt, %f, %n : index
    tir.block "long" (%vf = spatial %f in %all) where %inside {
      tir.store %zero, %Y[%vf]
    }
  }
}
