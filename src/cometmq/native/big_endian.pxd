# Numbers as RocketMQ writes them: big-endian, at any address.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define BE16(x) (x)
    #define BE32(x) (x)
    #define BE64(x) (x)
    #else
    #define BE16(x) __builtin_bswap16(x)
    #define BE32(x) __builtin_bswap32(x)
    #define BE64(x) __builtin_bswap64(x)
    #endif
    """
    uint16_t BE16(uint16_t) nogil
    uint32_t BE32(uint32_t) nogil
    uint64_t BE64(uint64_t) nogil


cdef inline uint16_t get16(const unsigned char* at) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, at, 2)
    return BE16(value)


cdef inline int32_t get32(const unsigned char* at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return <int32_t>BE32(value)


cdef inline int64_t get64(const unsigned char* at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, 8)
    return <int64_t>BE64(value)


cdef inline void put16(unsigned char* at, uint16_t value) noexcept nogil:
    value = BE16(value)
    memcpy(at, &value, 2)


cdef inline void put32(unsigned char* at, int32_t value) noexcept nogil:
    cdef uint32_t swapped = BE32(<uint32_t>value)
    memcpy(at, &swapped, 4)


cdef inline void put64(unsigned char* at, int64_t value) noexcept nogil:
    cdef uint64_t swapped = BE64(<uint64_t>value)
    memcpy(at, &swapped, 8)
