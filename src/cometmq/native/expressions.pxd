# An SQL92 expression as an array of parts.

from libc.stdint cimport int64_t

ctypedef const unsigned char* bytes_at

# As in model.messages.record_layout.
cdef enum:
    FIXED_BYTES = 91
    BODY_AT = 88
    V6_HOSTS = 48

cdef enum Verdict:
    FAILED = -2  # Text that is no number, or values that cannot be compared: no match, whatever else is true.
    UNSURE = -1  # Let the selector decide.
    NO = 0
    YES = 1

cdef enum Kind:
    NOTHING, TRUTH, WHOLE, DECIMAL, TEXT

cdef enum Op:
    VALUE, PROPERTY, IS_SET, NEGATE, NOT, ALL, ANY, IS_NULL, EQUAL, LT, LE, GT, GE, ONE_OF, CONTAINS, STARTS, ENDS

cdef enum Compare:
    PLAIN, AS_DECIMALS, LESS, FAIL

cdef struct Value:
    int kind
    int64_t whole
    double decimal
    bytes_at text
    Py_ssize_t length

cdef struct Part:
    int op
    int compare
    int reads  # The type, as in TYPES, that text is read as before it is compared; 0: not at all.
    bint negated
    int left
    int right  # Operands that form a list follow each other from left up to right, in ``operands``.
    Value value

cdef class Program:
    cdef Part* _parts
    cdef list _compiled, _kept, _operands
    cdef int* _lists
    cdef int _root
    cdef readonly object reference, text_reference

    cdef _set(self, Part* part, op, left, right, value, compare, reads, negated)
    cdef int judge_record(self, bytes_at record, Py_ssize_t size) noexcept
    cdef int judge(self, bytes_at text, Py_ssize_t length) noexcept
    cdef int _evaluate(self, int number, const Value* text, Value* out) noexcept
