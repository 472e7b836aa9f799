builtin.module {
  relax.func @there_and_back[%n](%x: !relax.tensor<[n, 8, 3], f32>) -> !relax.object {
    %0 = relax.layout_transform %x source = "NCW" target = "NCW4c"
    %1 = relax.layout_transform %0 source = "NCW4c" target = "NCW"
    %2 = relax.exp %1
    relax.return %2
  }
  relax.func @no_way_back[%n](%x: !relax.tensor<[n, 6, 3], f32>, %y: !relax.tensor<[n, 8, 3], f32>) -> !relax.object {
    %0 = relax.layout_transform %x source = "NCW" target = "NCW4c"
    %1 = relax.layout_transform %0 source = "NCW4c" target = "NCW"
    %2 = relax.layout_transform %y source = "NCW" target = "NCW4c"
    %3 = relax.layout_transform %2 source = "NCW4c" target = "CNW"
    %4 = relax.tuple(%1, %3)
    relax.return %4
  }
}
