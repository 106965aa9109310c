"""What a client receives: the messages of a pull reply, and the replies to its sends.

Twin of ``model.messages.received_message`` and ``protocol.send_reply``. Only what is plain is read here: records with
two IPv4 hosts and an uncompressed body, replies that say nothing but where a message is stored. Whatever else comes,
damage included, is left to the Python modules.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcmp

from cometmq.native.big_endian cimport get16, get32, get64

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

# Where things lie in a record of two IPv4 hosts; ``model.messages.record_layout`` has the layout.
cdef enum:
    MAGIC_AT = 4
    CRC_AT = 8
    QUEUE_ID_AT = 12
    FLAG_AT = 16
    QUEUE_OFFSET_AT = 20
    PHYSICAL_OFFSET_AT = 28
    SYS_FLAG_AT = 36
    BORN_TIMESTAMP_AT = 40
    BORN_HOST_AT = 48
    STORE_TIMESTAMP_AT = 56
    STORE_HOST_AT = 64
    RECONSUME_TIMES_AT = 72
    PREPARED_AT = 76
    BODY_BYTES_AT = 84
    BODY_AT = 88
    HOST_BYTES = 8
    FIXED_BYTES = 91

    COMPRESSED = 1
    UNUSUAL = 1 | 16 | 32  # compressed, or an IPv6 host

cdef uint32_t MAGIC_V1 = 0xDAA320A7
cdef uint32_t MAGIC_V2 = 0xDAA320AB


@cython.auto_pickle(False)
cdef class MessageFields:
    """A message's attributes, the numbers as they are: no objects are made of them until somebody looks."""

    # Whoever makes a message by hand may give texts of a class of their own, such as StrEnum.
    cdef public object topic
    cdef public object body
    cdef public object body_error
    cdef public object broker_name
    cdef public int64_t body_crc
    cdef public int64_t born_timestamp
    cdef public int64_t flag
    cdef public int64_t physical_offset
    cdef public int64_t prepared_transaction_offset
    cdef public int64_t queue_id
    cdef public int64_t queue_offset
    cdef public int64_t reconsume_times
    cdef public int64_t size_bytes
    cdef public int64_t store_timestamp
    cdef public int64_t sys_flag
    cdef public object _added
    cdef public bytes _born_host
    cdef public object _properties
    cdef public str _properties_text
    cdef public bytes _store_host


def read_all(type kind, buffer, broker_name, added, read, checksum):
    """The messages of a pull reply.

    Args:
        kind: the class of the messages, a subclass of ``MessageFields``.
        read: makes the message at a position of the buffer, or raises what is to be raised.
        checksum: CRC-32.
    """
    cdef Py_buffer view
    cdef const unsigned char* start
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t end
    cdef MessageFields message
    cdef MessageFields before = None
    cdef list messages = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        start = <const unsigned char*>view.buf
        end = view.len
        while at < end:
            message = _plain(kind, start + at, end - at, before, checksum)
            if message is None:
                message = read(at)
            else:
                message.broker_name = broker_name
                message._added = added
            messages.append(message)
            at += message.size_bytes
            before = message
    finally:
        PyBuffer_Release(&view)
    return messages


cdef MessageFields _plain(
    type kind, const unsigned char* at, Py_ssize_t at_hand, MessageFields before, checksum
):
    """The message of the record at an address; None if the record is not plain."""
    cdef uint32_t magic
    cdef int32_t size, body_bytes, sys_flag, crc
    cdef Py_ssize_t topic_bytes, text_at
    cdef const unsigned char* tail
    cdef MessageFields message
    if at_hand < FIXED_BYTES:
        return None
    size = get32(at)
    magic = <uint32_t>get32(at + MAGIC_AT)
    sys_flag = get32(at + SYS_FLAG_AT)
    body_bytes = get32(at + BODY_BYTES_AT)
    if size < FIXED_BYTES or size > at_hand or sys_flag & UNUSUAL:
        return None
    if body_bytes < 0 or body_bytes > size - FIXED_BYTES or get64(at + PHYSICAL_OFFSET_AT) < 0:
        return None
    tail = at + BODY_AT + body_bytes
    if magic == MAGIC_V1:
        topic_bytes = tail[0]
        tail += 1
    elif magic == MAGIC_V2 and body_bytes < size - FIXED_BYTES:
        topic_bytes = get16(tail)
        tail += 2
    else:
        return None
    text_at = tail - at + topic_bytes + 2
    if text_at > size or text_at + get16(tail + topic_bytes) != size:
        return None
    message = <MessageFields>kind.__new__(kind)
    message.body = PyBytes_FromStringAndSize(<const char*>at + BODY_AT, body_bytes)
    crc = get32(at + CRC_AT)
    if body_bytes and <int64_t>checksum(message.body) & 0x7FFFFFFF != <int64_t><uint32_t>crc:
        return None
    message.topic = _topic(tail, topic_bytes, before)
    message._properties_text = _text(at + text_at, size - text_at)
    if message.topic is None or message._properties_text is None:
        return None
    message.size_bytes = size
    message.body_crc = <uint32_t>crc
    message.queue_id = get32(at + QUEUE_ID_AT)
    message.flag = get32(at + FLAG_AT)
    message.queue_offset = get64(at + QUEUE_OFFSET_AT)
    message.physical_offset = get64(at + PHYSICAL_OFFSET_AT)
    message.sys_flag = sys_flag
    message.born_timestamp = get64(at + BORN_TIMESTAMP_AT)
    message._born_host = _host(at + BORN_HOST_AT, None if before is None else before._born_host)
    message.store_timestamp = get64(at + STORE_TIMESTAMP_AT)
    message._store_host = _host(at + STORE_HOST_AT, None if before is None else before._store_host)
    message.reconsume_times = get32(at + RECONSUME_TIMES_AT)
    message.prepared_transaction_offset = get64(at + PREPARED_AT)
    return message


# Most messages of a reply share these with the one before.

cdef bytes _host(const unsigned char* at, bytes before):
    if before is not None and PyBytes_GET_SIZE(before) == HOST_BYTES:
        if memcmp(PyBytes_AS_STRING(before), at, HOST_BYTES) == 0:
            return before
    return PyBytes_FromStringAndSize(<const char*>at, HOST_BYTES)


cdef str _topic(const unsigned char* at, Py_ssize_t size, MessageFields before):
    cdef Py_ssize_t before_size
    cdef const char* before_at
    if before is not None and before.topic is not None:
        before_at = PyUnicode_AsUTF8AndSize(before.topic, &before_size)
        if before_size == size and memcmp(before_at, at, size) == 0:
            return before.topic
    return _text(at, size)


cdef str _text(const unsigned char* at, Py_ssize_t size):
    try:
        return PyUnicode_DecodeUTF8(<const char*>at, size, NULL)
    except UnicodeDecodeError:
        return None


# Replies to sends: int32 length | int32 header length, JSON | header. Nothing comes behind the header.

cdef enum:
    PREFIX_BYTES = 8
    HEADER_BYTES_MAX = 4096
    FLAG_RESPONSE = 1
    IS_PLAIN = 5  # in a waiter of ``remoting.pending``


cdef class _Reply:
    """A header as it is read. Texts are without escapes, numbers are below two billion."""

    cdef const unsigned char* at
    cdef const unsigned char* end
    cdef int64_t code, flag, opaque, queue_offset
    cdef object message_id, transaction_id, region, is_traced
    cdef bint has_offset, has_queue

    cdef bint read(self) except -1:
        """Whether it is a plain header, up to its very end."""
        cdef Py_ssize_t size
        cdef const unsigned char* key
        cdef int64_t version
        cdef bint has_ext = False
        self.code = self.opaque = -1
        self.flag = 0
        self.message_id = self.transaction_id = self.region = None
        self.is_traced = True
        self.has_offset = self.has_queue = False
        if not self.take(b"{"):
            return False
        while True:
            key = self.text(&size)
            if key == NULL or not self.take(b":"):
                return False
            if size == 9 and memcmp(key, b"extFields", 9) == 0:
                # Of two, the last one counts alone.
                if has_ext or not self.read_ext():
                    return False
                has_ext = True
            elif size == 4 and memcmp(key, b"code", 4) == 0:
                if not self.number(&self.code):
                    return False
            elif size == 4 and memcmp(key, b"flag", 4) == 0:
                if not self.number(&self.flag):
                    return False
            elif size == 6 and memcmp(key, b"opaque", 6) == 0:
                if not self.number(&self.opaque):
                    return False
            elif size == 7 and memcmp(key, b"version", 7) == 0:
                if not self.number(&version):
                    return False
            elif (size == 8 and memcmp(key, b"language", 8) == 0) or (
                size == 23 and memcmp(key, b"serializeTypeCurrentRPC", 23) == 0
            ):
                if self.text(&size) == NULL:
                    return False
            else:
                return False
            if not self.take(b","):
                return self.take(b"}") and self.at == self.end

    cdef bint read_ext(self) except -1:
        cdef Py_ssize_t size, value_size
        cdef const unsigned char* key
        cdef const unsigned char* value
        cdef int64_t queue_id
        if not self.take(b"{"):
            return False
        while True:
            key = self.text(&size)
            if key == NULL or not self.take(b":"):
                return False
            value = self.text(&value_size)
            if value == NULL:
                return False
            if size == 5 and memcmp(key, b"msgId", 5) == 0:
                self.message_id = _text(value, value_size)
            elif size == 7 and memcmp(key, b"queueId", 7) == 0:
                self.has_queue = _digits(value, value_size, 9, &queue_id)
            elif size == 11 and memcmp(key, b"queueOffset", 11) == 0:
                self.has_offset = _digits(value, value_size, 18, &self.queue_offset)
            elif size == 10 and memcmp(key, b"MSG_REGION", 10) == 0:
                self.region = _text(value, value_size)
            elif size == 13 and memcmp(key, b"transactionId", 13) == 0:
                self.transaction_id = _text(value, value_size)
            elif size == 8 and memcmp(key, b"TRACE_ON", 8) == 0:
                if value_size == 4 and memcmp(value, b"true", 4) == 0:
                    self.is_traced = True
                elif value_size == 5 and memcmp(value, b"false", 5) == 0:
                    self.is_traced = False
                else:
                    return False
            else:
                return False
            if not self.take(b","):
                return self.take(b"}")

    cdef bint take(self, const char* one) noexcept:
        if self.at >= self.end or self.at[0] != <unsigned char>one[0]:
            return False
        self.at += 1
        return True

    cdef const unsigned char* text(self, Py_ssize_t* size) noexcept:
        """A text in quotes, of ASCII without escapes; NULL if that is not what comes."""
        cdef const unsigned char* start
        if not self.take(b'"'):
            return NULL
        start = self.at
        while self.at < self.end and 0x20 <= self.at[0] < 0x7F:
            if self.at[0] == b'"':
                size[0] = self.at - start
                self.at += 1
                return start
            if self.at[0] == b"\\":
                return NULL
            self.at += 1
        return NULL

    cdef bint number(self, int64_t* into) noexcept:
        """A number from 0 on, as JSON has them: without a zero in front."""
        cdef const unsigned char* start = self.at
        while self.at < self.end and b"0" <= self.at[0] <= b"9":
            self.at += 1
        if self.at - start > 1 and start[0] == b"0":
            return False
        return _digits(start, self.at - start, 9, into)


cdef bint _digits(const unsigned char* at, Py_ssize_t size, Py_ssize_t size_max, int64_t* into) noexcept:
    cdef Py_ssize_t i
    if size < 1 or size > size_max:
        return False
    into[0] = 0
    for i in range(size):
        if not b"0" <= at[i] <= b"9":
            return False
        into[0] = into[0] * 10 + (at[i] - <unsigned char>b"0")
    return True


def answer_plain(data, dict waiters, make) -> int:
    """Answer those who wait for the plain replies that the data begins with; how many bytes those take.

    Args:
        waiters: of ``remoting.pending``, by opaque.
        make: of what a reply says, what its waiter gets.
    """
    cdef Py_buffer view
    cdef const unsigned char* start
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t end
    cdef int32_t length
    cdef _Reply reply = _Reply.__new__(_Reply)
    cdef tuple waiter
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        start = <const unsigned char*>view.buf
        end = view.len
        while end - at >= PREFIX_BYTES:
            length = get32(start + at)
            # The upper byte of the second word is the encoding, 0 for JSON.
            if length < 4 or length > HEADER_BYTES_MAX or get32(start + at + 4) != length - 4:
                break
            if length + 4 > end - at:
                break
            reply.at = start + at + PREFIX_BYTES
            reply.end = start + at + 4 + length
            if not reply.read() or reply.code != 0 or not reply.flag & FLAG_RESPONSE:
                break
            if reply.message_id is None or not reply.has_offset or not reply.has_queue:
                break
            opaque = reply.opaque
            waiter = waiters.get(opaque)
            if waiter is None or not waiter[IS_PLAIN]:
                break
            del waiters[opaque]
            if not waiter[0].done():
                waiter[0].set_result(
                    make(
                        reply.message_id,
                        reply.queue_offset,
                        reply.transaction_id,
                        reply.region,
                        reply.is_traced,
                    )
                )
            at += length + 4
    finally:
        PyBuffer_Release(&view)
    return at
