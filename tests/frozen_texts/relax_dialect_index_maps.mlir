builtin.module {
  relax.func @maps[%n, %m](%x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[3], i8>, %z: !relax.tensor<[n, 8], f32>) -> !relax.object {
    %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d1, d0)>
    %1 = relax.map_indices %x index_map = affine_map<(d0, d1) -> ((d0 floordiv 4), d1, (d0 mod 4))> pad_value = 0.5
    %2 = relax.map_indices %y index_map = affine_map<(d0) -> ((d0 floordiv 4), (d0 mod 4))>
    %3 = relax.map_indices %z index_map = affine_map<(d0, d1) -> (((d0 * 8) + d1))>
    relax.return %x
  }
  relax.func @unknown(%x: !relax.tensor<*, _>) -> !relax.object {
    %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0, (d1 floordiv 2), (d1 mod 2))>
    relax.return %0
  }
}
