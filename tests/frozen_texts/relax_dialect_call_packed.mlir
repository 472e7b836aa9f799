builtin.module {
  relax.func @packed[%n](%x: !relax.tensor<[n], f32>, %s: !relax.shape<*>) -> !relax.object impure {
    relax.call_packed "custom_print"(%x)
    %0 = relax.call_packed "custom_add"(%x, %x) : !relax.tensor<[n], f32>
    %1 = relax.call_packed "nothing"() {note} : !relax.object
    relax.return %0
  }
  relax.func @pure_packed[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %gv = relax.dataflow {
      %0 = relax.call_pure_packed "f"(%x)
      %1 = relax.call_pure_packed "my_shape"(%x) : !relax.shape<*>
      relax.output %1
    }
    relax.return %gv
  }
  relax.func @dps_packed[%n](%x: !relax.tensor<[n], f32>, %s: !relax.shape<*>) -> !relax.object {
    %0 = relax.call_dps_packed "custom_tile"(%x) : !relax.tensor<[2 * n], f32>
    %1, %2 = relax.call_dps_packed "two"(%x) : !relax.tensor<[n], f32>, !relax.tensor<[], i64>
    %3 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>
    relax.return %0
  }
}
