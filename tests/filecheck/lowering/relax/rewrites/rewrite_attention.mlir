// RUN: relax-opt %s -p rewrite-attention --split-input-file | filecheck %s
// RUN: relax-opt %s -p rewrite-attention,rewrite-attention --split-input-file | filecheck %s
// RUN: relax-opt %s -p rewrite-attention --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// As ONNX exporters write it: orders of dimensions that suit the products, a divisor, a mask that is added.
// CHECK-LABEL: relax.func @as_exported
// CHECK-NOT:     relax.permute_dims
// CHECK:         %y = relax.nn.attention_bias %q, %k, %v, %m scale = 0.125
// CHECK-NEXT:    relax.return %y
// LOC: relax.nn.attention_bias {{.*}} loc("{{.*}}":[[# @LINE + 11]]:3)
relax.func @as_exported[%b, %s, %t](%q: !relax.tensor<[b, s, 12, 64], f32>, %k: !relax.tensor<[b, t, 12, 64], f32>, %v: !relax.tensor<[b, t, 12, 64], f32>, %m: !relax.tensor<[b, 1, 1, t], f32>) -> !relax.tensor<[b, s, 12, 64], f32> {
  %eight = relax.constant dense<8.0> : tensor<f32>
  %0 = relax.permute_dims %q axes = [0, 2, 1, 3]
  %1 = relax.permute_dims %k axes = [0, 2, 3, 1]
  %2 = relax.permute_dims %v axes = [0, 2, 1, 3]
  %3 = relax.matmul %0, %1
  %4 = relax.divide %3, %eight
  %5 = relax.add %4, %m
  %6 = relax.nn.softmax %5 axis = -1
  %7 = relax.matmul %6, %2
  %y = relax.permute_dims %7 axes = [0, 2, 1, 3]
  relax.return %y
}

// -----

// Heads that come first, scales on both operands, keys in two steps.
// CHECK-LABEL: relax.func @heads_first
// CHECK:         %y = relax.nn.attention %q, %k, %v scale = 0.25 q_layout = "BHSD" k_layout = "BHSD" v_layout = "BHSD" out_layout = "BHSD"
// CHECK-NEXT:    relax.return %y
relax.func @heads_first[%b, %s, %t](%q: !relax.tensor<[b, 2, s, 4], f32>, %k: !relax.tensor<[b, 2, t, 4], f32>, %v: !relax.tensor<[b, 2, t, 8], f32>) -> !relax.tensor<[b, 2, s, 8], f32> {
  %half = relax.constant dense<0.5> : tensor<f32>
  %0 = relax.multiply %q, %half
  %1 = relax.permute_dims %k axes = [0, 1, 3, 2]
  %2 = relax.multiply %half, %1
  %3 = relax.matmul %0, %2
  %4 = relax.nn.softmax %3 axis = 3
  %y = relax.matmul %4, %v
  relax.return %y
}

// -----

// A mask that chooses: what is hidden has the score that it had.
// CHECK-LABEL: relax.func @chosen
// CHECK:         %y = relax.nn.attention_bias %q, %k, %v, %m masked_score = -1000.0 scale = 2.0
// CHECK-LABEL: relax.func @refused
// CHECK:         %0 = relax.logical_not %m
// CHECK-NEXT:    %y = relax.nn.attention_bias %q, %k, %v, %0
relax.func @chosen[%s, %t](%q: !relax.tensor<[1, 2, s, 4], f32>, %k: !relax.tensor<[1, 2, 4, t], f32>, %v: !relax.tensor<[1, 2, t, 4], f32>, %m: !relax.tensor<[s, t], i1>) -> !relax.tensor<[1, 2, s, 4], f32> {
  %two = relax.constant dense<2.0> : tensor<1xf32>
  %far = relax.constant dense<-1000.0> : tensor<f32>
  %0 = relax.matmul %q, %k
  %1 = relax.multiply %0, %two
  %2 = relax.where %m, %1, %far
  %3 = relax.nn.softmax %2
  %y = relax.matmul %3, %v
  relax.return %y
}
relax.func @refused[%s, %t](%q: !relax.tensor<[1, 2, s, 4], f32>, %k: !relax.tensor<[1, 2, 4, t], f32>, %v: !relax.tensor<[1, 2, t, 4], f32>, %m: !relax.tensor<[s, t], i1>) -> !relax.tensor<[1, 2, s, 4], f32> {
  %far = relax.constant dense<-1000.0> : tensor<f32>
  %0 = relax.matmul %q, %k
  %1 = relax.where %m, %far, %0
  %2 = relax.nn.softmax %1
  %y = relax.matmul %2, %v
  relax.return %y
}

// -----

// Heads of keys and values that were repeated for those of queries.
// CHECK-LABEL: relax.func @repeated
// CHECK-NOT:     relax.broadcast_to
// CHECK-NOT:     relax.repeat
// CHECK:         %y = relax.nn.attention %q, %k, %v
relax.func @repeated[%b, %s, %t](%q: !relax.tensor<[b, 6, s, 4], f32>, %k: !relax.tensor<[b, 2, t, 4], f32>, %v: !relax.tensor<[b, 2, t, 4], f32>) -> !relax.tensor<[b, 6, s, 4], f32> {
  %0 = relax.expand_dims %k axes = [2]
  %1 = relax.shape [b, 2, 3, t, 4]
  %2 = relax.broadcast_to %0, %1
  %3 = relax.shape [b, 6, t, 4]
  %4 = relax.reshape %2, %3
  %5 = relax.permute_dims %4 axes = [0, 1, 3, 2]
  %6 = relax.repeat %v repeats = 3 axis = 1
  %7 = relax.matmul %q, %5
  %8 = relax.nn.softmax %7
  %y = relax.matmul %8, %6
  relax.return %y
}

// -----

// Without heads, a batch of single ones.
// CHECK-LABEL: relax.func @no_heads
// CHECK-DAG:     %[[Q:.*]] = relax.expand_dims %q axes = [1]
// CHECK-DAG:     %[[K:.*]] = relax.expand_dims %k axes = [1]
// CHECK-DAG:     %[[V:.*]] = relax.expand_dims %v axes = [1]
// CHECK:         %[[Y:.*]] = relax.nn.attention %[[Q]], %[[K]], %[[V]] scale = 1.0 q_layout = "BHSD" k_layout = "BHDS" v_layout = "BHSD" out_layout = "BHSD"
// CHECK-NEXT:    %y = relax.squeeze %[[Y]] axes = [1]
relax.func @no_heads[%b, %s, %t](%q: !relax.tensor<[b, s, 4], f32>, %k: !relax.tensor<[b, 4, t], f32>, %v: !relax.tensor<[b, t, 4], f32>) -> !relax.tensor<[b, s, 4], f32> {
  %0 = relax.matmul %q, %k
  %1 = relax.nn.softmax %0
  %y = relax.matmul %1, %v
  relax.return %y
}

// -----

// Changed orders around the operator become its layouts.
// CHECK-LABEL: relax.func @ordered
// CHECK:         %y = relax.nn.attention_bias %q, %k, %v, %m causal_mask = "TopLeft" q_layout = "BHSD" k_layout = "BHDS" out_layout = "SBHD"
// CHECK-NEXT:    relax.return %y
relax.func @ordered[%b, %s](%q: !relax.tensor<[b, 2, s, 4], f32>, %k: !relax.tensor<[b, 2, 4, s], f32>, %v: !relax.tensor<[b, s, 2, 4], f32>, %m: !relax.tensor<[s, s], i1>) -> !relax.tensor<[s, b, 2, 4], f32> {
  %0 = relax.permute_dims %q axes = [0, 2, 1, 3]
  %1 = relax.permute_dims %k axes = [0, 1, 3, 2]
  %2 = relax.nn.attention_bias %0, %1, %v, %m causal_mask = "TopLeft" k_layout = "BHSD"
  %y = relax.permute_dims %2 axes = [1, 0, 2, 3]
  relax.return %y
}

// -----

// Left as they are: probabilities that are used elsewhere, another axis, a bias that broadcasts the scores or may do
// so, batches that are broadcast, 16-bit floats.
// CHECK-LABEL: relax.func @used
// CHECK-NOT:     relax.nn.attention
// CHECK-LABEL: relax.func @other_axis
// CHECK-NOT:     relax.nn.attention
// CHECK-LABEL: relax.func @larger_bias
// CHECK-NOT:     relax.nn.attention
// CHECK-LABEL: relax.func @bias_of_any_size
// CHECK-NOT:     relax.nn.attention
// CHECK:         relax.add %0, %m
// CHECK-LABEL: relax.func @other_batch
// CHECK-NOT:     relax.nn.attention
// CHECK-LABEL: relax.func @half
// CHECK-NOT:     relax.nn.attention
relax.func @used[%s, %t](%q: !relax.tensor<[1, 2, s, 4], f32>, %k: !relax.tensor<[1, 2, 4, t], f32>, %v: !relax.tensor<[1, 2, t, 4], f32>) -> !relax.tuple<!relax.tensor<[1, 2, s, 4], f32>, !relax.tensor<[1, 2, s, t], f32>> {
  %0 = relax.matmul %q, %k
  %1 = relax.nn.softmax %0
  %2 = relax.matmul %1, %v
  %y = relax.tuple(%2, %1)
  relax.return %y
}
relax.func @other_axis[%s, %t](%q: !relax.tensor<[1, 2, s, 4], f32>, %k: !relax.tensor<[1, 2, 4, t], f32>, %v: !relax.tensor<[1, 2, t, 4], f32>) -> !relax.tensor<[1, 2, s, 4], f32> {
  %0 = relax.matmul %q, %k
  %1 = relax.nn.softmax %0 axis = 2
  %y = relax.matmul %1, %v
  relax.return %y
}
relax.func @larger_bias[%s, %t](%q: !relax.tensor<[1, 2, s, 4], f32>, %k: !relax.tensor<[1, 2, 4, t], f32>, %v: !relax.tensor<[1, 2, t, 4], f32>, %m: !relax.tensor<[3, 1, 1, 1], f32>) -> !relax.tensor<[3, 2, s, 4], f32> {
  %0 = relax.matmul %q, %k
  %1 = relax.add %0, %m
  %2 = relax.nn.softmax %1
  %y = relax.matmul %2, %v
  relax.return %y
}
relax.func @bias_of_any_size[%b, %c, %s, %t](%q: !relax.tensor<[b, 2, s, 4], f32>, %k: !relax.tensor<[b, 2, 4, t], f32>, %v: !relax.tensor<[b, 2, t, 4], f32>, %m: !relax.tensor<[c, 1, 1, 1], f32>) -> !relax.object {
  %0 = relax.matmul %q, %k
  %1 = relax.add %0, %m
  %2 = relax.nn.softmax %1
  %y = relax.matmul %2, %v
  relax.return %y
}
relax.func @other_batch[%b, %s, %t](%q: !relax.tensor<[b, 2, s, 4], f32>, %k: !relax.tensor<[1, 2, 4, t], f32>, %v: !relax.tensor<[b, 2, t, 4], f32>) -> !relax.tensor<[b, 2, s, 4], f32> {
  %0 = relax.matmul %q, %k
  %1 = relax.nn.softmax %0
  %y = relax.matmul %1, %v
  relax.return %y
}
relax.func @half[%s, %t](%q: !relax.tensor<[1, 2, s, 4], f16>, %k: !relax.tensor<[1, 2, 4, t], f16>, %v: !relax.tensor<[1, 2, t, 4], f16>) -> !relax.tensor<[1, 2, s, 4], f16> {
  %0 = relax.matmul %q, %k
  %1 = relax.nn.softmax %0
  %y = relax.matmul %1, %v
  relax.return %y
}
