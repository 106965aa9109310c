"""Records of a master's log, from its bytes to entries of queues and index: no Python object per record.

The twin of the usual case of ``store.recovery.log_follower``: sound records without a transaction, with IPv4 or IPv6 hosts
and properties in ASCII, whose queues go on without a gap. It stops at the first record that is another, which is left to
the follower itself. What lies where in a record says ``model.messages.record_layout``.

Thread rule: the owner of the store.
"""

from cpython.array cimport array, clone, resize_smart
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memchr, memcmp

from cometmq.native.big_endian cimport get16, get32, get64, put32, put64

cdef extern from "crc32.h" nogil:
    void crc32_prepare()
    uint32_t crc32_of(const unsigned char* at, size_t count)

ctypedef unsigned char byte
ctypedef const unsigned char* Bytes

cdef enum:
    ENTRY_BYTES = 20
    BODY_AT_V4 = 88
    HOST_EXTRA = 12
    BORN_V6 = 16
    STORE_V6 = 32
    TRANSACTION_BITS = 12
    RECENT = 16

cdef uint32_t MAGIC_V1 = 0xDAA320A7u
cdef uint32_t MAGIC_V2 = 0xDAA320ABu

crc32_prepare()


cdef struct Record:
    int32_t size, queue_id
    int64_t queue_offset, time
    Bytes topic
    Py_ssize_t topic_bytes
    Bytes text
    Py_ssize_t text_bytes


cdef struct Names:
    Bytes unique_key
    Bytes keys
    Bytes tag
    Py_ssize_t unique_bytes, keys_bytes, tag_bytes


cdef bint read_record(Bytes at, Py_ssize_t room, int64_t place, Record* record) noexcept nogil:
    """Whether a sound record begins here that is one of the usual ones, all of it within ``room``."""
    cdef uint32_t magic
    cdef int32_t sys_flag, body_bytes
    cdef Py_ssize_t body_at = BODY_AT_V4, stored_at = 56, topic_at
    if room < BODY_AT_V4 + 3:
        return False
    record.size, magic, sys_flag = get32(at), <uint32_t>get32(at + 4), get32(at + 36)
    if magic != MAGIC_V1 and magic != MAGIC_V2 or get64(at + 28) != place or sys_flag & TRANSACTION_BITS:
        return False
    if sys_flag & BORN_V6:
        body_at += HOST_EXTRA
        stored_at += HOST_EXTRA
    if sys_flag & STORE_V6:
        body_at += HOST_EXTRA
    if record.size > room or record.size < body_at + 3:
        return False
    body_bytes = get32(at + body_at - 4)
    topic_at = body_at + <Py_ssize_t>body_bytes
    if body_bytes < 0 or topic_at + 3 > record.size:
        return False
    if magic == MAGIC_V1:
        record.topic_bytes = at[topic_at]
        topic_at += 1
    else:
        record.topic_bytes = get16(at + topic_at)
        topic_at += 2
    record.topic = at + topic_at
    topic_at += record.topic_bytes + 2
    if topic_at > record.size or get16(at + topic_at - 2) != record.size - topic_at:
        return False
    record.text, record.text_bytes = at + topic_at, record.size - topic_at
    record.queue_id, record.queue_offset, record.time = get32(at + 12), get64(at + 20), get64(at + stored_at)
    return body_bytes == 0 or crc32_of(at + body_at, body_bytes) & 0x7FFFFFFF == <uint32_t>get32(at + 8)


cdef inline bint is_name(Bytes at, Py_ssize_t count, const char* name, Py_ssize_t name_bytes) noexcept nogil:
    return count == name_bytes and memcmp(at, name, name_bytes) == 0


cdef bint read_names(Bytes at, Bytes end, Names* names) noexcept nogil:
    """The properties that queue and index need; the last of a name counts. False if there is more than ASCII."""
    cdef Bytes pair = at
    cdef Bytes separator
    cdef Bytes value
    cdef Py_ssize_t name_bytes, value_bytes
    names.unique_key = names.keys = names.tag = at
    names.unique_bytes = names.keys_bytes = names.tag_bytes = 0
    while pair < end:
        at = pair
        separator = NULL
        value = NULL
        while at < end and at[0] != 2:
            if at[0] >= 0x80:
                return False
            if at[0] == 1:
                if value == NULL:
                    value = at + 1
                else:
                    separator = at
            at += 1
        # A pair needs a value, and a value holds no separator.
        if value != NULL and separator == NULL and value < at:
            name_bytes, value_bytes = value - 1 - pair, at - value
            if is_name(pair, name_bytes, b"UNIQ_KEY", 8):
                names.unique_key, names.unique_bytes = value, value_bytes
            elif is_name(pair, name_bytes, b"KEYS", 4):
                names.keys, names.keys_bytes = value, value_bytes
            elif is_name(pair, name_bytes, b"TAGS", 4):
                names.tag, names.tag_bytes = value, value_bytes
        pair = at + 1
    return True


cdef inline uint32_t hash_on(uint32_t bits, Bytes text, Py_ssize_t count) noexcept nogil:
    """Java's hash of what is hashed already and ASCII behind it."""
    cdef Py_ssize_t at
    for at in range(count):
        bits = bits * 31 + text[at]
    return bits


cdef class _Queue:
    cdef bytes topic
    cdef int32_t queue_id
    cdef uint32_t prefix
    """The hash that the keys of the topic begin with."""
    cdef int64_t first, next
    cdef bytearray entries

    cdef int add(self, int64_t place, int32_t size, int64_t tags_code) except -1:
        cdef Py_ssize_t at = PyByteArray_GET_SIZE(self.entries)
        PyByteArray_Resize(self.entries, at + ENTRY_BYTES)
        cdef byte* entry = <byte*>PyByteArray_AS_STRING(self.entries) + at
        put64(entry, place)
        put32(entry + 8, size)
        put64(entry + 12, tags_code)
        self.next += 1
        return 0


cdef class Followed:
    """Records in the order of the log, from one place on."""

    cdef dict queues
    cdef PyObject* recent[RECENT]
    """Queues that were used lately, of those above."""
    cdef array hashes, places
    cdef list runs
    """Where the keys of a time begin among all keys, and that time."""
    cdef int64_t run_time
    cdef readonly Py_ssize_t count
    cdef readonly int64_t end
    """Where the next record begins."""
    cdef readonly int64_t last_place, last_time

    def groups(self):
        """For each queue: topic, queue id, the offset of its first entry, and its entries."""
        cdef _Queue queue
        groups = []
        for queue in self.queues.values():
            groups.append((queue.topic, queue.queue_id, queue.first, bytes(queue.entries)))
        return groups

    def keys(self):
        """Runs of keys whose records have one time: hashes, places of the records, time."""
        starts = [start for start, _ in self.runs]
        return [
            (self.hashes[start:stop], self.places[start:stop], time)
            for (start, time), stop in zip(self.runs, [*starts[1:], len(self.hashes)])
        ]

    cdef _Queue queue_of(self, const Record* record, dict prefixes, learn):
        """The queue of a record; None if its topic is not of the usual kind."""
        cdef uint32_t slot = <uint32_t>record.queue_id
        cdef _Queue queue
        if record.topic_bytes:
            slot += record.topic[record.topic_bytes - 1]
        slot %= RECENT
        if self.recent[slot] != NULL:
            queue = <_Queue>self.recent[slot]
            if (
                queue.queue_id == record.queue_id
                and PyBytes_GET_SIZE(queue.topic) == record.topic_bytes
                and memcmp(PyBytes_AS_STRING(queue.topic), record.topic, record.topic_bytes) == 0
            ):
                return queue
        topic = PyBytes_FromStringAndSize(<const char*>record.topic, record.topic_bytes)
        queue = self.queues.get((topic, record.queue_id))
        if queue is None:
            prefix = prefixes.get(topic)
            if prefix is None:
                prefix = learn(topic)
                if prefix is None:
                    return None
            queue = _Queue.__new__(_Queue)
            queue.topic, queue.queue_id, queue.prefix, queue.entries = topic, record.queue_id, prefix, bytearray()
            queue.first = queue.next = record.queue_offset
            self.queues[topic, record.queue_id] = queue
        self.recent[slot] = <PyObject*>queue
        return queue

    cdef int add_keys(self, const Names* names, uint32_t prefix, int64_t time) except -1:
        """The keys of the record at ``end``."""
        cdef Bytes key = names.keys
        cdef Bytes end = names.keys + names.keys_bytes
        cdef Bytes blank
        if names.unique_bytes:
            self.add_key(hash_on(prefix, names.unique_key, names.unique_bytes), time)
        while names.keys_bytes and key < end:
            blank = <Bytes>memchr(key, c' ', end - key)
            if blank == NULL:
                blank = end
            if blank > key:
                self.add_key(hash_on(prefix, key, blank - key), time)
            key = blank + 1
        return 0

    cdef int add_key(self, uint32_t bits, int64_t time) except -1:
        cdef Py_ssize_t at = len(self.hashes)
        if bits & 0x80000000u:
            bits = (0 - bits) & 0x7FFFFFFFu
        if not at or time != self.run_time:
            self.runs.append((at, time))
            self.run_time = time
        resize_smart(self.hashes, at + 1)
        resize_smart(self.places, at + 1)
        self.hashes.data.as_ints[at] = <int32_t>bits
        self.places.data.as_longlongs[at] = self.end
        return 0


def follow(const byte[::1] log not None, int64_t at, int64_t place, Py_ssize_t count_max, dict prefixes not None, learn):
    """What is to be entered of the records from ``at`` on, the byte at ``place`` of the whole log.

    Args:
        prefixes: the hash that the keys of a topic begin with, by the topic's bytes; ``learn`` adds one, or gives None
            for a topic whose records are not of the usual kind.
    """
    cdef Followed found = Followed.__new__(Followed)
    cdef Py_ssize_t room = log.shape[0] - at
    cdef Bytes base
    cdef Record record
    cdef Names names
    cdef _Queue queue
    found.queues, found.runs = {}, []
    found.hashes, found.places = array("i"), array("q")
    found.end = place
    if at < 0 or room <= 0:
        return found
    base = &log[at]
    while found.count < count_max and read_record(base, room, found.end, &record):
        if record.queue_id < 0 or not read_names(record.text, record.text + record.text_bytes, &names):
            break
        queue = found.queue_of(&record, prefixes, learn)
        if queue is None or record.queue_offset != queue.next:
            break
        queue.add(found.end, record.size, <int32_t>hash_on(0, names.tag, names.tag_bytes))
        found.add_keys(&names, queue.prefix, record.time)
        found.last_place, found.last_time = found.end, record.time
        found.count += 1
        found.end += record.size
        base += record.size
        room -= record.size
    return found
