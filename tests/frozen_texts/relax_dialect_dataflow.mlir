builtin.module {
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
  relax.func @symbols[%n](%x: !relax.tensor<[_, n], f32>) -> !relax.object {
    %gv = relax.dataflow {
      %lv, %m = relax.match_cast %x : !relax.tensor<[m, n], f32> binds [m]
      relax.output %lv
    }
    %gv_1, %m_1 = relax.dataflow {
      %lv_1, %m_2 = relax.match_cast %x : !relax.tensor<[m, n], f32> binds [m]
      relax.output %lv_1, %m_2
    }
    %s = relax.shape_of %gv
    %s_1 = relax.shape_of %gv_1
    %t = relax.tuple(%s, %s_1)
    relax.return %t
  }
}
