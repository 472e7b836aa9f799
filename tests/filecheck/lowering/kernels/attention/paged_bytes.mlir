// RUN: relax-opt %s -p "schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Keys and values in pages, as bytes with a scale for 32 features (`q8_0`). A vector of eight features has one scale, as
// 32 is a multiple of 8 and vectors begin at multiples of 8: it is loaded once and broadcast.

// CHECK-LABEL: tir.prim_func @paged_attention
// CHECK-NOT:     %packed_columns
// CHECK:         tir.for (%v)
// CHECK:           tir.load %keys0_1[{{.*}}] : vector<8xi8>
// CHECK:           tir.convert sitofp {{.*}} : vector<8xi8> to vector<8xf32>
// CHECK:           arith.divui
// CHECK:           tir.load %keys1_1[{{%[0-9]+}}]{{$}}
// CHECK:           arith.extf {{.*}} : f16 to f32
// CHECK:           vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK:           math.fma
// CHECK:         tir.for (%panel)
// CHECK:           tir.load %values0_1[{{.*}}] : vector<8xi8>
// CHECK:           tir.load %values1_1[{{%[0-9]+}}]{{$}}
// CHECK:           vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK:           math.fma

tir.prim_func @paged_attention[%pool, %pages, %past](%q: !tir.buffer<[1, 1, 1, 64], f32>, %keys0: !tir.buffer<[pool, 1, 32, 64], i8>, %keys1: !tir.buffer<[pool, 1, 32, 2], f16>, %values0: !tir.buffer<[pool, 1, 32, 64], i8>, %values1: !tir.buffer<[pool, 1, 32, 2], f16>, %A4: !tir.buffer<[pages], i64>, %attention: !tir.buffer<[1, 1, 1, 64], f32>) {
  %products = tir.alloc_buffer : !tir.buffer<[1, 1, 1, past + 1], f32>
  %scores = tir.alloc_buffer : !tir.buffer<[1, 1, 1, past + 1], f32>
  %top = tir.alloc_buffer : !tir.buffer<[1, 1, 1], f32>
  %powers = tir.alloc_buffer : !tir.buffer<[1, 1, 1, past + 1], f32>
  %sums = tir.alloc_buffer : !tir.buffer<[1, 1, 1], f32>
  %shares = tir.alloc_buffer : !tir.buffer<[1, 1, 1], f32>
  %totals = tir.alloc_buffer : !tir.buffer<[1, 1, 1, 64], f32>
  %c1 = arith.constant 1 : index
  %0 = tir.dim past + 1
  %c64 = arith.constant 64 : index
  tir.for (%i0, %i1, %i2, %i3, %c) in (%c1, %c1, %c1, %0, %c64) {
    tir.block "products" (%vi0 = spatial %i0 in %c1, %vi1 = spatial %i1 in %c1, %vi2 = spatial %i2 in %c1, %vi3 = spatial %i3 in %0, %vc = reduce %c in %c64) {
      tir.init {
        %1 = arith.constant 0.000000e+00 : f32
        tir.store %1, %products[%vi0, %vi1, %vi2, %vi3]
      }
      %products_1 = tir.load %products[%vi0, %vi1, %vi2, %vi3]
      %q_1 = tir.load %q[%vi2, %vi0, %vi1, %vc]
      %2 = arith.constant 32 : index
      %3 = arith.divui %vi3, %2 : index
      %a4 = tir.load %A4[%3]
      %4 = arith.index_cast %a4 : i64 to index
      %5 = arith.remui %vi3, %2 : index
      %keys0_1 = tir.load %keys0[%4, %vi0, %5, %vc]
      %6 = arith.sitofp %keys0_1 : i8 to f32
      %7 = arith.divui %vc, %2 : index
      %keys1_1 = tir.load %keys1[%4, %vi0, %5, %7]
      %8 = arith.extf %keys1_1 : f16 to f32
      %9 = arith.mulf %6, %8 : f32
      %10 = arith.mulf %q_1, %9 : f32
      %11 = arith.addf %products_1, %10 : f32
      tir.store %11, %products[%vi0, %vi1, %vi2, %vi3]
    }
  }
  tir.for (%i0_1, %i1_1, %i2_1, %i3_1) in (%c1, %c1, %c1, %0) {
    tir.block "scores" (%vi0_1 = spatial %i0_1 in %c1, %vi1_1 = spatial %i1_1 in %c1, %vi2_1 = spatial %i2_1 in %c1, %vi3_1 = spatial %i3_1 in %0) {
      %products_2 = tir.load %products[%vi0_1, %vi1_1, %vi2_1, %vi3_1]
      %12 = arith.constant 2.500000e-01 : f32
      %13 = arith.mulf %products_2, %12 : f32
      tir.store %13, %scores[%vi0_1, %vi1_1, %vi2_1, %vi3_1]
    }
  }
  tir.for (%i0_2, %i1_2, %i2_2, %r) in (%c1, %c1, %c1, %0) {
    tir.block "top" (%vi0_2 = spatial %i0_2 in %c1, %vi1_2 = spatial %i1_2 in %c1, %vi2_2 = spatial %i2_2 in %c1, %vr = reduce %r in %0) {
      tir.init {
        %14 = arith.constant 0xff800000 : f32
        tir.store %14, %top[%vi0_2, %vi1_2, %vi2_2]
      }
      %top_1 = tir.load %top[%vi0_2, %vi1_2, %vi2_2]
      %15 = arith.addi %vi2_2, %past : index
      %16 = arith.cmpi sle, %vr, %15 : index
      %17 = tir.if %16 -> (f32) {
        %scores_1 = tir.load %scores[%vi0_2, %vi1_2, %vi2_2, %vr]
        tir.yield %scores_1
      } else {
        %18 = arith.constant 0xff800000 : f32
        tir.yield %18
      }
      %19 = arith.maximumf %top_1, %17 : f32
      tir.store %19, %top[%vi0_2, %vi1_2, %vi2_2]
    }
  }
  tir.for (%i0_3, %i1_3, %i2_3, %i3_2) in (%c1, %c1, %c1, %0) {
    tir.block "powers" (%vi0_3 = spatial %i0_3 in %c1, %vi1_3 = spatial %i1_3 in %c1, %vi2_3 = spatial %i2_3 in %c1, %vi3_2 = spatial %i3_2 in %0) {
      %20 = arith.addi %vi2_3, %past : index
      %21 = arith.cmpi sle, %vi3_2, %20 : index
      %scores_2 = tir.load %scores[%vi0_3, %vi1_3, %vi2_3, %vi3_2]
      %top_2 = tir.load %top[%vi0_3, %vi1_3, %vi2_3]
      %22 = arith.subf %scores_2, %top_2 : f32
      %23 = math.exp %22 : f32
      %24 = arith.constant 0.000000e+00 : f32
      %25 = arith.select %21, %23, %24 : f32
      tir.store %25, %powers[%vi0_3, %vi1_3, %vi2_3, %vi3_2]
    }
  }
  tir.for (%i0_4, %i1_4, %i2_4, %t) in (%c1, %c1, %c1, %0) {
    tir.block "sums" (%vi0_4 = spatial %i0_4 in %c1, %vi1_4 = spatial %i1_4 in %c1, %vi2_4 = spatial %i2_4 in %c1, %vt = reduce %t in %0) {
      tir.init {
        %26 = arith.constant 0.000000e+00 : f32
        tir.store %26, %sums[%vi0_4, %vi1_4, %vi2_4]
      }
      %sums_1 = tir.load %sums[%vi0_4, %vi1_4, %vi2_4]
      %powers_1 = tir.load %powers[%vi0_4, %vi1_4, %vi2_4, %vt]
      %27 = arith.addf %sums_1, %powers_1 : f32
      tir.store %27, %sums[%vi0_4, %vi1_4, %vi2_4]
    }
  }
  tir.for (%i0_5, %i1_5, %i2_5) in (%c1, %c1, %c1) {
    tir.block "shares" (%vi0_5 = spatial %i0_5 in %c1, %vi1_5 = spatial %i1_5 in %c1, %vi2_5 = spatial %i2_5 in %c1) {
      %28 = arith.constant 1.000000e+00 : f32
      %sums_2 = tir.load %sums[%vi0_5, %vi1_5, %vi2_5]
      %29 = arith.divf %28, %sums_2 : f32
      tir.store %29, %shares[%vi0_5, %vi1_5, %vi2_5]
    }
  }
  tir.for (%i, %h, %g, %d, %s) in (%c1, %c1, %c1, %c64, %0) {
    tir.block "totals" (%vi = spatial %i in %c1, %vh = spatial %h in %c1, %vg = spatial %g in %c1, %vd = spatial %d in %c64, %vs = reduce %s in %0) {
      tir.init {
        %30 = arith.constant 0.000000e+00 : f32
        tir.store %30, %totals[%vi, %vh, %vg, %vd]
      }
      %totals_1 = tir.load %totals[%vi, %vh, %vg, %vd]
      %powers_2 = tir.load %powers[%vh, %vg, %vi, %vs]
      %31 = arith.constant 0.000000e+00 : f32
      %32 = arith.cmpf oeq, %powers_2, %31 : f32
      %33 = arith.constant 32 : index
      %34 = arith.divui %vs, %33 : index
      %a4_1 = tir.load %A4[%34]
      %35 = arith.index_cast %a4_1 : i64 to index
      %36 = arith.remui %vs, %33 : index
      %values0_1 = tir.load %values0[%35, %vh, %36, %vd]
      %37 = arith.sitofp %values0_1 : i8 to f32
      %38 = arith.divui %vd, %33 : index
      %values1_1 = tir.load %values1[%35, %vh, %36, %38]
      %39 = arith.extf %values1_1 : f16 to f32
      %40 = arith.mulf %37, %39 : f32
      %41 = arith.mulf %powers_2, %40 : f32
      %42 = arith.select %32, %31, %41 : f32
      %43 = arith.addf %totals_1, %42 : f32
      tir.store %43, %totals[%vi, %vh, %vg, %vd]
    }
  }
  tir.for (%i_1, %h_1, %g_1, %d_1) in (%c1, %c1, %c1, %c64) {
    tir.block "attention" (%vi_1 = spatial %i_1 in %c1, %vh_1 = spatial %h_1 in %c1, %vg_1 = spatial %g_1 in %c1, %vd_1 = spatial %d_1 in %c64) {
      %shares_1 = tir.load %shares[%vh_1, %vg_1, %vi_1]
      %totals_2 = tir.load %totals[%vi_1, %vh_1, %vg_1, %vd_1]
      %44 = arith.mulf %shares_1, %totals_2 : f32
      tir.store %44, %attention[%vi_1, %vh_1, %vg_1, %vd_1]
    }
  }
}
