"""Stored records as the buffers of Arrow columns: the twin of ``cometmq.spark.columns``.

``find`` goes over all records once and notes where their parts and the pairs of their properties lie; each column that
is asked for is copied from there. Both without the interpreter's lock, so that what comes next is received meanwhile.

Of records that are damaged or compressed, hold other messages, or have a property twice, ``find`` gives None: the
Python modules then do all of it, and say what is wrong.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from cometmq.native.big_endian cimport get16, get32, get64

# As in model.messages.record_layout, which says what lies where, and in model.flags.
cdef uint32_t MAGIC_V1 = 0xDAA320A7
cdef uint32_t MAGIC_V2 = 0xDAA320AB
cdef enum:
    FIXED_BYTES = 91
    OFFSET_AT = 20
    PLACE_AT = 28
    FLAGS_AT = 36
    BORN_AT = 40
    BORN_HOST_AT = 48
    HOST_BYTES = 8
    V6_EXTRA = 12
    TAIL_BYTES = 16
    COMPRESSED = 1
    BORN_V6 = 16
    STORE_V6 = 32
    INNER_BATCH = 128 | 64
    NAME_END = 1
    PAIR_END = 2
    PAIRS_MAX = 64
    # Arrow counts the bytes of a column in 32 bits, and none has more of a record than it is long.
    CONTENT_BYTES_MAX = 0x7FFFFFFF

# Parts of a record.
cdef enum:
    TOPIC
    BODY
    KEYS
    TAGS
    MESSAGE_ID
    BORN_HOST
    STORE_HOST
    PARTS

cdef struct Span:
    # Missing where ``at`` is NULL.
    const uint8_t* at
    int64_t size

cdef struct Pair:
    Span name
    Span value

cdef struct Row:
    const uint8_t* start
    # The store timestamp, with the store host behind it.
    const uint8_t* stored
    # The number of attempts, with what comes up to the body behind it.
    const uint8_t* tail
    Span[PARTS] parts
    int64_t first_pair
    int64_t end_pair

_PARTS = {
    "topic": TOPIC,
    "body": BODY,
    "keys": KEYS,
    "tags": TAGS,
    "msgId": MESSAGE_ID,
    "bornHost": BORN_HOST,
    "storeHost": STORE_HOST,
}


def find(
    const uint8_t[::1] data,
    const int64_t[::1] starts,
    const int64_t[::1] sizes,
    const int64_t[::1] physical_offsets,
    int64_t first_offset,
    int64_t last_offset,
    bint with_properties,
    bint with_body,
):
    """The rows of these records, or None where there is one that the Python modules have to see.

    Args:
        physical_offsets: where each record must say that it lies; None if it may lie anywhere.
        first_offset: records of a smaller queue offset are left out, and those behind ``last_offset``.
        with_properties: whether a column is made of them.
    """
    cdef Rows rows = Rows()
    cdef const uint8_t* base = &data[0] if data.shape[0] else NULL
    cdef int64_t number, count = starts.shape[0], end = data.shape[0], total = 0
    cdef bint are_usual = False
    cdef int32_t flags
    cdef Row* row
    rows.data = data
    rows.rows = <Row*>malloc((count + 1) * sizeof(Row))
    if rows.rows is NULL:
        raise MemoryError
    with nogil:
        for number in range(count):
            row = rows.rows + rows.count
            if starts[number] < 0 or not FIXED_BYTES <= sizes[number] <= end - starts[number]:
                break
            if not read_record(row, base + starts[number], sizes[number]):
                break
            flags = get32(row.start + FLAGS_AT)
            if flags & INNER_BATCH == INNER_BATCH or (with_body and flags & COMPRESSED):
                break
            if physical_offsets is not None and get64(row.start + PLACE_AT) != physical_offsets[number]:
                break
            if first_offset <= get64(row.start + OFFSET_AT) <= last_offset:
                total += sizes[number]
                if total > CONTENT_BYTES_MAX:
                    break
                if with_properties and not rows.read_properties(row, row.start + sizes[number]):
                    break
                rows.count += 1
        else:
            are_usual = True
    return rows if are_usual else None


cdef bint read_record(Row* row, const uint8_t* start, int64_t size) noexcept nogil:
    """Where its parts are; whether it is a whole record. Up to the shortest one's size everything can be read."""
    cdef const uint8_t* end = start + size
    cdef const uint8_t* at
    cdef uint32_t magic = <uint32_t>get32(start + 4)
    cdef int32_t flags = get32(start + FLAGS_AT)
    cdef int64_t body_bytes, topic_bytes
    if get32(start) != size or (magic != MAGIC_V1 and magic != MAGIC_V2):
        return False
    memset(row.parts, 0, sizeof(row.parts))
    row.start = start
    row.first_pair = row.end_pair = 0
    row.parts[BORN_HOST].at = start + BORN_HOST_AT
    row.parts[BORN_HOST].size = HOST_BYTES + (V6_EXTRA if flags & BORN_V6 else 0)
    row.stored = start + BORN_HOST_AT + row.parts[BORN_HOST].size
    row.parts[STORE_HOST].at = row.stored + 8
    row.parts[STORE_HOST].size = HOST_BYTES + (V6_EXTRA if flags & STORE_V6 else 0)
    row.tail = row.stored + 8 + row.parts[STORE_HOST].size
    at = row.tail + TAIL_BYTES
    if end - at < 3:
        return False
    body_bytes = get32(at - 4)
    if body_bytes < 0 or end - at < body_bytes + (3 if magic == MAGIC_V1 else 4):
        return False
    row.parts[BODY] = Span(at, body_bytes)
    at += body_bytes
    if magic == MAGIC_V1:
        topic_bytes = at[0]
        at += 1
    else:
        topic_bytes = get16(at)
        at += 2
    row.parts[TOPIC] = Span(at, topic_bytes)
    if end - at < topic_bytes + 2:
        return False
    at += topic_bytes
    return end - at - 2 == get16(at) and is_utf8(row.parts[TOPIC])


cdef bint is_utf8(Span text) noexcept nogil:
    cdef uint64_t word, high = 0
    cdef int64_t at = 0
    while at + 8 <= text.size:
        memcpy(&word, text.at + at, 8)
        high |= word & 0x8080808080808080U
        at += 8
    while at < text.size:
        high |= text.at[at] & 0x80
        at += 1
    if not high:
        return True
    with gil:
        try:
            PyUnicode_DecodeUTF8(<const char*>text.at, text.size, NULL)
            return True
        except UnicodeDecodeError:
            return False


cdef inline bint is_name(Span name, const char* wanted, int64_t size) noexcept nogil:
    return name.size == size and memcmp(name.at, wanted, size) == 0


cdef class Rows:
    """Records that are rows. Valid for as long as nobody changes what they were found in."""

    cdef const uint8_t[::1] data
    cdef Row* rows
    cdef readonly int64_t count
    cdef Pair* pairs
    cdef int64_t pair_count
    cdef int64_t pair_room

    def __dealloc__(self):
        free(self.rows)
        free(self.pairs)

    cdef bint read_properties(self, Row* row, const uint8_t* end) noexcept nogil:
        """A pair needs a name and a value, and parts that have not are skipped. Whether all is usual."""
        cdef const uint8_t* at = row.parts[TOPIC].at + row.parts[TOPIC].size + 2
        cdef const uint8_t* middle
        cdef const uint8_t* stop
        cdef Pair* pair
        cdef int64_t other
        if not is_utf8(Span(at, end - at)):
            return False
        row.first_pair = row.end_pair = self.pair_count
        while at < end:
            stop = <const uint8_t*>memchr(at, PAIR_END, end - at)
            if stop is NULL:
                stop = end
            middle = <const uint8_t*>memchr(at, NAME_END, stop - at) if stop > at else NULL
            if (
                middle is not NULL
                and middle > at
                and stop - middle > 1
                and memchr(middle + 1, NAME_END, stop - middle - 1) is NULL
            ):
                if row.end_pair - row.first_pair == PAIRS_MAX or not self.has_room():
                    return False
                pair = self.pairs + self.pair_count
                pair.name = Span(at, middle - at)
                pair.value = Span(middle + 1, stop - middle - 1)
                for other in range(row.first_pair, self.pair_count):
                    if is_name(pair.name, <const char*>self.pairs[other].name.at, self.pairs[other].name.size):
                        return False
                self.pair_count += 1
                row.end_pair += 1
                if is_name(pair.name, b"KEYS", 4):
                    row.parts[KEYS] = pair.value
                elif is_name(pair.name, b"TAGS", 4):
                    row.parts[TAGS] = pair.value
                elif is_name(pair.name, b"UNIQ_KEY", 8):
                    row.parts[MESSAGE_ID] = pair.value
            at = stop + 1
        return True

    cdef bint has_room(self) noexcept nogil:
        """For one pair more."""
        cdef Pair* larger
        if self.pair_count == self.pair_room:
            larger = <Pair*>realloc(self.pairs, (2 * self.pair_room + 1024) * sizeof(Pair))
            if larger is NULL:
                return False
            self.pairs = larger
            self.pair_room = 2 * self.pair_room + 1024
        return True

    def keep(self, const uint8_t[::1] mask):
        """Only the rows where ``mask`` is not zero."""
        cdef int64_t number, kept = 0
        for number in range(self.count):
            if mask[number]:
                self.rows[kept] = self.rows[number]
                kept += 1
        self.count = kept

    def numbers(self, str name):
        """A column of whole numbers; times in microseconds, bounded to what those can hold."""
        cdef int64_t number, milliseconds
        cdef int64_t most = 0x7FFFFFFFFFFFFFFFLL // 1000
        cdef int at = {"queueId": 12, "flag": 16, "sysFlag": FLAGS_AT, "storedSize": 0}.get(name, -1)
        cdef int wide_at = {"queueOffset": OFFSET_AT, "physicalOffset": PLACE_AT}.get(name, -1)
        cdef bint is_born = name == "bornTimestamp", is_stored = name == "storeTimestamp"
        cdef bint is_wide = wide_at >= 0 or is_born or is_stored
        cdef bytearray column = PyByteArray_FromStringAndSize(NULL, self.count * (8 if is_wide else 4))
        cdef int32_t* narrow = <int32_t*>PyByteArray_AS_STRING(column)
        cdef int64_t* wide = <int64_t*>narrow
        with nogil:
            for number in range(self.count):
                if at >= 0:
                    narrow[number] = get32(self.rows[number].start + at)
                elif wide_at >= 0:
                    wide[number] = get64(self.rows[number].start + wide_at)
                elif is_wide:
                    milliseconds = get64(
                        self.rows[number].start + BORN_AT if is_born else self.rows[number].stored
                    )
                    wide[number] = min(max(milliseconds, -most), most) * 1000
                else:
                    narrow[number] = get32(self.rows[number].tail)
        return column

    def common(self, str name):
        """What a column has in every row, if it is the same everywhere, else None."""
        cdef int part = _PARTS[name]
        cdef int64_t number
        cdef Span first, other
        if not self.count:
            return None
        first = self.rows[0].parts[part]
        for number in range(1, self.count):
            other = self.rows[number].parts[part]
            if other.size != first.size or memcmp(other.at, first.at, first.size):
                return None
        return first.at[:first.size]

    def texts(self, str name):
        """A column of texts or bytes: offsets, content, bits of those that are there, number of those that are not."""
        cdef int part = _PARTS[name]
        cdef int64_t number, filled = 0, missing = 0
        cdef bytearray offsets = PyByteArray_FromStringAndSize(NULL, 4 * (self.count + 1))
        cdef int32_t* edges = <int32_t*>PyByteArray_AS_STRING(offsets)
        cdef bytearray bits = PyByteArray_FromStringAndSize(NULL, (self.count + 7) // 8)
        cdef uint8_t* is_there = <uint8_t*>PyByteArray_AS_STRING(bits)
        cdef bytearray content
        cdef char* to
        cdef Span text
        for number in range(self.count):
            filled += text_bytes(self.rows + number, part)
        content = PyByteArray_FromStringAndSize(NULL, filled)
        to = PyByteArray_AS_STRING(content)
        filled = 0
        with nogil:
            memset(is_there, 0, (self.count + 7) // 8)
            for number in range(self.count):
                edges[number] = <int32_t>filled
                text = self.rows[number].parts[part]
                if text.at is not NULL:
                    memcpy(to + filled, text.at, text.size)
                    filled += text.size
                elif part == MESSAGE_ID:
                    filled += put_offset_id(to + filled, self.rows + number)
                else:
                    missing += 1
                    continue
                is_there[number >> 3] |= <uint8_t>(1 << (number & 7))
            edges[self.count] = <int32_t>filled
        return offsets, content, bits, missing

    def hosts(self, str name):
        """A column of hosts as they are stored, 8 bytes each. None where one of them is of IPv6."""
        cdef int part = _PARTS[name]
        cdef int64_t number
        cdef bytearray column = PyByteArray_FromStringAndSize(NULL, HOST_BYTES * self.count)
        cdef char* to = PyByteArray_AS_STRING(column)
        for number in range(self.count):
            if self.rows[number].parts[part].size != HOST_BYTES:
                return None
            memcpy(to + HOST_BYTES * number, self.rows[number].parts[part].at, HOST_BYTES)
        return column

    def pair_bounds(self):
        """Which pairs are those of a row: the number of its first one, and at last of all of them."""
        cdef int64_t number, count = 0
        cdef bytearray bounds = PyByteArray_FromStringAndSize(NULL, 4 * (self.count + 1))
        cdef int32_t* edges = <int32_t*>PyByteArray_AS_STRING(bounds)
        for number in range(self.count):
            edges[number] = <int32_t>count
            count += self.rows[number].end_pair - self.rows[number].first_pair
        edges[self.count] = <int32_t>count
        return bounds, count

    def pair_texts(self, bint are_values):
        """The names of all pairs, or the values: offsets and content."""
        cdef int64_t number, place, count = 0, filled = 0
        cdef Span text
        for number in range(self.count):
            for place in range(self.rows[number].first_pair, self.rows[number].end_pair):
                filled += self.pairs[place].value.size if are_values else self.pairs[place].name.size
                count += 1
        cdef bytearray offsets = PyByteArray_FromStringAndSize(NULL, 4 * (count + 1))
        cdef bytearray content = PyByteArray_FromStringAndSize(NULL, filled)
        cdef int32_t* edges = <int32_t*>PyByteArray_AS_STRING(offsets)
        cdef char* to = PyByteArray_AS_STRING(content)
        with nogil:
            count = filled = 0
            for number in range(self.count):
                for place in range(self.rows[number].first_pair, self.rows[number].end_pair):
                    text = self.pairs[place].value if are_values else self.pairs[place].name
                    edges[count] = <int32_t>filled
                    memcpy(to + filled, text.at, text.size)
                    filled += text.size
                    count += 1
            edges[count] = <int32_t>filled
        return offsets, content


cdef inline int64_t text_bytes(Row* row, int part) noexcept nogil:
    """What a text takes in its column."""
    if row.parts[part].at is NULL and part == MESSAGE_ID:
        return 2 * (row.parts[STORE_HOST].size + 8)
    return row.parts[part].size


cdef int64_t put_offset_id(char* to, Row* row) noexcept nogil:
    """The id of a message that has none from its producer: store host and physical offset in upper-case hex."""
    cdef const char* digits = b"0123456789ABCDEF"
    cdef int64_t host_bytes = row.parts[STORE_HOST].size, at
    cdef uint8_t byte
    for at in range(host_bytes + 8):
        byte = row.parts[STORE_HOST].at[at] if at < host_bytes else row.start[PLACE_AT + at - host_bytes]
        to[2 * at] = digits[byte >> 4]
        to[2 * at + 1] = digits[byte & 15]
    return 2 * (host_bytes + 8)
