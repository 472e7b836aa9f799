// RUN: RELAX_INVALID

// CHECK: 'relax.fused' op holds 'relax.call_packed', which is impure: it calls the packed function "show", which may have any effect
relax.func @fused_c1(%x: !relax.object) -> !relax.object impure {
  %y = relax.fused {
    relax.call_packed "show"(%x)
    relax.yield %x
  }
  relax.return %y
}

// -----

// CHECK: 'relax.fused' op holds 'relax.fused', which has regions
relax.func @fused_c1(%x: !relax.object) -> !relax.object {
  %y = relax.fused {
    %z = relax.fused {
      relax.yield %x
    }
    relax.yield %z
  }
  relax.return %y
}

// -----

// CHECK: 'relax.fused' op expected results (!relax.tensor<[2], f32>) as it yields, got (!relax.tensor<[3], f32>)
relax.func @fused_c2(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %y = "relax.fused"() ({
    relax.yield %x
  }) : () -> !relax.tensor<[3], f32>
  relax.return %y
}

// -----

// CHECK: expected one block that ends in 'relax.yield'
relax.func @no_yield(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %y = relax.fused {
    %0 = relax.exp %x
  }
  relax.return %y
}
