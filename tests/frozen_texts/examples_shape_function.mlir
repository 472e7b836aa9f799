builtin.module {
  relax.func @shape_example[%n](%x: !relax.tensor<[n, 2, 2], f32>) -> !relax.tensor<[_], f32> {
    %gv0 = relax.dataflow {
      %shape = relax.shape [n, 4]
      %lv0 = relax.reshape %x, %shape
      %lv1 = relax.flatten %lv0
      %lv2 = relax.shape [4 * n]
      %lv3 = relax.call_pure_packed "myshape_func"(%lv2) : !relax.shape<[_]>
      %lv4 = relax.call_dps_packed "custom_func"(%lv1) shape(%lv3) : !relax.tensor<[_], f32>
      %lv5 = relax.unique %lv4
      %lv6, %m = relax.match_cast %lv5 : !relax.tensor<[m], f32> binds [m]
      %lv7 = relax.exp %lv6
      relax.output %lv7
    }
    relax.return %gv0
  }
}
