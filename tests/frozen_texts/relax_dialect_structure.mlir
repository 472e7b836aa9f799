builtin.module {
  relax.func @signature[%n in [1, 2048], %k in [2, _], %m](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[n, k], f32> {
    relax.return %x
  }
  relax.func private @sig_attributes(%x: !relax.object) -> !relax.object impure attributes {note = "text"} {
    relax.return %x
  }
  relax.func @sig_force_pure(%x: !relax.object) -> !relax.object force_pure {
    relax.call_packed "trace"(%x)
    relax.return %x
  }
  relax.func @sig_renamed[%a as n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    relax.return %x
  }
  relax.func @signature_linear[%n, %m](%x: !relax.tensor<[2 * n + 1], f32>, %m_1: !relax.prim<i64, m>) -> !relax.tensor<[_], f32> {
    relax.return %x
  }
  relax.func @closures[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %f = relax.closure [%m](%y: !relax.tensor<[m, n], f32>) -> !relax.tensor<[m, n], f32> {
      %0 = relax.add %y, %x
      relax.return %0
    }
    relax.return %f
  }
  relax.func @recursive_closure(%x: !relax.object) -> !relax.object {
    %f = relax.closure rec %self (%y: !relax.object) -> !relax.object {
      %0 = relax.call_closure %self(%y)
      relax.return %0
    }
    relax.return %f
  }
  relax.func @no_result_type[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[_], f32>, !relax.tensor<[n], f32>> {
    %0, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      %1 = relax.add %y, %x
      relax.return %1
    }
    %2 = relax.call_closure %f(%x)
    %3 = relax.tuple(%0, %2)
    relax.return %3
  }
  relax.func @names_as_written(%token: !relax.object, %token_1: !relax.object, %0: !relax.object) -> !relax.object attributes {arg_names = ["token_1", "token_0", "arg2"]} {
    relax.return %token_1
  }
  relax.func @names_of_a_model(%a: !relax.object, %a_1: !relax.object) -> !relax.tuple<!relax.object> attributes {arg_names = ["a:0", "\C3\BC"], result_names = ["out:0"]} {
    %0 = relax.tuple(%a)
    relax.return %0
  }
  relax.func @names_that_text_has(%x.2: !relax.object, %x.1: !relax.object, %x.1_1: !relax.object) -> !relax.object {
    relax.return %x.2
  }
}
