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
