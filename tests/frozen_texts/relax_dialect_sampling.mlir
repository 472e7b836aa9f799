builtin.module {
  relax.func @samples[%n, %c, %h, %w, %k, %l, %d, %m](%x: !relax.tensor<[n, c, h, w], f32>, %g: !relax.tensor<[n, k, l, 2], f32>, %y: !relax.tensor<[n, c, d, h, w], f16>, %v: !relax.tensor<[n, k, l, m, 3], f32>) -> !relax.object {
    %0 = relax.image.grid_sample %x, %g
    %1 = relax.image.grid_sample %y, %v method = "cubic" padding_mode = "reflection" cubic_alpha = -0.5 align_corners
    relax.return %x
  }
  relax.func @grids[%n, %h, %w, %d](%x: !relax.tensor<[n, 2, 3], f32>, %t: !relax.tensor<[n, 3, 4], f32>, %s: !relax.shape<[h, w]>, %q: !relax.shape<[d, h, w]>) -> !relax.object {
    %0 = relax.image.affine_grid %x, %s
    %1 = relax.image.affine_grid %t, %q align_corners
    relax.return %x
  }
}
