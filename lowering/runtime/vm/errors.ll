; Errors. The format strings @vmrt_text_* are made from vm_dialect/messages.py when this file is compiled.

; Raises an error of the class `kind` with a message formatted as by printf.
define void @vmrt_raise(ptr %kind, ptr %format, ...) noinline cold {
entry:
  %list = alloca [32 x i8], align 16
  call void @llvm.va_start.p0(ptr %list)
  %length = call i32 @vsnprintf(ptr null, i64 0, ptr %format, ptr %list)
  call void @llvm.va_end.p0(ptr %list)
  %length64 = sext i32 %length to i64
  %bytes = add i64 %length64, 1
  %text = call ptr @malloc(i64 %bytes)
  %no.memory = icmp eq ptr %text, null
  br i1 %no.memory, label %plain, label %formatted

formatted:
  call void @llvm.va_start.p0(ptr %list)
  %written = call i32 @vsnprintf(ptr %text, i64 %bytes, ptr %format, ptr %list)
  call void @llvm.va_end.p0(ptr %list)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %text)
  call void @free(ptr %text)
  ret void

plain:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %format)
  ret void
}

define void @vmrt_fail_division() noinline cold {
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_division_by_zero)
  ret void
}

define void @vmrt_fail_overflow() noinline cold {
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_overflow)
  ret void
}

define void @vmrt_fail_memory(i64 %bytes) noinline cold {
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_memory_error, ptr @vmrt_text_negative_size, i64 %bytes)
  ret void
}

; `TypeError`: the value at `any` is of the wrong kind; `format` takes the subject and the kind's name.
define void @vmrt_fail_kind(ptr %any, ptr %format, ptr %subject) noinline cold {
  %name = call ptr @vmrt_kind_name(ptr %any)
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_type_error, ptr %format, ptr %subject, ptr %name)
  ret void
}

; The name of a value's kind, from the table @vmrt_kind_names.
define ptr @vmrt_kind_name(ptr %any) {
entry:
  %kind = load i32, ptr %any
  %is.known = icmp ult i32 %kind, 80
  br i1 %is.known, label %known, label %other

known:
  %index = zext i32 %kind to i64
  %at = getelementptr inbounds [80 x ptr], ptr @vmrt_kind_names, i64 0, i64 %index
  %name = load ptr, ptr %at
  ret ptr %name

other:
  ret ptr @vmrt_kind_object
}

; Appends a line to the backtrace of the raised error, for the function that it passes through; nothing if `line` is empty or
; the backtrace is long.
;
; An error object: TVMFFIObject, { ptr, i64 } kind, message and backtrace, ptr update.
define void @vmrt_trace(ptr %line) noinline cold {
entry:
  %raised = alloca ptr
  %text = alloca { ptr, i64 }
  %length = call i64 @strlen(ptr %line)
  %is.empty = icmp eq i64 %length, 0
  br i1 %is.empty, label %done, label %take

take:
  store ptr null, ptr %raised
  call void @TVMFFIErrorMoveFromRaised(ptr %raised)
  %error = load ptr, ptr %raised
  %is.none = icmp eq ptr %error, null
  br i1 %is.none, label %done, label %measure

measure:
  %size.at = getelementptr inbounds i8, ptr %error, i64 64
  %size = load i64, ptr %size.at
  %is.long = icmp ugt i64 %size, 4096
  br i1 %is.long, label %put.back, label %append

append:
  store ptr %line, ptr %text
  %length.at = getelementptr inbounds { ptr, i64 }, ptr %text, i64 0, i32 1
  store i64 %length, ptr %length.at
  %update.at = getelementptr inbounds i8, ptr %error, i64 72
  %update = load ptr, ptr %update.at
  call void %update(ptr %error, ptr %text, i32 1)
  br label %put.back

put.back:
  call void @TVMFFIErrorSetRaised(ptr %error)
  %status = call i32 @TVMFFIObjectDecRef(ptr %error)
  br label %done

done:
  ret void
}

; Raises an error if a function has failed without one: tvm-ffi has none for exceptions whose text is not UTF-8, and
; whoever looks for one would end the process.
define void @vmrt_require_error() noinline cold {
entry:
  %raised = alloca ptr
  store ptr null, ptr %raised
  call void @TVMFFIErrorMoveFromRaised(ptr %raised)
  %error = load ptr, ptr %raised
  %is.none = icmp eq ptr %error, null
  br i1 %is.none, label %raise, label %put.back

raise:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @vmrt_runtime_error, ptr @vmrt_no_text)
  ret void

put.back:
  call void @TVMFFIErrorSetRaised(ptr %error)
  %status = call i32 @TVMFFIObjectDecRef(ptr %error)
  ret void
}
