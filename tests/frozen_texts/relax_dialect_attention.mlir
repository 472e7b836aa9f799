builtin.module {
  relax.func @attention[%b, %s, %t](%q: !relax.tensor<[b, s, 8, 64], f32>, %k: !relax.tensor<[b, t, 8, 64], f32>, %v: !relax.tensor<[b, t, 8, 32], f32>, %g: !relax.tensor<[b, t, 2, 64], f32>, %m: !relax.tensor<[s, t], f32>, %c: !relax.tensor<[t], i1>, %h: !relax.tensor<[b, 8, s, 64], f32>, %x: !relax.tensor<[b, 8, 16, s], f32>, %z: !relax.tensor<[8], f32>) -> !relax.object {
    %0 = relax.nn.attention %q, %k, %v
    %1 = relax.nn.attention %q, %k, %v scale = 0.125 causal_mask = "TopLeft"
    %2 = relax.nn.attention %q, %g, %g causal_mask = "BottomRight" window_size = 16
    %3 = relax.nn.attention_bias %q, %k, %v, %m
    %4 = relax.nn.attention_bias %q, %k, %v, %c masked_score = -1000.0
    %5 = relax.nn.attention %h, %h, %x q_layout = "BHSD" k_layout = "BHSD" v_layout = "BHDS" out_layout = "SBHD"
    %6 = relax.nn.attention %q, %k, %v, %z softcap = 30.0
    %7 = relax.nn.attention_bias %q, %k, %v, %m, %z
    relax.return %q
  }
}
