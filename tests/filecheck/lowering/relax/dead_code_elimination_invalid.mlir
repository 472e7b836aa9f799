// RUN: relax-opt %s -p "dead-code-elimination{entry=start}" --verify-diagnostics --split-input-file | filecheck %s

// CHECK: 'builtin.module' op expected the entry @start among the functions, got @main
relax.func @main(%x: !relax.object) -> !relax.object {
  relax.return %x
}
