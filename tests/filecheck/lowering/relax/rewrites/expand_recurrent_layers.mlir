// RUN: relax-opt %s -p expand-recurrent-layers --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-recurrent-layers,expand-recurrent-layers --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-recurrent-layers --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The product is one for all steps, and weights are turned where that can be done beforehand.
// CHECK-LABEL: relax.func @steps
// CHECK:         [[W:%.*]] = relax.permute_dims {{%.*}} axes = [1, 0]
// CHECK:         [[GATES:%.*]] = relax.matmul {{%.*}}, [[W]]
// CHECK:         [[R:%.*]] = relax.permute_dims %r axes = [0, 2, 1]
// CHECK:         relax.nn.recurrence {{%.*}}, [[R]],
// LOC: relax.nn.recurrence {{.*}} loc("{{.*}}":[[# @LINE + 2]]:3)
relax.func @steps[%t, %n](%x: !relax.tensor<[t, n, 4], f32>, %w: !relax.tensor<[1, 3, 4], f32>, %r: !relax.tensor<[1, 3, 3], f32>, %c: !relax.tensor<[1, 6], f32>, %l: !relax.tensor<[n], i32>, %s: !relax.tensor<[1, n, 3], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s
  %both = relax.tuple(%y, %last)
  relax.return %both
}

// -----

// Dimensions without names: it stays.
// CHECK-LABEL: relax.func @unknown
// CHECK:         relax.nn.rnn
relax.func @unknown[%n](%x: !relax.tensor<[_, n, _], f32>, %w: !relax.tensor<[1, 3, 4], f32>, %r: !relax.tensor<[1, 3, 3], f32>, %c: !relax.tensor<[1, 6], f32>, %l: !relax.tensor<[n], i32>, %s: !relax.tensor<[1, n, 3], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s
  %both = relax.tuple(%y, %last)
  relax.return %both
}
