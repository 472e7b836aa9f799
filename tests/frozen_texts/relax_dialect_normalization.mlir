builtin.module {
  relax.func @normalization[%n, %c, %h](%x: !relax.tensor<[n, c, h], f32>, %y: !relax.tensor<[n, 4, h], f32>, %g: !relax.tensor<[h], f32>, %w: !relax.tensor<[c], f32>, %v: !relax.tensor<[4], f32>) -> !relax.object {
    %0 = relax.nn.layer_norm %x, %g, %g axes = [-1]
    %1 = relax.nn.layer_norm %x, %g, %g axes = [2] epsilon = 1.0e-12 no_center no_scale
    %2 = relax.nn.rms_norm %x, %g axes = [-1] epsilon = 1.0e-06
    %3 = relax.nn.group_norm %y, %v, %v num_groups = 2 channel_axis = 1 axes = [2]
    %4 = relax.nn.instance_norm %x, %w, %w channel_axis = 1 axes = [2]
    %5 = relax.nn.batch_norm %x, %w, %w, %w, %w
    %6 = relax.nn.batch_norm %x, %g, %g, %g, %g axis = -1 epsilon = 0.001
    relax.return %x
  }
}
