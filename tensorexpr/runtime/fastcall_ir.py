"""The native code of fastcall.py. Words of a record: kind (0 array, 1 integer, 2 float), then

array:    the dtype object, dimensions, needed flags, alignment - 1, word at which the extents start, bytes per element, written
integer:  smallest, largest, slot or -1

Locals live in allocas; LLVM puts them into registers.
"""

HEADER_WORDS = 8
RECORD_WORDS = 8

# Slots start as -1 (bytes of 0xff): no extent is negative, so that means undefined. Whatever isn't plain is refused,
# and Python takes the call again from the start, with its messages.
FASTCALL_IR = """
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_FromLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define internal i64 @word(ptr %base, i64 %index) alwaysinline {{
  %place = getelementptr i64, ptr %base, i64 %index
  %value = load i64, ptr %place
  ret i64 %value
}}

define internal i64 @type_of(ptr %object) alwaysinline {{
  %place = getelementptr i8, ptr %object, i64 {type}
  %value = load i64, ptr %place
  ret i64 %value
}}

; Whether slot agrees with the value, which defines it if it is still -1. Values that int32 can't hold are left to Python.
define internal i1 @bind(ptr %slots, i64 %slot, i64 %value) alwaysinline {{
  %place = getelementptr i64, ptr %slots, i64 %slot
  %old = load i64, ptr %place
  %unset = icmp eq i64 %old, -1
  %new = select i1 %unset, i64 %value, i64 %old
  store i64 %new, ptr %place
  %agrees = icmp eq i64 %new, %value
  %small = icmp ule i64 %value, 2147483647
  %fits = and i1 %agrees, %small
  ret i1 %fits
}}

define internal i1 @take_integer(ptr %record, ptr %object, ptr %word, ptr %slots, i64 %int_type) {{
entry:
  %overflow = alloca i32
  %type = call i64 @type_of(ptr %object)
  %is_int = icmp eq i64 %type, %int_type
  br i1 %is_int, label %convert, label %refuse
convert:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %excess = load i32, ptr %overflow
  %whole = icmp eq i32 %excess, 0
  %low = call i64 @word(ptr %record, i64 1)
  %high = call i64 @word(ptr %record, i64 2)
  %above = icmp sge i64 %value, %low
  %below = icmp sle i64 %value, %high
  %inside = and i1 %above, %below
  %good = and i1 %inside, %whole
  store i64 %value, ptr %word
  %slot = call i64 @word(ptr %record, i64 3)
  %has_slot = icmp sge i64 %slot, 0
  br i1 %has_slot, label %define, label %done
define:
  %bound = call i1 @bind(ptr %slots, i64 %slot, i64 %value)
  %both = and i1 %bound, %good
  ret i1 %both
done:
  ret i1 %good
refuse:
  ret i1 false
}}

define internal i1 @take_float(ptr %object, ptr %word, i64 %float_type) {{
entry:
  %type = call i64 @type_of(ptr %object)
  %is_float = icmp eq i64 %type, %float_type
  br i1 %is_float, label %convert, label %refuse
convert:
  %value = call double @PyFloat_AsDouble(ptr %object)
  store double %value, ptr %word
  ret i1 true
refuse:
  ret i1 false
}}

define internal i1 @take_array(ptr %table, ptr %record, ptr %object, ptr %word, ptr %end, ptr %slots) {{
entry:
  %array_type = call i64 @word(ptr %table, i64 3)
  %own_type = call i64 @word(ptr %table, i64 4)
  %type = call i64 @type_of(ptr %object)
  %is_array = icmp eq i64 %type, %array_type
  br i1 %is_array, label %check, label %try_own
try_own:
  %is_own = icmp eq i64 %type, %own_type
  br i1 %is_own, label %unwrap, label %refuse
unwrap:
  %inner_place = getelementptr i8, ptr %object, i64 {inner}
  %inner = load ptr, ptr %inner_place
  %is_null = icmp eq ptr %inner, null
  br i1 %is_null, label %refuse, label %check_inner
check_inner:
  %inner_type = call i64 @type_of(ptr %inner)
  %inner_is_array = icmp eq i64 %inner_type, %array_type
  br i1 %inner_is_array, label %check, label %refuse
check:
  %array = phi ptr [ %object, %entry ], [ %inner, %check_inner ]
  %dtype_place = getelementptr i8, ptr %array, i64 {dtype}
  %dtype = load i64, ptr %dtype_place
  %dtype_needed = call i64 @word(ptr %record, i64 1)
  %dtype_good = icmp eq i64 %dtype, %dtype_needed
  %ndim_place = getelementptr i8, ptr %array, i64 {ndim}
  %ndim_int = load i32, ptr %ndim_place
  %ndim = zext i32 %ndim_int to i64
  %ndim_needed = call i64 @word(ptr %record, i64 2)
  %ndim_good = icmp eq i64 %ndim, %ndim_needed
  %flags_place = getelementptr i8, ptr %array, i64 {flags}
  %flags_int = load i32, ptr %flags_place
  %flags = zext i32 %flags_int to i64
  %flags_needed = call i64 @word(ptr %record, i64 3)
  %flags_found = and i64 %flags, %flags_needed
  %flags_good = icmp eq i64 %flags_found, %flags_needed
  %data_place = getelementptr i8, ptr %array, i64 {data}
  %data = load i64, ptr %data_place
  %mask = call i64 @word(ptr %record, i64 4)
  %misaligned = and i64 %data, %mask
  %aligned = icmp eq i64 %misaligned, 0
  store i64 %data, ptr %word
  %good_0 = and i1 %dtype_good, %ndim_good
  %good_1 = and i1 %flags_good, %aligned
  %good = and i1 %good_0, %good_1
  br i1 %good, label %start, label %refuse
start:
  %shape_place = getelementptr i8, ptr %array, i64 {shape}
  %shape = load ptr, ptr %shape_place
  %first = call i64 @word(ptr %record, i64 5)
  %rules = getelementptr i64, ptr %table, i64 %first
  %itemsize = call i64 @word(ptr %record, i64 6)
  br label %next
next:
  %axis = phi i64 [ 0, %start ], [ %axis_after, %fits ]
  %size = phi i64 [ %itemsize, %start ], [ %size_after, %fits ]
  %more = icmp slt i64 %axis, %ndim
  br i1 %more, label %extent, label %done
extent:
  %actual = call i64 @word(ptr %shape, i64 %axis)
  %rule = call i64 @word(ptr %rules, i64 %axis)
  %is_constant = icmp sge i64 %rule, 0
  br i1 %is_constant, label %compare, label %symbolic
compare:
  %equal = icmp eq i64 %actual, %rule
  br i1 %equal, label %fits, label %refuse
symbolic:
  %slot = sub i64 -1, %rule
  %bound = call i1 @bind(ptr %slots, i64 %slot, i64 %actual)
  br i1 %bound, label %fits, label %refuse
fits:
  %size_after = mul i64 %size, %actual
  %axis_after = add i64 %axis, 1
  br label %next
done:
  %last = add i64 %data, %size
  store i64 %last, ptr %end
  ret i1 true
refuse:
  ret i1 false
}}

; Whether no written array shares memory with another array.
define internal i1 @disjoint(ptr %table, ptr %block, ptr %ends, i64 %count) {{
entry:
  %records = getelementptr i64, ptr %table, i64 {header}
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i_after, %outer_next ]
  %outer_more = icmp slt i64 %i, %count
  br i1 %outer_more, label %inspect, label %yes
inspect:
  %i_offset = mul i64 %i, {record}
  %i_record = getelementptr i64, ptr %records, i64 %i_offset
  %written = call i64 @word(ptr %i_record, i64 7)
  %is_written = icmp ne i64 %written, 0
  br i1 %is_written, label %inner, label %outer_next
inner:
  %j = phi i64 [ 0, %inspect ], [ %j_after, %inner_next ]
  %inner_more = icmp slt i64 %j, %count
  br i1 %inner_more, label %pair, label %outer_next
pair:
  %j_offset = mul i64 %j, {record}
  %j_record = getelementptr i64, ptr %records, i64 %j_offset
  %j_kind = call i64 @word(ptr %j_record, i64 0)
  %j_array = icmp eq i64 %j_kind, 0
  %other = icmp ne i64 %i, %j
  %relevant = and i1 %j_array, %other
  br i1 %relevant, label %ranges, label %inner_next
ranges:
  %i_begin = call i64 @word(ptr %block, i64 %i)
  %i_end = call i64 @word(ptr %ends, i64 %i)
  %j_begin = call i64 @word(ptr %block, i64 %j)
  %j_end = call i64 @word(ptr %ends, i64 %j)
  %starts_before = icmp ult i64 %i_begin, %j_end
  %ends_after = icmp ult i64 %j_begin, %i_end
  %overlap = and i1 %starts_before, %ends_after
  br i1 %overlap, label %no, label %inner_next
inner_next:
  %j_after = add i64 %j, 1
  br label %inner
outer_next:
  %i_after = add i64 %i, 1
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
}}

define ptr @fastcall(ptr %self, ptr %arguments, i64 %given) {{
entry:
  %table = call ptr @PyLong_AsVoidPtr(ptr %self)
  %count = call i64 @word(ptr %table, i64 1)
  %words = call i64 @word(ptr %table, i64 2)
  %counted = icmp eq i64 %given, %count
  br i1 %counted, label %prepare, label %refuse
prepare:
  %block = alloca i64, i64 %words, align 16
  %ends = alloca i64, i64 %count, align 16
  %slots = getelementptr i64, ptr %block, i64 %count
  %slot_bytes_words = sub i64 %words, %count
  %slot_bytes = mul i64 %slot_bytes_words, 8
  call void @llvm.memset.p0.i64(ptr %slots, i8 -1, i64 %slot_bytes, i1 false)
  %int_type = call i64 @word(ptr %table, i64 5)
  %float_type = call i64 @word(ptr %table, i64 6)
  %records = getelementptr i64, ptr %table, i64 {header}
  br label %next
next:
  %i = phi i64 [ 0, %prepare ], [ %i_after, %taken ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %argument, label %compare
argument:
  %object_place = getelementptr ptr, ptr %arguments, i64 %i
  %object = load ptr, ptr %object_place
  %offset = mul i64 %i, {record}
  %record = getelementptr i64, ptr %records, i64 %offset
  %word = getelementptr i64, ptr %block, i64 %i
  %end = getelementptr i64, ptr %ends, i64 %i
  %kind = call i64 @word(ptr %record, i64 0)
  switch i64 %kind, label %refuse [ i64 0, label %array i64 1, label %integer i64 2, label %float ]
array:
  %took_array = call i1 @take_array(ptr %table, ptr %record, ptr %object, ptr %word, ptr %end, ptr %slots)
  br i1 %took_array, label %taken, label %refuse
integer:
  %took_integer = call i1 @take_integer(ptr %record, ptr %object, ptr %word, ptr %slots, i64 %int_type)
  br i1 %took_integer, label %taken, label %refuse
float:
  %took_float = call i1 @take_float(ptr %object, ptr %word, i64 %float_type)
  br i1 %took_float, label %taken, label %refuse
taken:
  %i_after = add i64 %i, 1
  br label %next
compare:
  %apart = call i1 @disjoint(ptr %table, ptr %block, ptr %ends, i64 %count)
  br i1 %apart, label %run, label %refuse
run:
  %entry_word = call i64 @word(ptr %table, i64 0)
  %function = inttoptr i64 %entry_word to ptr
  %thread = call ptr @PyEval_SaveThread()
  %code = call i32 %function(ptr %block)
  call void @PyEval_RestoreThread(ptr %thread)
  %wide = sext i32 %code to i64
  %result = call ptr @PyLong_FromLong(i64 %wide)
  ret ptr %result
refuse:
  %refused = call ptr @PyLong_FromLong(i64 {refused})
  ret ptr %refused
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
