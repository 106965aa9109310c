"""Signatures of requests, HMAC-SHA1 in Base64, checked with keys that were prepared: of several requests at once.

What is signed says ``protocol.request_signature``, whose ``Verifier`` is the reference. Here there are only bytes.

Thread rule: whoever calls holds the interpreter's lock.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memset

from cometmq.native.big_endian cimport put32, put64

cdef extern from "sha1.h" nogil:
    int sha1_has_instructions
    int sha1_lanes
    void sha1_prepare()
    void sha1_of(uint32_t* state, const unsigned char* at, size_t blocks)
    void sha1_of_each(uint32_t (*states)[5], const unsigned char** at, size_t count, size_t blocks)

ctypedef unsigned char byte
ctypedef const unsigned char* Bytes

cdef enum:
    BLOCK = 64
    DIGEST_BYTES = 20
    STATE_BYTES = 20
    LENGTH_BYTES = 9  # a byte that ends the text, and how long it is
    LANE_BYTES = (TEXT_MAX + TOGETHER_BODY_MAX + LENGTH_BYTES + BLOCK - 1) // BLOCK * BLOCK

cdef uint32_t[5] FIRST = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0]
cdef const char* LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef byte lanes[TOGETHER_MAX * LANE_BYTES]

sha1_prepare()


def use_processor(bint has_instructions, int at_once):
    """For tests, which try what other processors do: ``at_once`` is 1, 8 or 16. Returns what was used before."""
    global sha1_has_instructions, sha1_lanes
    before = bool(sha1_has_instructions), sha1_lanes
    sha1_has_instructions, sha1_lanes = has_instructions, at_once
    return before


# No pickle, copy or repr has what signs in an account's name.
@cython.auto_pickle(False)
cdef class Key:
    """The secret of an account, as two hashes that have begun with it.

    Args:
        secret: as HMAC has it: 64 bytes, filled up with zeros.
    """

    def __init__(self, bytes secret not None):
        if PyBytes_GET_SIZE(secret) != BLOCK:
            raise ValueError("a secret has 64 bytes")
        begin(self.inner, <Bytes>PyBytes_AS_STRING(secret), 0x36)
        begin(self.outer, <Bytes>PyBytes_AS_STRING(secret), 0x5C)

    cdef Py_ssize_t right(self, const SignedText* texts, Py_ssize_t count) noexcept:
        """How many texts have the right signature, from the first one on.

        Several are hashed together: at most ``TOGETHER_MAX``, with a body of ``TOGETHER_BODY_MAX`` at most. There is one at
        least.
        """
        cdef uint32_t states[TOGETHER_MAX][5]
        cdef Bytes at[TOGETHER_MAX]
        cdef byte digests[TOGETHER_MAX * BLOCK]
        cdef Py_ssize_t number
        for number in range(count):
            memcpy(states[number], self.inner, STATE_BYTES)
        if count == 1:
            hash_one(states[0], texts)
        else:
            hash_together(states, texts, count)
        for number in range(count):
            at[number] = digests + number * BLOCK
            write_digest(digests + number * BLOCK, states[number])
            end_block(digests + number * BLOCK, DIGEST_BYTES, BLOCK, DIGEST_BYTES)
            memcpy(states[number], self.outer, STATE_BYTES)
        sha1_of_each(states, at, count, 1)
        for number in range(count):
            if not is_signature(states[number], texts[number].signature):
                return number
        return count


cdef void begin(uint32_t* state, Bytes secret, byte pad) noexcept nogil:
    cdef byte block[BLOCK]
    cdef int at
    for at in range(BLOCK):
        block[at] = secret[at] ^ pad
    memcpy(state, FIRST, STATE_BYTES)
    sha1_of(state, block, 1)


cdef void end_block(byte* into, Py_ssize_t used, Py_ssize_t size, int64_t text_bytes) noexcept nogil:
    """Fill up to ``size`` as SHA-1 wants it. The block of the key came before the text."""
    into[used] = 0x80
    memset(into + used + 1, 0, size - used - LENGTH_BYTES)
    put64(into + size - 8, (BLOCK + text_bytes) * 8)


cdef inline Py_ssize_t blocks_for(Py_ssize_t bytes_count) noexcept nogil:
    """Of what is left of a text, and its end."""
    return (bytes_count + LENGTH_BYTES + BLOCK - 1) // BLOCK


cdef void hash_one(uint32_t* state, const SignedText* signed) noexcept nogil:
    """The body stays where it is, but for what shares a block with the text, and the end."""
    cdef byte block[2 * BLOCK]
    cdef Py_ssize_t whole = signed.text_bytes // BLOCK, used = signed.text_bytes % BLOCK
    cdef Py_ssize_t taken = min(BLOCK - used, signed.body_bytes), left = signed.body_bytes - taken
    sha1_of(state, signed.text, whole)
    memcpy(block, signed.text + whole * BLOCK, used)
    memcpy(block + used, signed.body, taken)
    used += taken
    if used == BLOCK:
        sha1_of(state, block, 1)
        whole, used = left // BLOCK, left % BLOCK
        sha1_of(state, signed.body + taken, whole)
        memcpy(block, signed.body + taken + whole * BLOCK, used)
    whole = blocks_for(used)
    end_block(block, used, whole * BLOCK, signed.text_bytes + signed.body_bytes)
    sha1_of(state, block, whole)


cdef void hash_together(uint32_t (*states)[5], const SignedText* texts, Py_ssize_t count) noexcept nogil:
    """Neighbours are of about one size. What one has more than the shortest is hashed alone."""
    cdef Bytes at[TOGETHER_MAX]
    cdef Py_ssize_t blocks[TOGETHER_MAX]
    cdef byte* into = lanes
    cdef Py_ssize_t number, size, least = LANE_BYTES
    for number in range(count):
        size = texts[number].text_bytes + texts[number].body_bytes
        blocks[number] = blocks_for(size)
        least = min(least, blocks[number])
        memcpy(into, texts[number].text, texts[number].text_bytes)
        memcpy(into + texts[number].text_bytes, texts[number].body, texts[number].body_bytes)
        end_block(into, size, blocks[number] * BLOCK, size)
        at[number] = into
        into += blocks[number] * BLOCK
    sha1_of_each(states, at, count, least)
    for number in range(count):
        sha1_of(states[number], at[number] + least * BLOCK, blocks[number] - least)


cdef inline void write_digest(byte* into, const uint32_t* state) noexcept nogil:
    cdef int number
    for number in range(5):
        put32(into + 4 * number, <int32_t>state[number])


cdef bint is_signature(const uint32_t* state, Bytes given) noexcept nogil:
    """Whether that is the hash in Base64. It takes as long for a signature that is nearly right as for any other."""
    cdef byte digest[DIGEST_BYTES + 1]
    cdef byte made[SIGNATURE_BYTES]
    cdef byte different = 0
    cdef uint32_t bits
    cdef int at, group
    write_digest(digest, state)
    digest[DIGEST_BYTES] = 0
    for group in range(SIGNATURE_BYTES // 4):
        bits = (
            <uint32_t>digest[3 * group] << 16 | <uint32_t>digest[3 * group + 1] << 8 | digest[3 * group + 2]
        )
        made[4 * group] = LETTERS[bits >> 18]
        made[4 * group + 1] = LETTERS[bits >> 12 & 63]
        made[4 * group + 2] = LETTERS[bits >> 6 & 63]
        made[4 * group + 3] = LETTERS[bits & 63]
    made[SIGNATURE_BYTES - 1] = c'='
    for at in range(SIGNATURE_BYTES):
        different |= given[at] ^ made[at]
    return different == 0
