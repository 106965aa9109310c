"""The twins of a pull: ``gather``, that of ``store.read.collect``, walks the entries of a queue and gathers the records
that a pull wants; ``PullCutter`` reads headers of pulls that begin with the text of one that came before.

As long as everything is as usual; otherwise they give up, and the Python modules do it all. They never repair or log.
"""

from cpython.array cimport array, clone, resize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport bsearch, free, malloc
from libc.string cimport memcmp, memcpy

from cometmq.native.big_endian cimport get16, get32, get64
from cometmq.native.expressions cimport BODY_AT, FIXED_BYTES, UNSURE, V6_HOSTS, YES, Program, bytes_at

cdef extern from "crc32.h" nogil:
    void crc32_prepare()
    uint32_t crc32_of(const unsigned char* at, size_t count)

crc32_prepare()

cdef extern from *:
    """
    /* Have the processor fetch the parts of a record that will be looked at; memory is slower than all the rest.
     * A macro, because gcc drops calls of functions that do nothing else. */
    #define FETCH_HEAD(at) (__builtin_prefetch(at), __builtin_prefetch((at) + 64))
    #define FETCH_PROPERTIES(end) (__builtin_prefetch((end) - 128), __builtin_prefetch((end) - 64), __builtin_prefetch((end) - 1))
    """
    void FETCH_HEAD(bytes_at at) nogil
    void FETCH_PROPERTIES(bytes_at end) nogil

# As in files.queue_entry, record_layout and record_check.
cdef enum:
    ENTRY_BYTES = 20
    MAGIC_V1 = 0xDAA320A7
    CRC_MASK = 0x7FFFFFFF
    PLAINLY_CHECKED_MAX = 16384
    # Records looked at meanwhile: as long as memory takes to answer.
    FETCHED_AHEAD = 8

cdef array NO_SIZES = array("i")

cdef struct Span:
    int64_t start
    int64_t end


cdef struct Limits:
    int64_t memory_count
    int64_t memory_bytes
    int64_t disk_count
    int64_t disk_bytes
    int64_t on_disk_below

cdef struct Gathered:
    int64_t examined
    int64_t count
    int64_t total
    int64_t last


cdef int _order(const void* left, const void* right) noexcept nogil:
    cdef int64_t a = (<const int64_t*>left)[0], b = (<const int64_t*>right)[0]
    return (a > b) - (a < b)


cdef class Tags:
    """Whether a tag's hash is among some: what ``set.__contains__`` is in Python."""

    cdef int64_t* _hashes
    cdef size_t _count

    def __cinit__(self, codes):
        # An entry has no room for others.
        fitting = sorted({code for code in codes if -(1 << 63) <= code < 1 << 63})
        self._count = len(fitting)
        self._hashes = <int64_t*>malloc((self._count or 1) * sizeof(int64_t))
        if self._hashes is NULL:
            raise MemoryError
        for number, code in enumerate(fitting):
            self._hashes[number] = code

    def __dealloc__(self):
        free(self._hashes)

    cdef bint has(self, int64_t code) noexcept:
        if self._count == 1:
            return code == self._hashes[0]
        return bsearch(&code, self._hashes, self._count, sizeof(int64_t), _order) is not NULL

    def __call__(self, code):
        return -(1 << 63) <= code < 1 << 63 and self.has(code)


def gather(
    view,
    int64_t log_end,
    int64_t hot_from,
    bint checks_plainly,
    is_sound,
    int32_t queue_id,
    int64_t queue_offset,
    bytes topic_field,
    bytes entries,
    tags,
    int64_t code_min,
    record,
    limits,
    Py_ssize_t joined_bytes_max,
):
    """The fields of ``Collected`` behind its status; None if something is unusual.

    Args:
        view: ``CommitLog.view``.
        checks_plainly: whether the checks here are all that records below ``hot_from`` need.
        is_sound: checks a record of those that is not found sound here; None: then all are left to ``collect``.
        queue_offset: number of the first entry.
        joined_bytes_max: parts that are smaller than this on average are joined.
    """
    cdef Limits most
    cdef Gathered found
    most.memory_count, most.memory_bytes, most.disk_count, most.disk_bytes, most.on_disk_below = limits
    sizes = clone(NO_SIZES, PyBytes_GET_SIZE(entries) // ENTRY_BYTES, zero=False)
    parts = _gather(
        view, log_end, hot_from, checks_plainly, is_sound, queue_id, queue_offset, topic_field, entries, tags, code_min,
        record, &most, joined_bytes_max, (<array>sizes).data.as_ints, &found,
    )
    if parts is None:
        return None
    resize(sizes, found.count)
    return found.examined, parts, sizes.tolist(), found.total, found.last


cdef list _gather(
    view,
    int64_t log_end,
    int64_t hot_from,
    bint checks_plainly,
    is_sound,
    int32_t queue_id,
    int64_t queue_offset,
    bytes topic_field,
    bytes entries,
    tags,
    int64_t code_min,
    record,
    const Limits* limits,
    Py_ssize_t joined_bytes_max,
    int* sizes,
    Gathered* gathered,
):
    """The parts. Args: sizes: room for the size of each record; NULL: these do not matter."""
    cdef Py_buffer buffer
    cdef bytes_at at, found, topic = <bytes_at>PyBytes_AS_STRING(topic_field)
    cdef bytes_at first_entry = <bytes_at>PyBytes_AS_STRING(entries)
    cdef int64_t place, code, total = 0, examined = 0, count = 0
    cdef int32_t size
    cdef Py_ssize_t topic_bytes = PyBytes_GET_SIZE(topic_field), body_bytes
    cdef Tags hashes = tags if type(tags) is Tags else None
    cdef Program program = record if type(record) is Program else None
    cdef int verdict
    cdef int64_t entry_count = PyBytes_GET_SIZE(entries) // ENTRY_BYTES, start, span_bytes, i
    cdef Span* spans
    cdef Py_ssize_t span_count = 0
    cdef list parts
    at = first_entry + (entry_count - 1) * ENTRY_BYTES
    start, place, size = get64(first_entry), get64(at), get32(at + 8)
    # One view from the first record to the last; it takes away at most what a damaged entry says.
    if start < 0 or place < start or place > log_end or size <= 0:
        return None
    span_bytes = place - start + size
    file_part = view(start, span_bytes)
    if file_part is None:
        return None
    PyObject_GetBuffer(file_part, &buffer, PyBUF_SIMPLE)
    spans = <Span*>malloc(entry_count * sizeof(Span))
    try:
        if spans is NULL:
            raise MemoryError
        for i in range(-FETCHED_AHEAD, entry_count):
            if i + FETCHED_AHEAD < entry_count:
                at = first_entry + (i + FETCHED_AHEAD) * ENTRY_BYTES
                place, size, code = get64(at), get32(at + 8), get64(at + 12)
                # Only what is there: damaged entries lead anywhere.
                if place >= start and 128 <= size <= buffer.len and place - start <= buffer.len - size:
                    if hashes is None or code < code_min or hashes.has(code):
                        FETCH_HEAD(<bytes_at>buffer.buf + (place - start))
                        if program is not None:
                            FETCH_PROPERTIES(<bytes_at>buffer.buf + (place - start) + size)
            if i < 0:
                continue
            at = first_entry + i * ENTRY_BYTES
            place, size, code = get64(at), get32(at + 8), get64(at + 12)
            if count:
                if place < limits.on_disk_below:
                    if count >= limits.disk_count or total + size > limits.disk_bytes:
                        break
                elif count >= limits.memory_count or total + size > limits.memory_bytes:
                    break
            if place < start or size <= 0 or size > log_end - place:
                return None
            examined += 1
            if tags is not None and code >= code_min:
                if hashes is not None:
                    if not hashes.has(code):
                        continue
                elif not tags(code):
                    continue
            # Unusual: in another file, not the record of this entry, IPv6 hosts.
            if size > buffer.len - (place - start) or size < FIXED_BYTES:
                return None
            found = <bytes_at>buffer.buf + (place - start)
            if get32(found) != size or get32(found + 12) != queue_id:
                return None
            if get64(found + 20) != queue_offset + examined - 1 or found[39] & V6_HOSTS:
                return None
            body_bytes = get32(found + BODY_AT - 4)
            if body_bytes < 0 or topic_bytes > size - BODY_AT - body_bytes:
                return None
            if memcmp(found + BODY_AT + body_bytes, topic, topic_bytes):
                return None
            if place < hot_from and not (checks_plainly and _is_plainly_sound(found, size, place, topic_bytes)):
                if is_sound is None or not is_sound(place, _slice(file_part, place - start, size)):
                    return None
            if record is not None:
                if program is None:
                    verdict = bool(record(_slice(file_part, place - start, size)))
                else:
                    verdict = program.judge_record(found, size)
                    if verdict == UNSURE:
                        verdict = program.reference(_slice(file_part, place - start, size))
                if verdict != YES:
                    continue
            if span_count and place - start == spans[span_count - 1].end:
                spans[span_count - 1].end += size
            else:
                spans[span_count].start, spans[span_count].end = place - start, place - start + size
                span_count += 1
            if sizes is not NULL:
                sizes[count] = size
            total += size
            count += 1
        if span_count > 1 and total < joined_bytes_max * span_count:
            parts = [memoryview(_joined(<bytes_at>buffer.buf, spans, span_count, total))]
        else:
            parts = [file_part[spans[i].start : spans[i].end] for i in range(span_count)]
        gathered.examined, gathered.count, gathered.total, gathered.last = examined, count, total, place
        return parts
    finally:
        free(spans)
        PyBuffer_Release(&buffer)


cdef class QueueReader:
    """The usual case of ``store.read.reader.Reader.get``: from memory, and from one file of the queue.

    Args:
        is_recent: whether a message of a queue was just written, and so is in memory.
        result: ``GetResult``, and the statuses of one that found messages and of one that found none that match.
        scan_min: a filtered read looks at so many entries at least.
        joined_bytes_max: see ``gather``.
    """

    cdef object _log, _soundness, _queues, _hidden, _is_recent, _result, _found, _unmatched
    cdef Py_ssize_t _joined_bytes_max
    cdef int64_t _code_min, _scan_min, _cached_bytes, _memory_count, _memory_bytes, _any_count

    def __init__(
        self, log, soundness, queues, hidden, is_recent, result, found, unmatched, code_min, scan_min, joined_bytes_max
    ):
        self._log, self._soundness, self._queues, self._hidden = log, soundness, queues, hidden
        self._is_recent = is_recent
        self._result, self._found, self._unmatched = result, found, unmatched
        self._code_min, self._scan_min, self._joined_bytes_max = code_min, scan_min, joined_bytes_max

    def apply(self, config, cached_bytes):
        """Take new limits; so many bytes at the end of the log are in memory."""
        self._cached_bytes = cached_bytes
        self._memory_count, self._memory_bytes = config.memory_count_max, config.memory_bytes_max
        self._any_count = max(config.memory_count_max, config.disk_count_max)

    def get(
        self, topic, queue_id, int64_t offset, int64_t max_count, int64_t max_bytes, tags, record, int64_t scan_max,
        bint may_wait,
    ):
        """None if something is unusual, or would perhaps wait for the disk and may not."""
        cdef int64_t log_end = self._log.end, max_offset, min_offset, count
        cdef Limits limits
        cdef Gathered found
        cdef bytes entries
        cdef dict queues = (<dict>self._queues.table).get(topic)
        queue = None if queues is None else queues.get(queue_id)
        if queue is None or self._hidden.starts or queue.min_for != self._log.start:
            return None
        min_offset, max_offset = queue.min_known, queue.next_offset
        if offset < min_offset or offset >= max_offset or not (may_wait or self._is_recent(queue, offset)):
            return None
        if tags is None and record is None:
            count = min(max_count, self._any_count)
        else:
            count = min(max(self._scan_min, max_count), scan_max)
        entries = self._entries(queue, offset, min(max(count, 1), max_offset - offset))
        if entries is None or get64(<bytes_at>PyBytes_AS_STRING(entries)) < log_end - self._cached_bytes:
            return None
        limits.memory_count = min(self._memory_count, max_count)
        limits.memory_bytes = min(self._memory_bytes, max_bytes)
        limits.disk_count, limits.disk_bytes, limits.on_disk_below = 0, 0, 0
        soundness = self._soundness
        parts = _gather(
            self._log.view, log_end, soundness.hot_from, not soundness.checks_marks, soundness.is_sound, queue_id,
            offset, queue.topic_field, entries, tags, self._code_min, record, &limits, self._joined_bytes_max, NULL,
            &found,
        )
        if parts is None:
            return None
        return self._result(
            self._found if found.count else self._unmatched, offset + found.examined, min_offset, max_offset, parts,
            found.count, found.total, log_end - found.last > self._cached_bytes,
        )

    cdef bytes _entries(self, queue, int64_t offset, int64_t count):
        cdef int64_t first = queue.first_start, file_bytes, start, at = offset * ENTRY_BYTES, size = count * ENTRY_BYTES
        cdef bytes entries
        # What is not written yet is rare among what is not read yet, unless readers are at the end.
        if queue.waiting is not None or first < 0 or at < first or count <= 0:
            entries = queue.read(offset, count, self._queues.open_files)
        else:
            file_bytes = queue.file_bytes
            start = at - at % file_bytes
            if at + size > start + file_bytes:
                entries = queue.read(offset, count, self._queues.open_files)
            else:
                try:
                    entries = self._queues.open_files.get(queue.path(start)).read_at(at - start, size)
                except FileNotFoundError:
                    return None
        return entries if PyBytes_GET_SIZE(entries) == size else None


cdef bint _is_plainly_sound(bytes_at record, int32_t size, int64_t place, Py_ssize_t topic_bytes) noexcept:
    """``record_check.is_sound`` for a small V1 record whose size and topic are right. Some others it does not know.

    A large one is not checked by every read of it: the soundness remembers that.
    """
    cdef Py_ssize_t body_bytes = get32(record + BODY_AT - 4), at = BODY_AT + body_bytes + topic_bytes
    return (
        size <= PLAINLY_CHECKED_MAX
        and <uint32_t>get32(record + 4) == MAGIC_V1
        and get64(record + 28) == place
        and at + 2 <= size
        and at + 2 + get16(record + at) == size
        and (not body_bytes or crc32_of(record + BODY_AT, body_bytes) & CRC_MASK == <uint32_t>get32(record + 8))
    )


cdef object _slice(file_part, int64_t start, int64_t size):
    return file_part[start : start + size]


cdef bytes _joined(bytes_at source, const Span* spans, Py_ssize_t count, Py_ssize_t total):
    cdef bytes joined = PyBytes_FromStringAndSize(NULL, total)
    cdef char* target = PyBytes_AS_STRING(joined)
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(target, source + spans[i].start, spans[i].end - spans[i].start)
        target += spans[i].end - spans[i].start
    return joined


cdef enum:
    PREFIX_BYTES = 8
    # Of a longer header nothing is remembered.
    HEADER_MAX = 1024
    NUMBERS = 4
    DIGITS_MAX = 18
    KNOWN_MAX = 16384

cdef const char* NAMES[NUMBERS]
NAMES[0], NAMES[1], NAMES[2], NAMES[3] = b'queueId":"', b'queueOffset":"', b'commitOffset":"', b'opaque":'
cdef size_t NAME_BYTES[NUMBERS]
NAME_BYTES[0], NAME_BYTES[1], NAME_BYTES[2], NAME_BYTES[3] = 10, 14, 15, 8


cdef class CutPull:
    """A pull whose header, but for four numbers, is one that ``learn`` has read. See ``native.cut_pull``."""

    cdef readonly int32_t code, flag
    cdef readonly object known
    cdef readonly int64_t queue_id, queue_offset, commit_offset, opaque
    cdef readonly Py_ssize_t end
    cdef Py_ssize_t _start
    cdef bytes _data

    def header(self):
        return self._data[self._start + PREFIX_BYTES : self.end]


cdef class PullCutter:
    """Cuts pulls out of what a connection received.

    Args:
        learn: what to know of a header without its numbers, in whose places zero bytes stand; None: nothing, it is to
            be read as all others.
        code: of the requests that are cut.
    """

    cdef object _learn
    cdef int32_t _code
    cdef dict _known
    cdef set _seen

    def __init__(self, learn, code):
        self._learn, self._code, self._known, self._seen = learn, code, {}, set()

    def __call__(self, bytes data not None, Py_ssize_t start, Py_ssize_t frame_bytes_max):
        cdef bytes_at frame = <bytes_at>PyBytes_AS_STRING(data) + start
        cdef Py_ssize_t received = PyBytes_GET_SIZE(data) - start, text_bytes
        cdef int64_t length, header_bytes
        cdef int64_t numbers[NUMBERS]
        cdef char text[HEADER_MAX]
        cdef CutPull pull
        if received < PREFIX_BYTES + 16 or (
            memcmp(frame + PREFIX_BYTES, b'{"code":11,', 11) and memcmp(frame + PREFIX_BYTES, b'{"code":361,', 12)
        ):
            return None
        # JSON is the encoding 0. There is no body.
        length, header_bytes = get32(frame), get32(frame + 4)
        if header_bytes != length - 4 or header_bytes > HEADER_MAX or length > received - 4 or length > frame_bytes_max:
            return None
        text_bytes = _without_numbers(frame + PREFIX_BYTES, frame + 4 + length, numbers, text)
        if text_bytes < 0:
            return None
        found = self._find(PyBytes_FromStringAndSize(text, text_bytes))
        if found is None:
            return None
        pull = CutPull.__new__(CutPull)
        pull.code, pull.known = self._code, found
        pull.queue_id, pull.queue_offset, pull.commit_offset, pull.opaque = numbers[0], numbers[1], numbers[2], numbers[3]
        pull._data, pull._start, pull.end = data, start, start + 4 + length
        return pull

    cdef object _find(self, bytes text):
        cdef dict known = self._known
        cdef set seen = self._seen
        if text in known:
            return known[text]
        # Some clients change a field with each pull, as a signature: of these nothing is kept but that they came.
        once = hash(text)
        if once not in seen:
            if len(seen) >= KNOWN_MAX:
                seen.clear()
            seen.add(once)
            return None
        if len(known) >= KNOWN_MAX:
            known.clear()
        found = known[text] = self._learn(text)
        return found


cdef Py_ssize_t _without_numbers(bytes_at at, bytes_at end, int64_t* numbers, char* text) noexcept nogil:
    """Copies a header without its numbers; how long it is then, -1 if not each of them is there once, plainly written."""
    cdef int number, seen = 0
    cdef char* target = text
    cdef unsigned char before, now = 0
    cdef bytes_at first
    while at < end:
        before, now = now, at[0]
        target[0] = <char>now
        target += 1
        at += 1
        # The start of a key: a quote within a text is escaped.
        if now != c'"' or (before != c',' and before != c'{'):
            continue
        for number in range(NUMBERS):
            if end - at > <Py_ssize_t>NAME_BYTES[number] and not memcmp(at, NAMES[number], NAME_BYTES[number]):
                if seen >> number & 1:
                    return -1
                seen |= 1 << number
                memcpy(target, at, NAME_BYTES[number])
                target += NAME_BYTES[number]
                at += NAME_BYTES[number]
                first = at
                numbers[number] = 0
                while at < end and at - first < DIGITS_MAX and c'0' <= at[0] <= c'9':
                    numbers[number] = numbers[number] * 10 + (at[0] - c'0')
                    at += 1
                if at == first or at == end or (first[0] == c'0' and at - first > 1):
                    return -1
                if (number == 0 or number == NUMBERS - 1) and numbers[number] > 0x7FFFFFFF:
                    return -1
                target[0] = 0
                target += 1
                break
    return target - text if seen == (1 << NUMBERS) - 1 else -1
