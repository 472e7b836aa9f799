// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// Only what is output is visible outside; a function may hold several regions.
// CHECK-LABEL: relax.func @regions[
// CHECK-NEXT:      %gv = relax.dataflow {
// CHECK-NEXT:        %lv0 = relax.exp %x
// CHECK-NEXT:        %lv1 = relax.add %lv0, %x
// CHECK-NEXT:        relax.output %lv1
// CHECK-NEXT:      }
// CHECK-NEXT:      %gv0, %gv1 = relax.dataflow attributes {note = 1 : i64} {
// CHECK-NEXT:        %lv0_1 = relax.exp %gv
// CHECK-NEXT:        relax.output %lv0_1, %gv
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.dataflow {
// CHECK-NEXT:        relax.output
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.return %gv0
relax.func @regions[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %gv = relax.dataflow {
    %lv0 = relax.exp %x
    %lv1 = relax.add %lv0, %x
    relax.output %lv1
  }
  %gv0, %gv1 = relax.dataflow attributes {note = 1 : i64} {
    %lv0_1 = relax.exp %gv
    relax.output %lv0_1, %gv
  }
  relax.dataflow {
    relax.output
  }
  relax.return %gv0
}

// A dimension that uses a symbol of the region is unknown outside, unless the witness is an output too.
// CHECK-LABEL: relax.func @symbols[
// CHECK-NEXT:      %gv = relax.dataflow {
// CHECK-NEXT:        %lv, %m = relax.match_cast %x : !relax.tensor<[m, n], f32> binds [m]
// CHECK-NEXT:        relax.output %lv
// CHECK-NEXT:      }
// CHECK-NEXT:      %gv_1, %m_1 = relax.dataflow {
// CHECK-NEXT:        %lv_1, %m_2 = relax.match_cast %x : !relax.tensor<[m, n], f32> binds [m]
// CHECK-NEXT:        relax.output %lv_1, %m_2
// CHECK-NEXT:      }
// CHECK-NEXT:      %s = relax.shape_of %gv
// CHECK-NEXT:      %s_1 = relax.shape_of %gv_1
// CHECK-NEXT:      %t = relax.tuple(%s, %s_1)
// CHECK-NEXT:      relax.return %t
relax.func @symbols[%n](%x: !relax.tensor<[_, n], f32>) -> !relax.object {
  %gv = relax.dataflow {
    %lv, %m = relax.match_cast %x : !relax.tensor<[m, n], f32> binds [m]
    relax.output %lv
  }
  %gv_1, %m = relax.dataflow {
    %lv, %m_1 = relax.match_cast %x : !relax.tensor<[m, n], f32> binds [m]
    relax.output %lv, %m_1
  }
  %s = relax.shape_of %gv
  %s_1 = relax.shape_of %gv_1
  %t = relax.tuple(%s, %s_1)
  relax.return %t
}

// -----

// A group of calls of kernels; what it yields is visible outside, also inside of a dataflow region.
// CHECK-LABEL: relax.func @calls
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %y = relax.fused attributes {library = "blas"} {
// CHECK-NEXT:        %1 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
// CHECK-NEXT:        %2 = relax.call_tir @exp(%1) : !relax.tensor<[n], f32>
// CHECK-NEXT:        relax.yield %2
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.output %y
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = math.exp %x : f32
    tir.store %y, %Y[%i]
  }
}
relax.func @calls[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.dataflow {
    %y = relax.fused attributes {library = "blas"} {
      %1 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
      %2 = relax.call_tir @exp(%1) : !relax.tensor<[n], f32>
      relax.yield %2
    }
    relax.output %y
  }
  relax.return %0
}

// -----

// A group of operators with several results; a symbol that is bound inside is not visible outside.
// CHECK-LABEL: relax.func @operators
// CHECK-NEXT:    %a, %b = relax.fused {
// CHECK:           relax.yield %0, %2
// CHECK:         %r = relax.tuple(%a, %b)
relax.func @operators[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[n], f32>, !relax.tensor<[_], f32>> {
  %a, %b = relax.fused {
    %0 = relax.exp %x
    %1 = relax.unique %0
    %2, %m = relax.match_cast %1 : !relax.tensor<[m], f32> binds [m]
    relax.yield %0, %2
  }
  %r = relax.tuple(%a, %b) : !relax.tuple<!relax.tensor<[n], f32>, !relax.tensor<[_], f32>>
  relax.return %r
}
