; Whether the processor has what the code of a shared library needs, and which variant of the code it runs. The entries of
; the library ask for it before any other code of the library runs; this file and theirs are code for every processor of
; the architecture.

; { i32 register, i32 bits, i32 state, ptr name }: an extension is there if all `bits` of the register are set, and all
; bits of `state` in the last register, which says what the operating system saves.
%feature = type { i32, i32, i32, ptr }

; The first variant of which the processor has all features, counted from 0; -1 if there is none. The message then names
; what it lacks for the last one.
@relax_choice = internal global i8 -1

declare ptr @strcat(ptr, ptr)
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)

@runtime_error = private constant [13 x i8] c"RuntimeError\00"
@comma = private constant [3 x i8] c", \00"

; The linker calls it when the library is opened. A constructor of LLVM would be in `.ctors`, which LLD ignores.
@relax_at_open = internal global ptr @relax_choose, section ".init_array"
@llvm.used = appending global [1 x ptr] [ptr @relax_at_open], section "llvm.metadata"

; The features of a variant are those of the table from its first to its last.
define internal void @relax_choose() {
entry:
  %registers = alloca [16 x i32], align 16
  call void @relax_read_processor(ptr %registers)
  br label %head

head:
  %variant = phi i64 [ 0, %entry ], [ %following, %step ]
  %more = icmp ult i64 %variant, VARIANT_COUNT
  br i1 %more, label %look, label %none

look:
  %begin.at = getelementptr inbounds [VARIANT_COUNT x { i64, i64 }], ptr @relax_variants, i64 0, i64 %variant, i32 0
  %end.at = getelementptr inbounds [VARIANT_COUNT x { i64, i64 }], ptr @relax_variants, i64 0, i64 %variant, i32 1
  %begin = load i64, ptr %begin.at
  %end = load i64, ptr %end.at
  %following = add nuw i64 %variant, 1
  %is.last = icmp eq i64 %following, VARIANT_COUNT
  %lacking = call i1 @relax_lacks(ptr %registers, i64 %begin, i64 %end, i1 %is.last)
  br i1 %lacking, label %step, label %choose

step:
  br label %head

choose:
  %choice = trunc i64 %variant to i8
  store i8 %choice, ptr @relax_choice
  ret void

none:
  %finished = call ptr @strcat(ptr @relax_message, ptr @relax_advice)
  ret void
}

; Whether the processor lacks one of the features, whose names are appended to the message if they are asked for.
define internal i1 @relax_lacks(ptr %registers, i64 %begin, i64 %end, i1 %is.named) {
entry:
  %state.at = getelementptr inbounds [16 x i32], ptr %registers, i64 0, i64 15
  %saved = load i32, ptr %state.at
  br label %head

head:
  %i = phi i64 [ %begin, %entry ], [ %next, %step ]
  %lacks = phi i1 [ false, %entry ], [ %now.lacks, %step ]
  %more = icmp ult i64 %i, %end
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
  br i1 %is.named, label %separate, label %step

separate:
  %separator = select i1 %lacks, ptr @comma, ptr @relax_nothing
  %separated = call ptr @strcat(ptr @relax_message, ptr %separator)
  %name = load ptr, ptr %name.at
  %appended = call ptr @strcat(ptr @relax_message, ptr %name)
  br label %step

step:
  %now.lacks = phi i1 [ %lacks, %look ], [ true, %lacking ], [ true, %separate ]
  %next = add nuw i64 %i, 1
  br label %head

done:
  ret i1 %lacks
}

@relax_nothing = private constant [1 x i8] zeroinitializer

define internal i32 @relax_refuse() noinline cold {
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @runtime_error, ptr @relax_message)
  ret i32 -1
}

; For those who open the library: why it cannot run on this processor, or null.
define ptr @relax_library_refusal() {
  %choice = load i8, ptr @relax_choice
  %is.refused = icmp slt i8 %choice, 0
  %message = select i1 %is.refused, ptr @relax_message, ptr null
  ret ptr %message
}
