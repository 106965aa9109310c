"""The twin of ``model.sql92.selector``: judges records by an SQL92 expression, without an object for each.

The selector is asked where text is not ASCII, where a decimal number is not written plainly, and about records with
IPv6 hosts. The order of evaluation is the selector's: a failure counts only where the selector would have met it.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport signbit
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp

from cometmq.native.big_endian cimport get16, get32

cdef extern from "string.h":
    void* memmem(const void*, size_t, const void*, size_t) noexcept nogil

TYPES = {None: 0, "boolean": 1, "32-bit integer": 2, "64-bit integer": 3, "decimal number": 4, "string": 5}
OPS = {"<": LT, "<=": LE, ">": GT, ">=": GE, "CONTAINS": CONTAINS, "STARTSWITH": STARTS, "ENDSWITH": ENDS}
cdef double[16] POWERS = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15]


cdef class Program:
    """A selector's expression as an array of parts.

    Args:
        tree: of the expression, accepted by a selector.
        reference: judges a whole record as the selector does.
        text_reference: judges the text of its properties.
    """

    def __cinit__(self, tree, reference, text_reference):
        self.reference, self.text_reference = reference, text_reference
        self._compiled, self._kept, self._operands = [], [], []
        self._root = self._condition(tree)
        self._parts = <Part*>malloc(len(self._compiled) * sizeof(Part))
        self._lists = <int*>malloc(max(len(self._operands), 1) * sizeof(int))
        if self._parts is NULL or self._lists is NULL:
            raise MemoryError
        for number, operand in enumerate(self._operands):
            self._lists[number] = operand
        for number, (op, left, right, value, compare, reads, negated) in enumerate(self._compiled):
            self._set(&self._parts[number], op, left, right, value, compare, reads, negated)
        self._compiled = self._operands = None

    def __dealloc__(self):
        free(self._parts)
        free(self._lists)

    cdef _set(self, Part* part, op, left, right, value, compare, reads, negated):
        part.op, part.left, part.right = op, left, right
        part.compare, part.reads, part.negated = compare, reads, negated
        part.value.kind = NOTHING
        if isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            self._kept.append(text)
            part.value.kind, part.value.text, part.value.length = TEXT, <bytes_at>PyBytes_AS_STRING(text), len(text)
        elif isinstance(value, float):
            part.value.kind, part.value.decimal = DECIMAL, value
        elif value is not None:
            part.value.kind, part.value.whole = TRUTH if isinstance(value, bool) else WHOLE, value

    def _add(self, op, left=0, right=0, value=None, compare=PLAIN, reads=0, negated=False):
        self._compiled.append((op, left, right, value, compare, reads, negated))
        return len(self._compiled) - 1

    def _condition(self, node):
        if type(node).__name__ == "Property":
            return self._add(IS_SET, value=node.name)
        return self._compile(node)[0]

    def _list(self, numbers):
        self._operands += numbers
        return len(self._operands) - len(numbers), len(self._operands)

    def _compile(self, node):
        """Number of the part, and its type as in TYPES."""
        kind = type(node).__name__
        if kind == "Literal":
            return self._add(VALUE, value=node.value), TYPES[node.type]
        if kind == "Null":
            return self._add(VALUE), 0
        if kind == "Property":
            return self._add(PROPERTY, value=node.name), 5
        if kind in ("All", "Any"):
            left, right = self._list([self._condition(operand) for operand in node.operands])
            return self._add(ALL if kind == "All" else ANY, left, right), 1
        if kind == "Not":
            return self._add(NOT, self._condition(node.operand)), 1
        if kind == "OneOf":
            left, right = self._list([self._add(VALUE, value=choice) for choice in node.choices])
            return self._add(ONE_OF, left, right, node.name, negated=node.negated), 1
        if kind in ("Equal", "Ordered"):
            left, left_type = self._compile(node.left)
            right, right_type = self._compile(node.right)
            compare, reads = _comparison(left_type, right_type)
            if kind == "Equal":
                return self._add(EQUAL, left, right, None, compare, reads), 1
            if left_type == right_type == 5:
                compare, reads = AS_DECIMALS, 4
            return self._add(OPS[node.order], left, right, None, compare, reads), 1
        operand, operand_type = self._compile(node.operand)
        if kind == "Negate":
            numeric = operand_type in (2, 3, 4)
            return self._add(NEGATE, operand, negated=numeric), operand_type if numeric else 0
        if kind == "IsNull":
            return self._add(IS_NULL, operand), 1
        # A text test that can never hold has no text.
        text = node.text if operand_type == 5 else ""
        return self._add(OPS[node.test], operand, value=text, negated=node.negated), 1

    def __call__(self, record):
        """Whether a record is wanted."""
        cdef Py_buffer buffer
        cdef int verdict
        PyObject_GetBuffer(record, &buffer, PyBUF_SIMPLE)
        verdict = self.judge_record(<bytes_at>buffer.buf, buffer.len)
        PyBuffer_Release(&buffer)
        return self.reference(record) if verdict == UNSURE else verdict == YES

    def matches_text(self, bytes text):
        """Whether a message with this text of properties is wanted."""
        cdef int verdict = self.judge(<bytes_at>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        return self.text_reference(text) if verdict == UNSURE else verdict == YES

    cdef int judge_record(self, bytes_at record, Py_ssize_t size) noexcept:
        cdef Py_ssize_t at
        if size < FIXED_BYTES or record[39] & V6_HOSTS or get32(record + BODY_AT - 4) < 0:
            return UNSURE
        at = BODY_AT + <Py_ssize_t>get32(record + BODY_AT - 4)
        # A V2 record has two bytes for the length of its topic.
        at += 3 if at + 3 > size else 1 + record[at] if record[7] == 0xA7 else 2 + get16(record + at)
        if at + 2 > size or at + 2 + get16(record + at) != size:
            return UNSURE
        return self.judge(record + at + 2, size - at - 2)

    cdef int judge(self, bytes_at text, Py_ssize_t length) noexcept:
        cdef Value result
        cdef Value all_text
        cdef int verdict
        cdef Py_ssize_t i
        cdef unsigned char bits = 0
        for i in range(length):
            bits |= text[i]
        if bits & 0x80:
            return UNSURE
        all_text.text, all_text.length = text, length
        verdict = self._evaluate(self._root, &all_text, &result)
        return verdict if verdict < 0 else result.kind == TRUTH and result.whole

    cdef int _evaluate(self, int number, const Value* text, Value* out) noexcept:
        """FAILED or UNSURE; else ``out`` is the value."""
        cdef Part* part = &self._parts[number]
        cdef int op = part.op, verdict = 0, i, compared
        cdef Value right
        if op == VALUE:
            out[0] = part.value
        elif op == PROPERTY:
            _look_up(text, &part.value, out)
        elif op == IS_SET:
            _look_up(text, &part.value, out)
            if out.kind != NOTHING:
                _truth(out, False)
        elif op == ALL or op == ANY:
            _truth(out, op == ALL)
            for i in range(part.left, part.right):
                verdict = self._evaluate(self._lists[i], text, &right)
                if verdict < 0:
                    return verdict
                if right.kind == NOTHING:
                    out.kind = NOTHING
                elif (right.whole != 0) == (op == ANY):
                    _truth(out, op == ANY)
                    return 0
        elif op == ONE_OF:
            _look_up(text, &part.value, out)
            if out.kind != NOTHING:
                compared = False
                for i in range(part.left, part.right):
                    if _same(out, &self._parts[self._lists[i]].value):
                        compared = True
                        break
                _truth(out, bool(compared) != part.negated)
        else:
            verdict = self._evaluate(part.left, text, out)
            if verdict < 0:
                return verdict
            if op == NOT:
                if out.kind == TRUTH:
                    out.whole = not out.whole
            elif op == NEGATE:
                if not part.negated:
                    out.kind = NOTHING
                elif out.kind == WHOLE:
                    out.whole = -out.whole
                else:
                    out.decimal = -out.decimal
            elif op == IS_NULL:
                _truth(out, out.kind == NOTHING)
            elif op >= CONTAINS:
                _truth(out, part.value.length and out.kind != NOTHING and _tests(op, out, &part.value) != part.negated)
            else:
                if op != EQUAL and out.kind == NOTHING:
                    return 0
                verdict = self._evaluate(part.right, text, &right)
                if verdict < 0:
                    return verdict
                if out.kind == NOTHING or right.kind == NOTHING:
                    if op == EQUAL and (right.kind == NOTHING) == (out.kind == NOTHING):
                        _truth(out, True)
                    elif op == EQUAL and right.kind == NOTHING:
                        _truth(out, False)
                    else:
                        out.kind = NOTHING
                    return 0
                if part.compare == FAIL:
                    return FAILED
                if op == EQUAL and out.kind == TEXT and right.kind == TEXT:
                    _truth(out, _same(out, &right))
                    return 0
                compared = -1
                if part.compare != LESS:
                    verdict = _read(out, part.reads)
                    if verdict == 0:
                        verdict = _read(&right, part.reads)
                    if verdict < 0:
                        return verdict
                    compared = _compare(out, &right, part.compare == AS_DECIMALS)
                if op == EQUAL:
                    _truth(out, compared == 0)
                elif op == LT:
                    _truth(out, compared < 0)
                elif op == LE:
                    _truth(out, compared <= 0)
                elif op == GT:
                    _truth(out, compared > 0)
                else:
                    _truth(out, compared >= 0)
        return 0


def _comparison(left, right):
    """How values of two types are compared, and the type that text is read as; as in ``selector._comparer``."""
    if left == 0 or right == 0:
        return LESS, 0
    if left == right:
        return AS_DECIMALS if left == 4 else PLAIN, 0
    if left == 1:
        return FAIL if right == 5 else LESS, 0
    if left == 5 or right == 5:
        reads = right if left == 5 else left
        return AS_DECIMALS if reads == 4 else PLAIN, reads
    if right == 1:
        return LESS, 0
    return AS_DECIMALS if 4 in (left, right) else PLAIN, 0


cdef inline void _truth(Value* out, bint value) noexcept:
    out.kind, out.whole = TRUTH, value


cdef inline bint _same(const Value* left, const Value* right) noexcept:
    return left.length == right.length and memcmp(left.text, right.text, left.length) == 0


cdef bint _tests(int op, const Value* value, const Value* text) noexcept:
    if text.length > value.length:
        return False
    if op == CONTAINS:
        return memmem(value.text, value.length, text.text, text.length) is not NULL
    return memcmp(value.text + (0 if op == STARTS else value.length - text.length), text.text, text.length) == 0


cdef void _look_up(const Value* all_text, const Value* name, Value* out) noexcept:
    """The last value of a name, as in ``properties.property_of``."""
    cdef bytes_at at = all_text.text, end = at + all_text.length, stop
    cdef Py_ssize_t value_at = name.length + 1
    out.kind = NOTHING
    while at < end:
        stop = <bytes_at>memchr(at, 2, end - at)
        if stop is NULL:
            stop = end
        if stop - at > value_at and at[name.length] == 1 and memcmp(at, name.text, name.length) == 0:
            if memchr(at + value_at, 1, stop - at - value_at) is NULL:
                out.kind, out.text, out.length = TEXT, at + value_at, stop - at - value_at
        at = stop + 1


cdef int _read(Value* value, int reads) noexcept:
    """Read text as Java would read it as this type; other values stay."""
    cdef bytes_at at, end
    cdef bint negative
    cdef uint64_t digits = 0
    cdef int seen = 0, significant = 0, behind = -1
    if value.kind != TEXT or reads == 0:
        return 0
    at, end = value.text, value.text + value.length
    if reads == 1:
        _truth(value, value.length == 4 and (at[0] | 32) == c"t" and (at[1] | 32) == c"r" and (at[2] | 32) == c"u" and (at[3] | 32) == c"e")
        return 0
    if reads == 4:
        while at < end and at[0] <= 32:
            at += 1
        while at < end and (end - 1)[0] <= 32:
            end -= 1
    if end - at > 100:
        return UNSURE
    negative = at < end and at[0] == c"-"
    if at < end and (at[0] == c"-" or at[0] == c"+"):
        at += 1
    while at < end:
        if at[0] == c"." and reads == 4 and behind < 0:
            behind = 0
        elif c"0" <= at[0] <= c"9":
            seen += 1
            if digits or at[0] != c"0":
                significant += 1
            if significant <= 19:
                digits = digits * 10 + at[0] - c"0"
            if behind >= 0:
                behind += 1
        else:
            # Exponents, hexadecimal digits, infinity.
            return UNSURE if reads == 4 else FAILED
        at += 1
    if not seen:
        return FAILED
    if reads == 4:
        if significant > 15 or behind > 15:
            return UNSURE
        # Both are exact as doubles, so their quotient is the nearest to the text.
        value.kind, value.decimal = DECIMAL, <double>digits / POWERS[max(behind, 0)]
        if negative:
            value.decimal = -value.decimal
        return 0
    if significant > 19 or digits > ((<uint64_t>1 << (31 if reads == 2 else 63)) - (not negative)):
        return FAILED
    value.kind, value.whole = WHOLE, <int64_t>(0 - digits if negative else digits)
    return 0


cdef int _compare(const Value* left, const Value* right, bint as_decimals) noexcept:
    """As in ``java_numbers.compare_doubles``; others plainly."""
    cdef double a, b
    if not as_decimals:
        return (left.whole > right.whole) - (left.whole < right.whole)
    a = left.decimal if left.kind == DECIMAL else <double>left.whole
    b = right.decimal if right.kind == DECIMAL else <double>right.whole
    if a < b:
        return -1
    if a > b:
        return 1
    if a == b:
        return (bool(signbit(b)) - bool(signbit(a))) if a == 0 else 0
    return (a != a) - (b != b)
