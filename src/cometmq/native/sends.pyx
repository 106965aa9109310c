"""Plain sends, from the frames they come in to the bytes of the log and the replies: no Python object per message.

A send is plain when nothing about it needs a decision of its own: a V2 header in JSON, ASCII, with the fields that all
clients send; a topic and properties that were seen before and ask for nothing special. A batch is plain when all of its
messages are. Neighbours in one read of a connection become a ``SendRun``; a ``PlainSends`` has all of a turn. Whatever is
not plain is left to ``broker.send.send_processor``, which is the reference: what is stored and answered here, it would
store and answer.

In the order of a message's way: ``cut_run``, ``SendRun.prepare``, ``PlainSends.measure``, ``lay_out``, ``entries``,
``keys``, ``answers``. What a record consists of says ``model.messages.record_layout``. Before that, a guard may ask a run
who its requests say they are from, and whether they are: ``SendRun.claim`` and ``signed``.

Thread rule: that of the event loop.
"""

from cpython.array cimport array, clone
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeASCII
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from cometmq.native.big_endian cimport get16, get32, put16, put32, put64
from cometmq.native.signatures cimport SIGNATURE_BYTES, TOGETHER_BODY_MAX, TOGETHER_MAX, Key, SignedText
from cometmq.native.signatures cimport TEXT_MAX as SIGNED_TEXT_MAX

from cometmq.model.messages.counted_row import BYTES, MESSAGES, SIZE_EDGES, SIZES
from cometmq.model.messages.properties import TEXT_BYTES_MAX, UNIQ_KEY
from cometmq.model.messages.record_layout import (
    CRC_MASK, HOST_V6_BYTES, MAGIC_V1, MAGIC_V2, TOPIC_BYTES_V1_MAX, V6_HOSTS, head, host_bits,
)
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE
from cometmq.protocol.frame import HEADER_BYTES_TAKEN
from cometmq.native.send_run import RUN

cdef extern from "crc32.h" nogil:
    void crc32_prepare()
    uint32_t crc32_of(const unsigned char* at, size_t count)

cdef extern from * nogil:
    """
    #include <string.h>
    static const void *find_text(const void *in, size_t in_bytes, const char *text, size_t text_bytes) {
        const char *at = in, *end = at + in_bytes;
        for (; (size_t)(end - at) >= text_bytes && (at = memchr(at, text[0], end - at - text_bytes + 1)); at++)
            if (!memcmp(at, text, text_bytes)) return at;
        return NULL;
    }
    """
    const void* find_text(const void* where, size_t where_bytes, const char* text, size_t text_bytes)

ctypedef unsigned char byte
ctypedef const unsigned char* Bytes

cdef enum:
    PREFIX_BYTES = 8
    TEXT_MAX = 512  # a longer property text is not remembered, see send_properties
    ENTRY_BYTES = 20
    NOTICE_HEAD_BYTES = 12
    SHAPES_MAX = 2048
    DESTINATIONS_MAX = 65536
    NUMBER_DIGITS_MAX = 20
    OFFSET_DIGITS = 16
    ELEMENT_HEAD_BYTES = 20
    ELEMENTS_MAX = 4096
    # The fields of a header, in the order in which their values are signed: the account, ``a`` to ``n``; the signature.
    ACCOUNT = 0
    PROPERTIES = 9
    SIGNED_FIELDS = 15
    SIGNATURE = 15
    ALL_FIELDS = 16

cdef int32_t SEND_V2 = RequestCode.SEND_MESSAGE_V2
cdef int32_t SEND_BATCH = RequestCode.SEND_BATCH_MESSAGE
cdef int32_t RESPONSE = FLAG_RESPONSE
cdef int32_t ONEWAY = FLAG_ONEWAY
cdef int64_t HEADER_MAX = HEADER_BYTES_TAKEN
cdef int32_t TRANSACTION_BITS = 12
cdef int32_t HOST_BITS = V6_HOSTS
cdef uint32_t CRC_BITS = CRC_MASK
cdef bytes UNIQUE_FIRST = UNIQ_KEY.encode() + b"\x01"
cdef Py_ssize_t UNIQUE_AT = len(UNIQUE_FIRST)

cdef int COUNTED = MESSAGES, COUNTED_BYTES = BYTES, COUNTED_SIZES = SIZES
cdef int EDGE_COUNT = len(SIZE_EDGES)
cdef uint32_t[16] EDGES
for _at, _edge in enumerate(SIZE_EDGES):
    EDGES[_at] = _edge

crc32_prepare()


def crc32(data) -> int:
    """The checksum as records have it, before the mask."""
    cdef const unsigned char[::1] view = data
    return crc32_of(&view[0], view.shape[0]) if view.shape[0] else 0


cdef struct Fields:
    # Where the values of a request's fields are in the run's bytes; ``seen`` has a bit for each that is there.
    uint32_t seen
    uint32_t at[ALL_FIELDS]
    uint32_t size[ALL_FIELDS]
    bint has_others


cdef struct Send:
    # As received; positions are those of the run's bytes. A batch has one of these for each message.
    uint32_t messages  # of the request that begins here; 0 for the other messages of a batch
    uint32_t frame_at, frame_end
    uint32_t topic_at, topic_bytes
    uint32_t header_text_at, header_text_bytes  # the properties, with JSON's escapes
    uint32_t element_text_at, element_text_bytes  # and those of a message of a batch, without
    uint32_t body_at, body_bytes
    int32_t code, opaque, flag, sys_flag, queue_id, reconsume_times
    int64_t born
    bint is_oneway, is_batch
    uint32_t fields  # which of the run's ``Fields`` are the request's, counted from 1; 0 if it is not signed as usual
    # As prepared: what is stored of the properties, and the hashes of the keys, which belong to the run.
    uint32_t text_at, text_bytes, key_at, key_count
    int64_t tags_code
    PyObject* destination
    bint waits, is_ordered
    # As placed.
    uint32_t queue
    uint32_t size_bytes
    int64_t place, queue_offset


# The header.

cdef inline Bytes end_of_plain(Bytes at, Bytes end) noexcept nogil:
    """The quote that ends a string without escapes and beyond ASCII nothing; NULL without one."""
    while at < end and at[0] != c'"':
        if at[0] < 0x20 or at[0] >= 0x80 or at[0] == c'\\':
            return NULL
        at += 1
    return at if at < end else NULL


cdef inline Bytes end_of_escaped(Bytes at, Bytes end) noexcept nogil:
    """The same with escapes of ASCII, of those kinds that clients use."""
    cdef int escape_bytes
    while at < end and at[0] != c'"':
        if at[0] < 0x20 or at[0] >= 0x80:
            return NULL
        escape_bytes = 1
        if at[0] == c'\\' and read_escape(at, end, &escape_bytes) < 0:
            return NULL
        at += escape_bytes
    return at if at < end else NULL


cdef inline int read_escape(Bytes at, Bytes end, int* escape_bytes) noexcept nogil:
    """The character of an escape, -1 if it is not a usual one, and how long the escape is."""
    cdef int high, low
    if end - at >= 6 and at[1] == c'u' and at[2] == c'0' and at[3] == c'0':
        escape_bytes[0] = 6
        high, low = hex_digit(at[4]), hex_digit(at[5])
        return -1 if high < 0 or high > 7 or low < 0 else high * 16 + low
    escape_bytes[0] = 2
    if end - at >= 2 and (at[1] == c'"' or at[1] == c'\\' or at[1] == c'/'):
        return at[1]
    return -1


cdef inline int hex_digit(byte letter) noexcept nogil:
    if c'0' <= letter <= c'9':
        return letter - c'0'
    letter |= 0x20
    return letter - c'a' + 10 if c'a' <= letter <= c'f' else -1


cdef inline Bytes read_number(Bytes at, Bytes end, int64_t low, int64_t high, int64_t* number) noexcept nogil:
    """What follows a number in its shortest form; NULL if there is none, or it is out of bounds."""
    cdef bint is_negative = at < end and at[0] == c'-'
    cdef int64_t value = 0
    cdef int digits = 0
    if is_negative:
        at += 1
    cdef Bytes first = at
    while at < end and c'0' <= at[0] <= c'9':
        digits += 1
        if digits > 18:
            return NULL
        value = value * 10 + (at[0] - c'0')
        at += 1
    if digits == 0 or (first[0] == c'0' and (digits > 1 or is_negative)):
        return NULL
    if is_negative:
        value = -value
    if value < low or value > high:
        return NULL
    number[0] = value
    return at


cdef inline bint number_of(Bytes at, Bytes end, int64_t low, int64_t high, int64_t* number) noexcept nogil:
    return read_number(at, end, low, high, number) == end


cdef inline bint is_text(Bytes at, Py_ssize_t count, const char* text, Py_ssize_t text_bytes) noexcept nogil:
    return count == text_bytes and memcmp(at, text, text_bytes) == 0


cdef enum:
    INT32_MIN = -0x7FFFFFFF - 1
    INT32_MAX = 0x7FFFFFFF


cdef inline int slot_of(Bytes key, Py_ssize_t key_bytes) noexcept nogil:
    """Where ``Fields`` has a field; -1 if it has not."""
    if key_bytes == 1 and c'a' <= key[0] <= c'n':
        return key[0] - c'a' + 1
    if is_text(key, key_bytes, b"AccessKey", 9):
        return ACCOUNT
    return SIGNATURE if is_text(key, key_bytes, b"Signature", 9) else -1


cdef Bytes read_fields(Bytes base, Bytes at, Bytes end, Send* send, Fields* fields) noexcept nogil:
    """The custom header of a plain send; returns what follows it, or NULL."""
    cdef uint32_t bit
    cdef int slot
    cdef Bytes key
    cdef Bytes value
    cdef Py_ssize_t key_bytes, value_bytes
    cdef int64_t number = 0
    cdef byte letter
    send.sys_flag = send.flag = send.reconsume_times = 0
    send.is_batch = False
    fields.seen, fields.has_others = 0, False
    if at >= end or at[0] != c'{':
        return NULL
    while True:
        at += 1
        if at >= end or at[0] != c'"':
            return NULL
        key = at + 1
        at = end_of_plain(key, end)
        if at == NULL or end - at < 4 or at[1] != c':' or at[2] != c'"':
            return NULL
        key_bytes = at - key
        value = at + 3
        letter = key[0] if key_bytes == 1 else 0
        at = end_of_escaped(value, end) if letter == c'i' else end_of_plain(value, end)
        if at == NULL:
            return NULL
        value_bytes = at - value
        slot = slot_of(key, key_bytes)
        if slot < 0:
            fields.has_others = True
        else:
            bit = 1u << slot
            if fields.seen & bit:
                return NULL
            fields.seen |= bit
            fields.at[slot], fields.size[slot] = <uint32_t>(value - base), <uint32_t>value_bytes
        if letter == c'b':
            send.topic_at, send.topic_bytes = <uint32_t>(value - base), <uint32_t>value_bytes
        elif letter == c'i':
            send.header_text_at, send.header_text_bytes = <uint32_t>(value - base), <uint32_t>value_bytes
        elif letter == c'g':
            if not number_of(value, at, -(<int64_t>1 << 62), <int64_t>1 << 62, &send.born):
                return NULL
        elif letter == c'k':
            if not (is_text(value, value_bytes, b"false", 5) or is_text(value, value_bytes, b"true", 4)):
                return NULL
        elif letter == c'm':
            send.is_batch = is_text(value, value_bytes, b"true", 4)
            if not send.is_batch and not is_text(value, value_bytes, b"false", 5):
                return NULL
        elif letter in b"defhjl":
            if not number_of(value, at, INT32_MIN, INT32_MAX, &number):
                return NULL
            elif letter == c'e':
                send.queue_id = <int32_t>number
            elif letter == c'f':
                send.sys_flag = <int32_t>number
            elif letter == c'h':
                send.flag = <int32_t>number
            elif letter == c'j':
                send.reconsume_times = <int32_t>number
        elif is_text(key, key_bytes, b"sink", 4):
            return NULL
        at += 1
        if at >= end:
            return NULL
        if at[0] == c'}':
            break
        if at[0] != c',':
            return NULL
    # Topic, queue, time of birth, properties.
    bit = 1u << 2 | 1u << 5 | 1u << 7 | 1u << PROPERTIES
    if fields.seen & bit != bit or send.topic_bytes == 0 or send.sys_flag & TRANSACTION_BITS:
        return NULL
    return at + 1


cdef bint read_header(Bytes base, Bytes at, Bytes end, Send* send, Fields* fields) noexcept nogil:
    """Whether the header is that of a plain send."""
    cdef uint32_t seen = 0, bit
    cdef Bytes key
    cdef Py_ssize_t key_bytes
    cdef int64_t number = 0
    if at >= end or at[0] != c'{':
        return False
    while True:
        at += 1
        if at >= end or at[0] != c'"':
            return False
        key = at + 1
        at = end_of_plain(key, end)
        if at == NULL or end - at < 3 or at[1] != c':':
            return False
        key_bytes = at - key
        at += 2
        bit = 0
        if is_text(key, key_bytes, b"extFields", 9):
            bit = 1
            at = read_fields(base, at, end, send, fields)
        elif is_text(key, key_bytes, b"code", 4):
            bit = 2
            at = read_number(at, end, SEND_V2, SEND_BATCH, &number)
            send.code = <int32_t>number
            if send.code != SEND_V2 and send.code != SEND_BATCH:
                return False
        elif is_text(key, key_bytes, b"flag", 4):
            bit = 4
            at = read_number(at, end, INT32_MIN, INT32_MAX, &number)
            if at != NULL and number & RESPONSE:
                return False
            send.is_oneway = number & ONEWAY != 0
        elif is_text(key, key_bytes, b"opaque", 6):
            bit = 8
            at = read_number(at, end, INT32_MIN, INT32_MAX, &number)
            send.opaque = <int32_t>number
        elif is_text(key, key_bytes, b"version", 7):
            bit = 16
            at = read_number(at, end, INT32_MIN, INT32_MAX, &number)
        elif is_text(key, key_bytes, b"language", 8) or is_text(key, key_bytes, b"serializeTypeCurrentRPC", 23):
            bit = 32 if key_bytes == 8 else 64
            if at[0] != c'"':
                return False
            at = end_of_plain(at + 1, end)
            if at != NULL:
                at += 1
        else:
            return False
        if at == NULL or at >= end or seen & bit:
            return False
        seen |= bit
        if at[0] == c'}':
            break
        if at[0] != c',':
            return False
    if at + 1 != end or seen & 15 != 15:
        return False
    send.is_batch = send.is_batch or send.code == SEND_BATCH
    return True


cdef inline bint is_signed(const Fields* fields) noexcept nogil:
    """As usual: with an account, in Base64, and nothing in the header that an old client may not have signed."""
    cdef uint32_t both = 1u << ACCOUNT | 1u << SIGNATURE
    return fields.seen & both == both and not fields.has_others and fields.size[SIGNATURE] == SIGNATURE_BYTES


def cut_run(bytes data not None, Py_ssize_t start, Py_ssize_t frame_bytes_max):
    """The plain sends at the start of what was received, or None. ``end`` of the run is where the next frame begins."""
    cdef Bytes base = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(data), at = start
    cdef int64_t length, word
    cdef Send send
    cdef Fields fields
    cdef SendRun run = None
    if end >= 0xFFFFFFFF:
        return None
    while end - at > PREFIX_BYTES:
        length = get32(base + at)
        word = get32(base + at + 4)
        # JSON is the encoding 0. Anything else, and what is wrong with a frame, is for ``protocol.frame``.
        if (
            word <= 0 or word > HEADER_MAX or word > length - 4 or length > frame_bytes_max
            or length > end - at - 4
        ):
            break
        if not read_header(base, base + at + PREFIX_BYTES, base + at + PREFIX_BYTES + word, &send, &fields):
            break
        send.frame_at = <uint32_t>at
        send.body_at = <uint32_t>(at + PREFIX_BYTES + word)
        send.frame_end = <uint32_t>(at + 4 + length)
        send.body_bytes = send.frame_end - send.body_at
        send.messages = messages_in(base + send.body_at, send.body_bytes) if send.is_batch else 1
        if send.messages == 0:
            break
        if run is None:
            run = SendRun.__new__(SendRun)
            run.data = data
        send.fields = run.add_fields(&fields) if is_signed(&fields) else 0
        if send.is_batch:
            run.add_batch(&send, base)
        else:
            run.add(&send)
        at += 4 + length
    if run is not None:
        run.end = at
    return run


# What sends have in common, learnt from ``send_processor``.

cdef class Shape:
    """A property text but for its unique key and its keys: what is stored around them, and what it says."""

    cdef bytes before, middle, after
    cdef int64_t tags_code
    cdef bint waits, is_ordered

    def __init__(self, bytes before, bytes middle, bytes after, tags_code, is_wait, is_ordered):
        self.before, self.middle, self.after = before, middle, after
        self.tags_code, self.waits, self.is_ordered = tags_code, is_wait, is_ordered


cdef class Destination:
    """A topic that plain sends may go to."""

    cdef readonly str topic
    cdef bytes field
    cdef uint32_t key_prefix
    cdef int32_t queue_count
    # Its counters, see ``model.messages.counted_row``.
    cdef array row, fifo_row
    # In the group of this number: which of its queues a queue id is, counted from 1.
    cdef int64_t group
    cdef uint32_t* queues
    cdef object table

    def __init__(self, str topic, bytes field, key_prefix, queue_count, row, fifo_row):
        self.topic, self.field, self.key_prefix = topic, field, key_prefix
        self.queue_count, self.row, self.fifo_row = queue_count, row, fifo_row
        self.group = -1
        self.queues = <uint32_t*>PyMem_Malloc(max(self.queue_count, 1) * sizeof(uint32_t))
        if self.queues == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.queues)


cdef uint32_t messages_in(Bytes at, Py_ssize_t count) noexcept nogil:
    """How many messages a batch has; 0 if it is none, or a very large one. See ``model.messages.batch``."""
    cdef Bytes end = at + count
    cdef uint32_t messages = 0
    cdef int64_t size, body_bytes
    while at < end:
        if end - at < ELEMENT_HEAD_BYTES + 2 or messages == ELEMENTS_MAX:
            return 0
        size, body_bytes = get32(at), get32(at + 16)
        if body_bytes < 0 or size > end - at or body_bytes + ELEMENT_HEAD_BYTES + 2 > size:
            return 0
        if get16(at + ELEMENT_HEAD_BYTES + body_bytes) != size - body_bytes - ELEMENT_HEAD_BYTES - 2:
            return 0
        at += size
        messages += 1
    return messages


cdef class Shapes:
    """The shapes that were seen before.

    Args:
        learn: makes the Shape of a text whose keys are replaced by a zero byte; None if it is not plain.
    """

    cdef dict known
    cdef object learn
    # The last one, which most sends have in common.
    cdef bytes rest
    cdef Shape shape

    def __init__(self, learn):
        self.learn, self.known = learn, {}

    cdef Shape of(self, Bytes text, Py_ssize_t count):
        cdef bytes rest
        if self.shape is not None and PyBytes_GET_SIZE(self.rest) == count and not memcmp(
            PyBytes_AS_STRING(self.rest), text, count
        ):
            return self.shape
        rest = PyBytes_FromStringAndSize(<const char*>text, count)
        cdef Shape shape = self.known.get(rest)
        if shape is None:
            shape = self.learn(rest)
            if shape is None:
                return None
            if len(self.known) >= SHAPES_MAX:
                self.known.clear()
            self.known[rest] = shape
        self.rest, self.shape = rest, shape
        return shape


cdef class Known:
    """Shapes and destinations that were seen before.

    Args:
        learn, learn_element: see ``Shapes``; the second is for messages of a batch.
        decide: makes the Destination of a topic; None if sends to it are not plain.
    """

    cdef Shapes shapes, element_shapes
    cdef dict destinations
    cdef object decide
    cdef Py_ssize_t body_bytes_max, messages_max
    # The last one, which most sends have in common.
    cdef bytes topic
    cdef Destination destination

    def __init__(self, learn, learn_element, decide, body_bytes_max, messages_max):
        self.shapes, self.element_shapes = Shapes(learn), Shapes(learn_element)
        self.decide, self.body_bytes_max, self.messages_max = decide, body_bytes_max, messages_max
        self.forget_destinations()

    def forget_destinations(self):
        """Topics have changed."""
        global times_forgotten
        times_forgotten += 1
        self.destinations = {}
        self.destination = None

    cdef Destination destination_of(self, Bytes topic, Py_ssize_t count):
        cdef bytes name
        if self.destination is not None and PyBytes_GET_SIZE(self.topic) == count and not memcmp(
            PyBytes_AS_STRING(self.topic), topic, count
        ):
            return self.destination
        name = PyBytes_FromStringAndSize(<const char*>topic, count)
        cdef Destination destination = self.destinations.get(name)
        if destination is None:
            destination = self.decide(name)
            if destination is None:
                return None
            if len(self.destinations) >= DESTINATIONS_MAX:
                self.destinations.clear()
            self.destinations[name] = destination
        self.topic, self.destination = name, destination
        return destination


# What requests say that are signed.

cdef class Claim:
    """A code, an account, and the values of some fields."""

    cdef readonly tuple said
    """All three; None for a field that is missing."""
    cdef bytes header
    cdef Fields fields
    cdef uint32_t same
    cdef int32_t code

    cdef object value(self, int slot):
        if slot < 0 or not self.fields.seen >> slot & 1:
            return None
        cdef const char* header = PyBytes_AS_STRING(self.header)
        return PyUnicode_DecodeASCII(header + self.fields.at[slot], self.fields.size[slot], NULL)


# A run.

cdef inline uint32_t hash_of(Bytes text, Py_ssize_t count) noexcept nogil:
    """Java's String.hashCode of ASCII text."""
    cdef uint32_t bits = 0
    cdef Py_ssize_t at
    for at in range(count):
        bits = bits * 31 + text[at]
    return bits


cdef inline uint32_t power_of_31(Py_ssize_t count) noexcept nogil:
    cdef uint32_t power = 1, factor = 31
    while count:
        if count & 1:
            power *= factor
        factor *= factor
        count >>= 1
    return power


cdef Py_ssize_t unescape(Bytes at, Bytes end, byte* into) noexcept nogil:
    """The bytes of a string that ``end_of_escaped`` has seen; -1 if it is too long or holds a zero byte."""
    cdef Py_ssize_t count = 0
    cdef int escape_bytes, letter
    while at < end:
        escape_bytes, letter = 1, at[0]
        if letter == c'\\':
            letter = read_escape(at, end, &escape_bytes)
        if count >= TEXT_MAX or letter <= 0:
            return -1
        into[count] = <byte>letter
        at += escape_bytes
        count += 1
    return count


cdef Py_ssize_t copied_text(Bytes text, Py_ssize_t count, byte* into) noexcept nogil:
    """The same for a text without escapes, which has not been looked at yet."""
    cdef Py_ssize_t at
    if count > TEXT_MAX:
        return -1
    for at in range(count):
        if text[at] == 0 or text[at] >= 0x80:
            return -1
        into[at] = text[at]
    return count


cdef class SendRun:
    """Plain sends that follow each other in what was received at once. The turn takes it for one request."""

    cdef bytes data
    cdef Send* sends
    cdef Py_ssize_t count, room
    cdef Fields* fields
    cdef Py_ssize_t fields_count, fields_room
    cdef byte* texts
    cdef Py_ssize_t texts_bytes, texts_room
    cdef uint32_t* hashes
    cdef uint32_t* powers
    cdef Py_ssize_t hash_count, hash_room
    cdef readonly Py_ssize_t end
    cdef list kept
    cdef PyObject* last_kept

    code = RUN
    flag = 0

    def __dealloc__(self):
        PyMem_Free(self.sends)
        PyMem_Free(self.fields)
        PyMem_Free(self.texts)
        PyMem_Free(self.hashes)
        PyMem_Free(self.powers)

    def __len__(self):
        return self.count

    def frame(self, Py_ssize_t at) -> bytes:
        """The request that begins at a message, as it came, for those who decode it themselves."""
        if not 0 <= at < self.count:
            raise IndexError(at)
        return self.data[self.sends[at].frame_at:self.sends[at].frame_end]

    def after(self, Py_ssize_t at) -> int:
        """Where the next request begins."""
        if not 0 <= at < self.count:
            raise IndexError(at)
        return at + self.sends[at].messages

    cdef int add_batch(self, Send* send, Bytes base) except -1:
        """The messages of a batch, which ``messages_in`` has checked."""
        cdef Py_ssize_t at = send.body_at
        cdef int32_t size
        while at < send.frame_end:
            size = get32(base + at)
            send.flag = get32(base + at + 12)
            send.body_at = <uint32_t>(at + ELEMENT_HEAD_BYTES)
            send.body_bytes = <uint32_t>get32(base + at + 16)
            send.element_text_at = send.body_at + send.body_bytes + 2
            at += size
            send.element_text_bytes = <uint32_t>at - send.element_text_at
            self.add(send)
            send.messages = 0
        return 0

    cdef int add(self, const Send* send) except -1:
        if self.count == self.room:
            self.room = self.room * 2 or 4
            self.sends = <Send*>grown(self.sends, self.room * sizeof(Send))
        self.sends[self.count] = send[0]
        self.count += 1
        return 0

    cdef uint32_t add_fields(self, const Fields* fields) except 0:
        if self.fields_count == self.fields_room:
            self.fields_room = self.fields_room * 2 or 4
            self.fields = <Fields*>grown(self.fields, self.fields_room * sizeof(Fields))
        self.fields[self.fields_count] = fields[0]
        self.fields_count += 1
        return <uint32_t>self.fields_count

    def claim(self, Py_ssize_t at, dict names not None):
        """What the request says that begins at a message; None if it is not signed as usual.

        Args:
            names: of the fields that count, by code. None if there are none for its code, or one may have escapes.
        """
        if not 0 <= at < self.count:
            raise IndexError(at)
        cdef const Send* send = &self.sends[at]
        cdef tuple named = names.get(send.code)
        if named is None or send.fields == 0:
            return None
        cdef Claim claim = Claim.__new__(Claim)
        cdef Py_ssize_t header = send.frame_at + PREFIX_BYTES
        cdef int slot
        claim.header = self.data[header:header + get32(<Bytes>PyBytes_AS_STRING(self.data) + send.frame_at + 4)]
        claim.fields = self.fields[send.fields - 1]
        for slot in range(ALL_FIELDS):
            claim.fields.at[slot] -= <uint32_t>header
        claim.code, claim.same = send.code, 1u << ACCOUNT
        cdef list said = [send.code, claim.value(ACCOUNT)]
        for name in named:
            slot = slot_by_name(name)
            if slot == PROPERTIES:
                return None
            if slot >= 0:
                claim.same |= 1u << slot
            said.append(claim.value(slot))
        claim.said = tuple(said)
        return claim

    def signed(self, Py_ssize_t start, Py_ssize_t stop, Claim claim not None, Key key not None):
        """Where this ends: at the first request that claims something else, or is perhaps not signed with this key; or
        at ``stop``."""
        cdef SignedText texts[TOGETHER_MAX]
        cdef byte values[TOGETHER_MAX * SIGNED_TEXT_MAX]
        cdef Py_ssize_t begins[TOGETHER_MAX]
        cdef Py_ssize_t at = start, count, right
        assert 0 <= start < stop <= self.count
        while at < stop:
            count = 0
            while (
                count < TOGETHER_MAX and at < stop and self._claims(&self.sends[at], claim)
                and self._signed_text(&self.sends[at], values + count * SIGNED_TEXT_MAX, &texts[count])
                and (count == 0 or texts[0].body_bytes <= TOGETHER_BODY_MAX >= texts[count].body_bytes)
            ):
                begins[count] = at
                at += self.sends[at].messages
                count += 1
            if count == 0:
                return at
            right = key.right(texts, count)
            if right < count:
                return begins[right]
        return stop

    cdef bint _claims(self, const Send* send, Claim claim) noexcept:
        if send.fields == 0 or send.code != claim.code:
            return False
        cdef Bytes base = <Bytes>PyBytes_AS_STRING(self.data)
        cdef Bytes header = <Bytes>PyBytes_AS_STRING(claim.header)
        cdef const Fields* own = &self.fields[send.fields - 1]
        cdef const Fields* other = &claim.fields
        cdef uint32_t same = claim.same
        cdef int slot
        if own.seen & same != other.seen & same:
            return False
        for slot in range(SIGNED_FIELDS):
            if own.seen & same & 1u << slot and (
                own.size[slot] != other.size[slot]
                or memcmp(base + own.at[slot], header + other.at[slot], own.size[slot])
            ):
                return False
        return True

    cdef bint _signed_text(self, const Send* send, byte* into, SignedText* text) noexcept:
        """What a request signs; False if that is longer than usual."""
        cdef Bytes base = <Bytes>PyBytes_AS_STRING(self.data)
        cdef const Fields* fields = &self.fields[send.fields - 1]
        cdef Py_ssize_t used = 0, size
        cdef int slot
        for slot in range(SIGNED_FIELDS):
            if not fields.seen >> slot & 1:
                continue
            size = fields.size[slot]
            if slot == PROPERTIES:
                if used + TEXT_MAX > SIGNED_TEXT_MAX:
                    return False
                size = unescape(base + fields.at[slot], base + fields.at[slot] + size, into + used)
                if size < 0:
                    return False
            elif used + size > SIGNED_TEXT_MAX:
                return False
            else:
                memcpy(into + used, base + fields.at[slot], size)
            used += size
        text.text, text.text_bytes = into, used
        text.body = base + send.frame_at + PREFIX_BYTES + get32(base + send.frame_at + 4)
        text.body_bytes = base + send.frame_end - text.body
        text.signature = base + fields.at[SIGNATURE]
        return True

    def prepare(self, Py_ssize_t start, Py_ssize_t stop, Known known not None):
        """Find out where the sends from ``start`` to ``stop`` go and what is stored of their properties.

        Returns:
            Where this ends: at the first request that turns out not to be plain, or at ``stop``.
        """
        cdef Py_ssize_t at = start, number
        assert 0 <= start <= stop <= self.count
        while at < stop:
            if self.sends[at].is_batch and not self._may_be_plain(&self.sends[at], known):
                return at
            for number in range(at, at + self.sends[at].messages):
                if not self._prepare(&self.sends[number], known):
                    return at
            at += self.sends[at].messages
        return stop

    cdef bint _may_be_plain(self, Send* send, Known known) noexcept:
        """Whether a batch asks for nothing special itself."""
        cdef Bytes base = <Bytes>PyBytes_AS_STRING(self.data)
        cdef byte text[TEXT_MAX]
        cdef Bytes raw = base + send.header_text_at
        cdef Py_ssize_t count = unescape(raw, raw + send.header_text_bytes, text)
        return (
            count >= 0
            and send.frame_end - send.body_at <= known.body_bytes_max
            and send.messages <= known.messages_max
            and find_text(text, count, b"WAIT\x01false", 10) == NULL
        )

    cdef bint _prepare(self, Send* send, Known known) except -1:
        cdef Bytes base = <Bytes>PyBytes_AS_STRING(self.data)
        cdef byte text[TEXT_MAX]
        cdef byte rest[TEXT_MAX + 1]
        cdef Bytes user_keys = text
        cdef Bytes raw = base + send.header_text_at
        cdef Py_ssize_t user_bytes = 0, rest_bytes, first_bytes, head_bytes, tail_at, count
        if send.is_batch:
            count = copied_text(base + send.element_text_at, send.element_text_bytes, text)
        else:
            count = unescape(raw, raw + send.header_text_bytes, text)
        if count <= UNIQUE_AT or send.body_bytes > known.body_bytes_max or send.queue_id < 0:
            return False
        cdef Bytes separator = <Bytes>memchr(text, 2, count)
        if separator == NULL or memcmp(text, PyBytes_AS_STRING(UNIQUE_FIRST), UNIQUE_AT):
            return False
        first_bytes = separator - text
        if first_bytes <= UNIQUE_AT or memchr(text + UNIQUE_AT, 1, first_bytes - UNIQUE_AT) != NULL:
            return False
        rest_bytes = count - first_bytes - 1
        memcpy(rest, separator + 1, rest_bytes)
        cdef Bytes keys = <Bytes>find_text(rest, rest_bytes, b"KEYS\x01", 5)
        if keys != NULL:
            head_bytes = keys - rest
            user_keys = separator + 1 + head_bytes + 5
            separator = <Bytes>memchr(user_keys, 2, text + count - user_keys)
            user_bytes = (separator if separator != NULL else text + count) - user_keys
            if user_bytes == 0 or memchr(user_keys, 1, user_bytes) != NULL:
                return False
            # A zero byte stands for the keys.
            rest[head_bytes + 5] = 0
            tail_at = user_keys + user_bytes - text
            memcpy(rest + head_bytes + 6, text + tail_at, count - tail_at)
            rest_bytes = head_bytes + 6 + count - tail_at
        cdef Shape shape = (known.element_shapes if send.is_batch else known.shapes).of(rest, rest_bytes)
        if shape is None:
            return False
        cdef Destination destination = known.destination_of(base + send.topic_at, send.topic_bytes)
        if destination is None or send.queue_id >= destination.queue_count:
            return False
        send.tags_code = shape.tags_code
        # A batch waits, and is counted, as a whole.
        send.waits, send.is_ordered = shape.waits or send.is_batch, shape.is_ordered and not send.is_batch
        send.destination = <PyObject*>destination
        if self.last_kept != send.destination:
            self.last_kept = send.destination
            if self.kept is None:
                self.kept = []
            self.kept.append(destination)
        self._store_text(send, shape, text, first_bytes, user_keys, user_bytes)
        self._store_keys(send, text + UNIQUE_AT, first_bytes - UNIQUE_AT, user_keys, user_bytes)
        return True

    cdef int _store_text(
        self, Send* send, Shape shape, Bytes text, Py_ssize_t first_bytes, Bytes user_keys, Py_ssize_t user_bytes
    ) except -1:
        cdef Py_ssize_t before = PyBytes_GET_SIZE(shape.before), middle = PyBytes_GET_SIZE(shape.middle)
        cdef Py_ssize_t after = PyBytes_GET_SIZE(shape.after)
        cdef Py_ssize_t text_bytes = before + first_bytes + 1 + middle + user_bytes + after
        if self.texts_bytes + text_bytes > self.texts_room:
            self.texts_room = max(2 * self.texts_room, self.texts_bytes + text_bytes, 256)
            self.texts = <byte*>grown(self.texts, self.texts_room)
        cdef byte* into = self.texts + self.texts_bytes
        send.text_at, send.text_bytes = <uint32_t>self.texts_bytes, <uint32_t>text_bytes
        self.texts_bytes += text_bytes
        memcpy(into, PyBytes_AS_STRING(shape.before), before)
        into += before
        memcpy(into, text, first_bytes)
        into[first_bytes] = 2
        into += first_bytes + 1
        memcpy(into, PyBytes_AS_STRING(shape.middle), middle)
        into += middle
        memcpy(into, user_keys, user_bytes)
        memcpy(into + user_bytes, PyBytes_AS_STRING(shape.after), after)
        return 0

    cdef int _store_keys(
        self, Send* send, Bytes unique, Py_ssize_t unique_bytes, Bytes user_keys, Py_ssize_t user_bytes
    ) except -1:
        cdef Bytes end = user_keys + user_bytes
        cdef Bytes blank
        send.key_at, send.key_count = <uint32_t>self.hash_count, 0
        self._add_key(send, unique, unique_bytes)
        while user_keys < end:
            blank = <Bytes>memchr(user_keys, c' ', end - user_keys)
            if blank == NULL:
                blank = end
            if blank > user_keys:
                self._add_key(send, user_keys, blank - user_keys)
            user_keys = blank + 1
        return 0

    cdef int _add_key(self, Send* send, Bytes key, Py_ssize_t key_bytes) except -1:
        if self.hash_count == self.hash_room:
            self.hash_room = self.hash_room * 2 or 8
            self.hashes = <uint32_t*>grown(self.hashes, self.hash_room * sizeof(uint32_t))
            self.powers = <uint32_t*>grown(self.powers, self.hash_room * sizeof(uint32_t))
        self.hashes[self.hash_count] = hash_of(key, key_bytes)
        self.powers[self.hash_count] = power_of_31(key_bytes)
        self.hash_count += 1
        send.key_count += 1
        return 0


cdef int slot_by_name(str name) except -2:
    cdef Py_ssize_t key_bytes
    cdef const char* key = PyUnicode_AsUTF8AndSize(name, &key_bytes)
    return slot_of(<Bytes>key, key_bytes)


cdef void* grown(void* memory, size_t size_bytes) except NULL:
    cdef void* more = PyMem_Realloc(memory, size_bytes)
    if more == NULL:
        raise MemoryError
    return more


# A group.

cdef int64_t group_number = 0
# How often topics have changed, for all brokers of this process.
cdef int64_t times_forgotten = 0

cdef struct Part:
    PyObject* connection
    PyObject* run
    PyObject* born_host
    Py_ssize_t start, stop
    bint is_awaited

cdef struct Queue:
    int64_t next_offset
    uint32_t count
    PyObject* destination
    int32_t queue_id
    byte* into
    Py_ssize_t notice_bytes


cdef class PlainSends:
    """The plain sends of a turn, or of a part of it: appended with one write, and answered together."""

    cdef list kept, resolved
    cdef dict numbers
    cdef Part* parts
    cdef Py_ssize_t part_count, part_room
    cdef Queue* queues
    cdef Py_ssize_t queue_count, queue_room
    cdef readonly Py_ssize_t count
    """Of the messages."""
    cdef readonly Py_ssize_t key_count
    cdef readonly int64_t size_bytes
    """Of their records."""
    cdef readonly int64_t last_place
    cdef int64_t times_forgotten

    def __cinit__(self):
        self.kept = []
        self.times_forgotten = times_forgotten

    def __dealloc__(self):
        PyMem_Free(self.parts)
        PyMem_Free(self.queues)

    def add(self, connection, SendRun run not None, Py_ssize_t start, Py_ssize_t stop, bint is_awaited):
        """Sends of a run that were prepared.

        Args:
            is_awaited: replies wait until the messages are safe, for those who want that.
        """
        cdef bytes born_host = connection.peer_host
        assert 0 <= start < stop <= run.count
        if self.part_count == self.part_room:
            self.part_room = self.part_room * 2 or 16
            self.parts = <Part*>grown(self.parts, self.part_room * sizeof(Part))
        self.kept += (connection, run, born_host)
        self.parts[self.part_count] = Part(
            <PyObject*>connection, <PyObject*>run, <PyObject*>born_host, start, stop, is_awaited
        )
        self.part_count += 1
        self.count += stop - start

    def commands(self):
        """Each request as its connection and its frame, for those who decode it themselves."""
        cdef Py_ssize_t at, number
        return [
            (<object>self.parts[number].connection, (<SendRun>self.parts[number].run).frame(at))
            for number in range(self.part_count)
            for at in range(self.parts[number].start, self.parts[number].stop)
            if (<SendRun>self.parts[number].run).sends[at].messages
        ]

    def measure(self, dict table not None, create, bytes store_host not None):
        """Find the queues of all messages and their places in them, and the sizes of their records.

        Args:
            table: queues by topic and queue id; ``create`` makes one that is missing.
        """
        global group_number
        cdef Py_ssize_t number, at, fixed
        cdef Part* part
        cdef Send* send
        cdef Destination destination
        cdef Queue* queue
        group_number += 1
        self.queue_count = self.key_count = 0
        self.size_bytes = 0
        self.resolved = []
        # Only if topics have changed between two runs, there may be two destinations for one queue.
        self.numbers = None if self.times_forgotten == times_forgotten else {}
        for number in range(self.part_count):
            part = &self.parts[number]
            fixed = fixed_bytes(len(<bytes>part.born_host or store_host), len(store_host))
            for at in range(part.start, part.stop):
                send = &(<SendRun>part.run).sends[at]
                destination = <Destination>send.destination
                if destination.group != group_number:
                    destination.group = group_number
                    destination.table = table.get(destination.topic)
                    memset(destination.queues, 0, destination.queue_count * sizeof(uint32_t))
                send.queue = destination.queues[send.queue_id]
                if send.queue == 0:
                    send.queue = self._resolve(destination, send.queue_id, create)
                queue = &self.queues[send.queue - 1]
                send.queue_offset = queue.next_offset + queue.count
                queue.count += 1
                send.size_bytes = <uint32_t>(
                    fixed + send.body_bytes + PyBytes_GET_SIZE(destination.field) + send.text_bytes
                )
                self.size_bytes += send.size_bytes
                self.key_count += send.key_count

    cdef uint32_t _resolve(self, Destination destination, int32_t queue_id, create) except 0:
        cdef object queue = None
        if destination.table is not None:
            queue = destination.table.get(queue_id)
        if queue is None:
            queue = create(destination.topic, queue_id)
        cdef uint32_t known = 0
        if self.numbers is not None:
            known = self.numbers.get(queue, 0)
            if known:
                destination.queues[queue_id] = known
                return known
        if self.queue_count == self.queue_room:
            self.queue_room = self.queue_room * 2 or 16
            self.queues = <Queue*>grown(self.queues, self.queue_room * sizeof(Queue))
        self.queues[self.queue_count] = Queue(queue.next_offset, 0, <PyObject*>destination, queue_id, NULL, 0)
        self.queue_count += 1
        self.resolved.append(queue)
        if self.numbers is not None:
            self.numbers[queue] = self.queue_count
        destination.queues[queue_id] = <uint32_t>self.queue_count
        return <uint32_t>self.queue_count

    def lay_out(self, int64_t place, int64_t timestamp, bytes store_host not None) -> bytes:
        """The records one after the other, the first of them at ``place``. ``measure`` comes before."""
        cdef bytes records = PyBytes_FromStringAndSize(NULL, self.size_bytes)
        cdef byte* into = <byte*>PyBytes_AS_STRING(records)
        cdef Py_ssize_t number, at, born_bytes, store_bytes = len(store_host)
        cdef Part* part
        cdef SendRun run
        cdef Send* send
        cdef Bytes born_host
        cdef int32_t bits
        for number in range(self.part_count):
            part = &self.parts[number]
            run = <SendRun>part.run
            born = <bytes>part.born_host or store_host
            born_bytes = len(born)
            born_host = <Bytes>PyBytes_AS_STRING(born)
            bits = host_bits(born_bytes, store_bytes)
            for at in range(part.start, part.stop):
                send = &run.sends[at]
                send.place = place
                write_record(
                    into, send, <Bytes>PyBytes_AS_STRING(run.data), run.texts, bits, born_host, born_bytes,
                    timestamp, <Bytes>PyBytes_AS_STRING(store_host), store_bytes,
                )
                self.last_place = place
                into += send.size_bytes
                place += send.size_bytes
        return records

    def entries(self):
        """For each queue: itself, and its new entries."""
        cdef Py_ssize_t number, at
        cdef Part* part
        cdef Send* send
        cdef Queue* queue
        cdef bytearray data
        cdef list found = []
        for number in range(self.queue_count):
            queue = &self.queues[number]
            data = PyByteArray_FromStringAndSize(NULL, queue.count * ENTRY_BYTES)
            queue.into = <byte*>PyByteArray_AS_STRING(data)
            found.append((self.resolved[number], data))
        for number in range(self.part_count):
            part = &self.parts[number]
            for at in range(part.start, part.stop):
                send = &(<SendRun>part.run).sends[at]
                queue = &self.queues[send.queue - 1]
                put64(queue.into, send.place)
                put32(queue.into + 8, <int32_t>send.size_bytes)
                put64(queue.into + 12, send.tags_code)
                queue.into += ENTRY_BYTES
        return found

    def destinations(self):
        """Topics and queue ids of the queues, by columns."""
        cdef Py_ssize_t number
        return (
            [(<Destination>self.queues[number].destination).topic for number in range(self.queue_count)],
            [self.queues[number].queue_id for number in range(self.queue_count)],
        )

    def ends(self):
        """For each queue: itself, and its first and its next offset with these messages."""
        cdef Py_ssize_t number
        return [
            (queue, self.queues[number].next_offset, self.queues[number].next_offset + self.queues[number].count)
            for number, queue in enumerate(self.resolved)
        ]

    def notices(self):
        """For each queue what is told of its messages: of each the tags code, the size of the property text, and that."""
        cdef Py_ssize_t number, at
        cdef Part* part
        cdef SendRun run
        cdef Send* send
        cdef Queue* queue
        cdef bytes data
        for number in range(self.queue_count):
            self.queues[number].notice_bytes = 0
        for number in range(self.part_count):
            part = &self.parts[number]
            for at in range(part.start, part.stop):
                send = &(<SendRun>part.run).sends[at]
                self.queues[send.queue - 1].notice_bytes += NOTICE_HEAD_BYTES + send.text_bytes
        found = []
        for number in range(self.queue_count):
            queue = &self.queues[number]
            data = PyBytes_FromStringAndSize(NULL, queue.notice_bytes)
            queue.into = <byte*>PyBytes_AS_STRING(data)
            found.append(data)
        for number in range(self.part_count):
            part = &self.parts[number]
            run = <SendRun>part.run
            for at in range(part.start, part.stop):
                send = &run.sends[at]
                queue = &self.queues[send.queue - 1]
                put64(queue.into, send.tags_code)
                put32(queue.into + 8, <int32_t>send.text_bytes)
                memcpy(queue.into + NOTICE_HEAD_BYTES, run.texts + send.text_at, send.text_bytes)
                queue.into += NOTICE_HEAD_BYTES + send.text_bytes
        return found

    def keys(self):
        """The hashes of all keys for the index, and the places of their records, by columns."""
        cdef array hashes = clone(array("i"), self.key_count, False)
        cdef array places = clone(array("q"), self.key_count, False)
        cdef Py_ssize_t number, at, key, found = 0
        cdef uint32_t bits
        cdef Part* part
        cdef SendRun run
        cdef Send* send
        for number in range(self.part_count):
            part = &self.parts[number]
            run = <SendRun>part.run
            for at in range(part.start, part.stop):
                send = &run.sends[at]
                for key in range(send.key_at, send.key_at + send.key_count):
                    bits = (<Destination>send.destination).key_prefix * run.powers[key] + run.hashes[key]
                    if bits & 0x80000000u:
                        bits = (0 - bits) & 0x7FFFFFFFu
                    hashes.data.as_ints[found] = <int32_t>bits
                    places.data.as_longlongs[found] = send.place
                    found += 1
        return hashes, places

    def count_puts(self):
        """Count the messages in the rows of their topics."""
        cdef Py_ssize_t number, at
        cdef Part* part
        cdef Send* send
        cdef Destination destination
        for number in range(self.part_count):
            part = &self.parts[number]
            for at in range(part.start, part.stop):
                send = &(<SendRun>part.run).sends[at]
                destination = <Destination>send.destination
                count_message((destination.fifo_row if send.is_ordered else destination.row).data.as_longlongs, send.size_bytes)

    def requests(self, bint held):
        """How many requests of each code have an answer that waits until the messages are safe, or the others."""
        cdef Py_ssize_t number, at, plain = 0, batches = 0
        cdef Part* part
        cdef Send* send
        for number in range(self.part_count):
            part = &self.parts[number]
            for at in range(part.start, part.stop):
                send = &(<SendRun>part.run).sends[at]
                if send.messages and is_held(part, send) == held:
                    if send.code == SEND_V2:
                        plain += 1
                    else:
                        batches += 1
        return {code: count for code, count in ((SEND_V2, plain), (SEND_BATCH, batches)) if count}

    def answers(self, tuple pieces not None, bytes id_prefix not None, int32_t code, bint held):
        """Connections, and the replies to each in one piece.

        Args:
            pieces: of a reply, between its numbers; see ``protocol.send_reply``.
            id_prefix: what ids begin with; the first is in the pieces.
            held: those that wait until the messages are safe, or the others.
        """
        cdef Py_ssize_t number, at, used, room
        cdef Part* part
        cdef SendRun run
        cdef Send* send
        cdef bytes replies
        cdef byte* into
        cdef Py_ssize_t reply_max = PREFIX_BYTES + 5 * NUMBER_DIGITS_MAX
        for piece in pieces:
            reply_max += PyBytes_GET_SIZE(piece)
        found = []
        for number in range(self.part_count):
            part = &self.parts[number]
            if held and not part.is_awaited:
                continue
            run = <SendRun>part.run
            room = 0
            for at in range(part.start, part.stop):
                room += reply_max if run.sends[at].messages else PyBytes_GET_SIZE(id_prefix) + 1 + OFFSET_DIGITS
            replies = PyBytes_FromStringAndSize(NULL, room)
            into = <byte*>PyBytes_AS_STRING(replies)
            used = 0
            for at in range(part.start, part.stop):
                send = &run.sends[at]
                if send.messages and not send.is_oneway and is_held(part, send) == held:
                    used += write_reply(into + used, pieces, id_prefix, code, send)
            if used:
                found.append((<object>part.connection, replies[:used]))
        return found


cdef inline bint is_held(const Part* part, const Send* send) noexcept nogil:
    return part.is_awaited and send.waits and not send.is_oneway


cdef inline void count_message(long long* row, uint32_t size_bytes) noexcept nogil:
    cdef int edge = 0
    while edge < EDGE_COUNT and size_bytes > EDGES[edge]:
        edge += 1
    row[COUNTED] += 1
    row[COUNTED_BYTES] += size_bytes
    row[COUNTED_SIZES + edge] += 1


cdef Py_ssize_t fixed_bytes(Py_ssize_t born_bytes, Py_ssize_t store_bytes):
    """Of a record without body, topic and properties."""
    return head(born_bytes, store_bytes).size + 2


cdef inline void write_record(
    byte* into, const Send* send, Bytes data, Bytes texts, int32_t bits, Bytes born_host, Py_ssize_t born_bytes,
    int64_t timestamp, Bytes store_host, Py_ssize_t store_bytes,
):
    cdef Destination destination = <Destination>send.destination
    cdef Py_ssize_t field_bytes = PyBytes_GET_SIZE(destination.field)
    put32(into, <int32_t>send.size_bytes)
    put32(into + 4, <int32_t><uint32_t>(MAGIC_1 if field_bytes <= 1 + TOPIC_V1_MAX else MAGIC_2))
    put32(into + 8, <int32_t>(crc32_of(data + send.body_at, send.body_bytes) & CRC_BITS))
    put32(into + 12, send.queue_id)
    put32(into + 16, send.flag)
    put64(into + 20, send.queue_offset)
    put64(into + 28, send.place)
    # What clients say of hosts and transactions does not count.
    put32(into + 36, send.sys_flag & ~(HOST_BITS | TRANSACTION_BITS) | bits)
    put64(into + 40, send.born)
    memcpy(into + 48, born_host, born_bytes)
    into += 48 + born_bytes
    put64(into, timestamp)
    memcpy(into + 8, store_host, store_bytes)
    into += 8 + store_bytes
    put32(into, send.reconsume_times)
    put64(into + 4, 0)
    put32(into + 12, <int32_t>send.body_bytes)
    memcpy(into + 16, data + send.body_at, send.body_bytes)
    into += 16 + send.body_bytes
    memcpy(into, PyBytes_AS_STRING(destination.field), field_bytes)
    into += field_bytes
    put16(into, <unsigned short>send.text_bytes)
    memcpy(into + 2, texts + send.text_at, send.text_bytes)


cdef uint32_t MAGIC_1 = MAGIC_V1
cdef uint32_t MAGIC_2 = MAGIC_V2
cdef Py_ssize_t TOPIC_V1_MAX = TOPIC_BYTES_V1_MAX


cdef inline Py_ssize_t write_decimal(byte* into, int64_t number) noexcept nogil:
    cdef byte digits[NUMBER_DIGITS_MAX]
    cdef Py_ssize_t count = 0, at = 0
    cdef uint64_t left = <uint64_t>number
    if number < 0:
        into[0] = c'-'
        at = 1
        left = 0 - left
    while True:
        digits[count] = c'0' + <byte>(left % 10)
        count += 1
        left //= 10
        if left == 0:
            break
    while count:
        count -= 1
        into[at] = digits[count]
        at += 1
    return at


cdef inline Py_ssize_t write_piece(byte* into, tuple pieces, int number):
    cdef bytes piece = pieces[number]
    memcpy(into, PyBytes_AS_STRING(piece), PyBytes_GET_SIZE(piece))
    return PyBytes_GET_SIZE(piece)


cdef inline Py_ssize_t write_offset(byte* into, int64_t place) noexcept nogil:
    cdef int digit
    for digit in range(OFFSET_DIGITS):
        into[digit] = b"0123456789ABCDEF"[<uint64_t>place >> (60 - 4 * digit) & 15]
    return OFFSET_DIGITS


cdef Py_ssize_t write_reply(byte* into, tuple pieces, bytes id_prefix, int32_t code, const Send* send):
    """The reply to a request, whose messages lie one after the other from ``send`` on."""
    cdef Py_ssize_t at = PREFIX_BYTES
    cdef uint32_t number
    at += write_piece(into + at, pieces, 0)
    at += write_decimal(into + at, code)
    at += write_piece(into + at, pieces, 1)
    at += write_offset(into + at, send.place)
    for number in range(1, send.messages):
        into[at] = c','
        memcpy(into + at + 1, PyBytes_AS_STRING(id_prefix), PyBytes_GET_SIZE(id_prefix))
        at += 1 + PyBytes_GET_SIZE(id_prefix)
        at += write_offset(into + at, send[number].place)
    at += write_piece(into + at, pieces, 2)
    at += write_decimal(into + at, send.queue_id)
    at += write_piece(into + at, pieces, 3)
    at += write_decimal(into + at, send.queue_offset)
    at += write_piece(into + at, pieces, 4)
    at += write_decimal(into + at, send.opaque)
    at += write_piece(into + at, pieces, 5)
    put32(into, <int32_t>(at - 4))
    put32(into + 4, <int32_t>(at - PREFIX_BYTES))
    return at
