// RUN: relax-opt %s -p "convert-tir-to-llvm{vector_bits=256}" --split-input-file | filecheck %s

// A register tile: accumulators are on the stack, at addresses that LLVM sees through, so that they become registers. A
// step is a load of B, a broadcast of A and a multiply-add for each row. The remainder is stored under a mask of lanes.

// CHECK-LABEL: llvm.func internal @tile(
// CHECK-SAME:    ["prefer-vector-width", "256"]
// CHECK-DAG:     [[LANES:%[0-9]+]] = llvm.mlir.constant(dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>)
// CHECK:         %sums = llvm.alloca %one x !llvm.array<16 x f32> {alignment = 64 : i64}
// CHECK:         llvm.store %nothing, %sums
// CHECK-NEXT:    [[ROW1:%[0-9]+]] = llvm.getelementptr inbounds %sums[%eight]
// CHECK-NEXT:    llvm.store %nothing, [[ROW1]]
// CHECK:       ^bb2(%r: i64):
// CHECK:         %b = llvm.load {{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK:         %a0 = llvm.shufflevector {{.*}} [0, 0, 0, 0, 0, 0, 0, 0]
// CHECK-NEXT:    %s0 = llvm.load %sums
// CHECK-NEXT:    %t0 = llvm.call_intrinsic "llvm.fmuladd.v8f32"(%a0, %b, %s0) {fastmathFlags = #llvm.fastmath<contract>}
// CHECK-NEXT:    llvm.store %t0, %sums
// CHECK:         %s1 = llvm.load [[ROW1]]
// CHECK-NEXT:    %t1 = llvm.call_intrinsic "llvm.fmuladd.v8f32"(%a1, %b, %s1)
// CHECK:         llvm.call_intrinsic "llvm.prefetch.p0"
// CHECK:         llvm.cond_br {{.*}}, ^bb2({{.*}}), ^bb3 {llvm_ext.loop = {llvm.loop.unroll.count = 4 : i32}}
// CHECK:         llvm.store %u0, %tile
// CHECK:         %mask = llvm.icmp "slt" [[LANES]], {{.*}} : vector<8xi32>
// CHECK:         llvm_ext.masked_store %u1, {{.*}}, %mask

tir.prim_func private @tile(%rows: !tir.buffer<[12], f32>, %columns: !tir.buffer<[64], f32>, %tile: !tir.buffer<[2, 8], f32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %k = arith.constant 6 : index
  %eight = arith.constant 8 : index
  %sums = tir.alloc_buffer : !tir.buffer<[2, 8], f32, scope = "local", align = 64>
  %nothing = arith.constant dense<0.0> : vector<8xf32>
  tir.store %nothing, %sums[%zero, %zero]
  tir.store %nothing, %sums[%one, %zero]
  tir.for (%r) in (%k) annotations {llvm.loop.unroll.count = 4 : i32} {
    %at = arith.muli %r, %eight : index
    %b = tir.load %columns[%at] : vector<8xf32>
    %first = tir.load %rows[%r]
    %a0 = vector.broadcast %first : f32 to vector<8xf32>
    %s0 = tir.load %sums[%zero, %zero] : vector<8xf32>
    %t0 = math.fma %a0, %b, %s0 fastmath<contract> : vector<8xf32>
    tir.store %t0, %sums[%zero, %zero]
    %next = arith.addi %r, %k : index
    %second = tir.load %rows[%next]
    %a1 = vector.broadcast %second : f32 to vector<8xf32>
    %s1 = tir.load %sums[%one, %zero] : vector<8xf32>
    %t1 = math.fma %a1, %b, %s1 fastmath<contract> : vector<8xf32>
    tir.store %t1, %sums[%one, %zero]
    tir.prefetch %columns[%at] level 1
  }
  %u0 = tir.load %sums[%zero, %zero] : vector<8xf32>
  tir.store %u0, %tile[%zero, %zero]
  %u1 = tir.load %sums[%one, %zero] : vector<8xf32>
  %mask = vector.create_mask %two : vector<8xi1>
  tir.store %u1, %tile[%one, %zero] mask %mask
}

// -----

// Dot-product groups on a machine without the instruction: four multiplications of bytes, extended with or without sign.

// CHECK-LABEL: llvm.func @dots(
// CHECK:         %a = llvm.load %x
// CHECK:         [[A0:%[0-9]+]] = llvm.lshr {{.*}} : vector<16xi32>
// CHECK:         [[B0:%[0-9]+]] = llvm.ashr {{.*}} : vector<16xi32>
// CHECK-NEXT:    [[AB:%[0-9]+]] = llvm.mul [[A0]], [[B0]] : vector<16xi32>
// CHECK-NEXT:    llvm.add %c, [[AB]] : vector<16xi32>
// CHECK-COUNT-3: llvm.mul
// CHECK-NOT:     llvm.mul
// CHECK:         llvm.store %d, %z

tir.prim_func @dots(%x: !tir.buffer<[16], i32>, %y: !tir.buffer<[16], i32>, %z: !tir.buffer<[16], i32>) {
  %zero = arith.constant 0 : index
  %a = tir.load %x[%zero] : vector<16xi32>
  %b = tir.load %y[%zero] : vector<16xi32>
  %c = tir.load %z[%zero] : vector<16xi32>
  %d = tir.dot ui8 %a, i8 %b, %c : vector<16xi32>
  tir.store %d, %z[%zero]
}
