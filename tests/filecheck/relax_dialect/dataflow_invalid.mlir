// RUN: RELAX_INVALID

// CHECK: 'relax.dataflow' op holds 'relax.call_packed', which is impure: it calls the packed function "custom_inplace_update", which may have any effect
relax.func @dataflow_c1(%x: !relax.object) -> !relax.object impure {
  %gv = relax.dataflow {
    relax.call_packed "custom_inplace_update"(%x)
    relax.output %x
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds 'relax.assert', which is impure: it may end the program with an error
relax.func @dataflow_c1(%c: !relax.prim<i1>) -> !relax.object impure {
  %gv = relax.dataflow {
    relax.assert %c, "wrong"()
    relax.output %c
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds 'relax.call', which is impure: it calls @impure, which is impure
relax.func private @impure(%x: !relax.object) -> !relax.object impure {
  relax.print "{}"(%x)
  relax.return %x
}
relax.func @dataflow_c1(%x: !relax.object) -> !relax.object impure {
  %gv = relax.dataflow {
    %0 = relax.call @impure(%x) impure : !relax.object
    relax.output %0
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds 'relax.call_closure', which is impure: it calls an impure function value
relax.func @dataflow_c1(%f: !relax.func<* -> !relax.object, impure>) -> !relax.object impure {
  %gv = relax.dataflow {
    %0 = relax.call_closure %f()
    relax.output %0
  }
  relax.return %gv
}

// -----

// The caller would see its argument change.
// CHECK: 'relax.dataflow' op holds 'relax.call_tir_inplace', which is impure: it writes its argument #0, a parameter, which the caller can see; put it outside
tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>) {
}
relax.func @dataflow_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %gv = relax.dataflow {
    %0 = relax.call_tir_inplace @exp(%x) inplace [0] : !relax.tensor<[n], f32>
    relax.output %0
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds 'relax.call_tir_inplace', which is impure: it writes its argument #0, which is used elsewhere
tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>) {
}
relax.func @dataflow_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
  %gv = relax.dataflow {
    %0 = relax.exp %x
    %1 = relax.call_tir_inplace @exp(%0) inplace [0] : !relax.tensor<[n], f32>
    %2 = relax.add %0, %1
    relax.output %2
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds 'relax.if', which is control flow
relax.func @dataflow_c2(%c: !relax.prim<i1>) -> !relax.object {
  %gv = relax.dataflow {
    %0 = relax.if %c {
      relax.yield %c
    } else {
      relax.yield %c
    }
    relax.output %0
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds another 'relax.dataflow'
relax.func @dataflow_c2(%x: !relax.object) -> !relax.object {
  %gv = relax.dataflow {
    %0 = relax.dataflow {
      relax.output %x
    }
    relax.output %0
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op holds a closure that captures a value of the region
relax.func @dataflow_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %gv = relax.dataflow {
    %lv = relax.exp %x
    %f = relax.closure (%y: !relax.object) -> !relax.object {
      relax.return %lv
    }
    relax.output %f
  }
  relax.return %gv
}

// -----

// CHECK: 'relax.dataflow' op expected results (!relax.tensor<[4], f32>) as its output names, got (!relax.tensor<[5], f32>)
relax.func @dataflow_c4(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %gv = "relax.dataflow"() ({
    "relax.output"(%x) : (!relax.tensor<[4], f32>) -> ()
  }) : () -> !relax.tensor<[5], f32>
  relax.return %gv
}

// -----

// CHECK: the region has to end with 'relax.output': add `relax.output %value` before the brace
relax.func @dataflow(%x: !relax.object) -> !relax.object {
  %gv = relax.dataflow {
    %0 = relax.tuple(%x)
  }
  relax.return %x
}

// -----

// CHECK: 'relax.output' expects parent op 'relax.dataflow'
relax.func @output(%x: !relax.object) -> !relax.object {
  relax.output %x
}

// -----

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

// CHECK: the region has to end with 'relax.yield': add `relax.yield %value` before the brace
relax.func @no_yield(%x: !relax.tensor<[2], f32>) -> !relax.object {
  %y = relax.fused {
    %0 = relax.exp %x
  }
  relax.return %y
}
