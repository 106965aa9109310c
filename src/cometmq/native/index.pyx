"""Keys into an index file: the twin of the loop in ``store.index.index_file``, which says what lies where.

Thread rule: the owner of the store.
"""

from cpython.array cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t

from cometmq.native.big_endian cimport put32, put64

ctypedef unsigned char byte

cdef enum:
    ENTRY_BYTES = 20


def enter_keys(
    int[::1] hashes, long long[::1] places, int64_t number, int64_t seconds, int64_t slot_count, int64_t first_slot,
    int page_shift, list pages not None, bytearray changed not None, load,
):
    """Entries of the index for keys, and the slots that lead to them: what ``IndexFile.add`` does for each key.

    Returns:
        The bytes of the entries, and how many slots were used for the first time.
    """
    cdef bytes entries = PyBytes_FromStringAndSize(NULL, hashes.shape[0] * ENTRY_BYTES)
    cdef byte* into = <byte*>PyBytes_AS_STRING(entries)
    cdef char* marks = changed
    cdef Py_ssize_t at
    cdef int64_t slot, page_number, previous, fresh = 0
    cdef array page
    assert places.shape[0] == hashes.shape[0] and len(changed) == len(pages)
    for at in range(hashes.shape[0]):
        slot = hashes[at] % slot_count + first_slot
        page_number = slot >> page_shift
        found = pages[page_number]
        page = load(page_number) if found is None else found
        slot &= (1 << page_shift) - 1
        previous = page.data.as_ints[slot]
        if not 0 < previous < number:
            previous = 0
            fresh += 1
        put32(into, hashes[at])
        put64(into + 4, places[at])
        put32(into + 12, <int32_t>seconds)
        put32(into + 16, <int32_t>previous)
        into += ENTRY_BYTES
        page.data.as_ints[slot] = <int32_t>number
        marks[page_number] = 1
        number += 1
    return entries, fresh
