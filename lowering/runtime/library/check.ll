; Whether the processor has what the code of a shared library needs. The entries of the library ask for it before any
; other code of the library runs; this file and theirs are code for every processor of the architecture.

; { i32 register, i32 bits, i32 state, ptr name }: an extension is there if all `bits` of the register are set, and all
; bits of `state` in the last register, which says what the operating system saves.
%feature = type { i32, i32, i32, ptr }

; 1 if the processor lacks something. The message then names it.
@relax_refused = internal global i8 0

declare ptr @strcat(ptr, ptr)
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)

@runtime_error = private constant [13 x i8] c"RuntimeError\00"
@comma = private constant [3 x i8] c", \00"

; The linker calls it when the library is opened.
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @relax_check_processor, ptr null }]

define internal void @relax_check_processor() {
entry:
  %registers = alloca [16 x i32], align 16
  call void @relax_read_processor(ptr %registers)
  %state.at = getelementptr inbounds [16 x i32], ptr %registers, i64 0, i64 15
  %saved = load i32, ptr %state.at
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %i, FEATURE_COUNT
  br i1 %more, label %look, label %done

look:
  %register.at = getelementptr inbounds [FEATURE_COUNT x %feature], ptr @relax_features, i64 0, i64 %i, i32 0
  %bits.at = getelementptr inbounds [FEATURE_COUNT x %feature], ptr @relax_features, i64 0, i64 %i, i32 1
  %needed.at = getelementptr inbounds [FEATURE_COUNT x %feature], ptr @relax_features, i64 0, i64 %i, i32 2
  %name.at = getelementptr inbounds [FEATURE_COUNT x %feature], ptr @relax_features, i64 0, i64 %i, i32 3
  %register = load i32, ptr %register.at
  %value.at = getelementptr inbounds [16 x i32], ptr %registers, i64 0, i32 %register
  %value = load i32, ptr %value.at
  %bits = load i32, ptr %bits.at
  %set = and i32 %value, %bits
  %is.there = icmp eq i32 %set, %bits
  %needed = load i32, ptr %needed.at
  %kept = and i32 %saved, %needed
  %is.saved = icmp eq i32 %kept, %needed
  %is.usable = and i1 %is.there, %is.saved
  br i1 %is.usable, label %step, label %lacking

lacking:
  %refused = load i8, ptr @relax_refused
  %is.first = icmp eq i8 %refused, 0
  store i8 1, ptr @relax_refused
  br i1 %is.first, label %append, label %separate

separate:
  %separated = call ptr @strcat(ptr @relax_message, ptr @comma)
  br label %append

append:
  %name = load ptr, ptr %name.at
  %appended = call ptr @strcat(ptr @relax_message, ptr %name)
  br label %step

step:
  %next = add nuw i64 %i, 1
  br label %head

done:
  %finished = call ptr @strcat(ptr @relax_message, ptr @relax_advice)
  ret void
}

define internal i32 @relax_refuse() noinline cold {
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @runtime_error, ptr @relax_message)
  ret i32 -1
}
