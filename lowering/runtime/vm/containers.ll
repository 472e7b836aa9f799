; Shapes and tuples.

; Puts a shape of the `count` sizes at `sizes` into the slot `to`.
define i32 @vmrt_make_shape(ptr %to, ptr %sizes, i64 %count) {
entry:
  %args = alloca %any, i64 %count
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done

body:
  %size.at = getelementptr inbounds i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %arg = getelementptr inbounds %any, ptr %args, i64 %i
  store i64 1, ptr %arg
  %payload = getelementptr inbounds %any, ptr %arg, i64 0, i32 2
  store i64 %size, ptr %payload
  %next = add nuw i64 %i, 1
  br label %head

done:
  %count32 = trunc i64 %count to i32
  %status = call i32 @vmrt_call(ptr %to, ptr @vmrt_shape_function, ptr %args, i32 %count32)
  ret i32 %status
}

; Puts the shape of a tensor into the slot `to`.
define i32 @vmrt_shape_of(ptr %to, ptr %any) {
  %tensor = call ptr @vmrt_dltensor(ptr %any)
  %rank.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 2
  %rank32 = load i32, ptr %rank.at
  %rank = sext i32 %rank32 to i64
  %shape.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %status = call i32 @vmrt_make_shape(ptr %to, ptr %shape, i64 %rank)
  ret i32 %status
}

; Writes the size of a tensor along `axis`, which its type does not tell to exist, to `out`.
define i32 @vmrt_tensor_dim(ptr %out, ptr %any, i64 %axis) {
  %tensor = call ptr @vmrt_dltensor(ptr %any)
  %rank.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 2
  %rank32 = load i32, ptr %rank.at
  %rank = sext i32 %rank32 to i64
  %shape.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %status = call i32 @vmrt_pick(ptr %out, ptr %shape, i64 %rank, i64 %axis)
  ret i32 %status
}

; Writes the size of a shape along `axis`, which its type does not tell to exist, to `out`.
define i32 @vmrt_shape_dim(ptr %out, ptr %any, i64 %axis) {
  %payload.at = getelementptr inbounds %any, ptr %any, i64 0, i32 2
  %shape = load ptr, ptr %payload.at
  %data.at = getelementptr inbounds i8, ptr %shape, i64 24
  %data = load ptr, ptr %data.at
  %size.at = getelementptr inbounds i8, ptr %shape, i64 32
  %size = load i64, ptr %size.at
  %status = call i32 @vmrt_pick(ptr %out, ptr %data, i64 %size, i64 %axis)
  ret i32 %status
}

; Writes the element `index` of a vector of i64 to `out` if there is one.
define i32 @vmrt_read_int(ptr %out, ptr %any, i64 %index) {
entry:
  %tensor = call ptr @vmrt_dltensor(ptr %any)
  %data = load ptr, ptr %tensor
  %offset.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 6
  %offset = load i64, ptr %offset.at
  %elements = getelementptr inbounds i8, ptr %data, i64 %offset
  %shape.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %count = load i64, ptr %shape
  %exists = icmp ult i64 %index, %count
  br i1 %exists, label %copy, label %fail

copy:
  %at = getelementptr inbounds i64, ptr %elements, i64 %index
  %element = load i64, ptr %at
  store i64 %element, ptr %out
  ret i32 0

fail:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_no_such_element, i64 %index, i64 %count)
  ret i32 -1
}

; Writes `sizes[axis]` to `out` if there is one.
define i32 @vmrt_pick(ptr %out, ptr %sizes, i64 %count, i64 %axis) {
entry:
  %exists = icmp slt i64 %axis, %count
  br i1 %exists, label %copy, label %fail

copy:
  %at = getelementptr inbounds i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %at
  store i64 %size, ptr %out
  ret i32 0

fail:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_no_such_axis, i64 %axis, i64 %count)
  ret i32 -1
}

; Puts a tuple of the `count` borrowed values at `fields` into the slot `to`.
define i32 @vmrt_make_tuple(ptr %to, ptr %fields, i32 %count) {
  %status = call i32 @vmrt_call(ptr %to, ptr @vmrt_array_function, ptr %fields, i32 %count)
  ret i32 %status
}

; Puts the field `index` of a tuple into the slot `to`.
define i32 @vmrt_tuple_get(ptr %to, ptr %tuple, i64 %index) {
entry:
  %kind = load i32, ptr %tuple
  %kind.ok = icmp eq i32 %kind, 71
  br i1 %kind.ok, label %check, label %fail.kind

check:
  %payload.at = getelementptr inbounds %any, ptr %tuple, i64 0, i32 2
  %array = load ptr, ptr %payload.at
  %size.at = getelementptr inbounds i8, ptr %array, i64 32
  %size = load i64, ptr %size.at
  %exists = icmp slt i64 %index, %size
  br i1 %exists, label %copy, label %fail.index

copy:
  %data.at = getelementptr inbounds i8, ptr %array, i64 24
  %data = load ptr, ptr %data.at
  %field = getelementptr inbounds %any, ptr %data, i64 %index
  %status = call i32 @vmrt_assign(ptr %to, ptr %field)
  ret i32 %status

fail.kind:
  call void @vmrt_fail_kind(ptr %tuple, ptr @vmrt_text_not_tuple, ptr @vmrt_tuple_get_subject)
  ret i32 -1

fail.index:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_no_such_field, i64 %index, i64 %size)
  ret i32 -1
}

; The value is a tuple of `count` fields; `format` takes the number of fields that it has.
define i32 @vmrt_check_tuple(ptr %any, i64 %count, ptr %format, ptr %subject) {
entry:
  %kind = load i32, ptr %any
  %kind.ok = icmp eq i32 %kind, 71
  br i1 %kind.ok, label %check, label %fail.kind

check:
  %payload.at = getelementptr inbounds %any, ptr %any, i64 0, i32 2
  %array = load ptr, ptr %payload.at
  %size.at = getelementptr inbounds i8, ptr %array, i64 32
  %size = load i64, ptr %size.at
  %same = icmp eq i64 %size, %count
  br i1 %same, label %done, label %fail.size

done:
  ret i32 0

fail.kind:
  call void @vmrt_fail_kind(ptr %any, ptr @vmrt_text_not_tuple, ptr %subject)
  ret i32 -1

fail.size:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_type_error, ptr %format, i64 %size)
  ret i32 -1
}
