# The keys of accounts, and texts that are said to be signed with one.

from libc.stdint cimport uint32_t

cdef enum:
    SIGNATURE_BYTES = 28  # in Base64
    TEXT_MAX = 1024
    TOGETHER_MAX = 16
    TOGETHER_BODY_MAX = 4096

cdef struct SignedText:
    const unsigned char* text
    Py_ssize_t text_bytes
    const unsigned char* body
    Py_ssize_t body_bytes
    const unsigned char* signature

cdef class Key:
    cdef uint32_t inner[5]
    cdef uint32_t outer[5]
    cdef Py_ssize_t right(self, const SignedText* texts, Py_ssize_t count) noexcept
