// RUN: RELAX_INVALID

// CHECK: 'tir.for' op expected one region argument of type index
tir.prim_func @for_c1[%n]() {
  "tir.for"(%n) <{kind = #tir<loop_kind serial>}> ({
  ^bb0(%i: i64):
  }) : (index) -> ()
}

// -----

// CHECK: 'tir.for' op of kind thread_binding expected a tag
tir.prim_func @for_c2[%n]() {
  "tir.for"(%n) <{kind = #tir<loop_kind thread_binding>}> ({
  ^bb0(%i: index):
  }) : (index) -> ()
}

// -----

// CHECK: 'tir.for' op of kind serial expected no tag
tir.prim_func @for_c2[%n]() {
  "tir.for"(%n) <{kind = #tir<loop_kind serial>, thread_tag = "threadIdx.x"}> ({
  ^bb0(%i: index):
  }) : (index) -> ()
}

// -----

// CHECK: 'tir.for' expected one bound for each of at least one variable, got 2 variables and 1 bounds
tir.prim_func @f[%n]() {
  tir.for (%i, %j) in (%n) {
  }
}

// -----

// CHECK: value %m is not defined
tir.prim_func @f[%n]() {
  tir.for (%i) in (%m) {
  }
}
