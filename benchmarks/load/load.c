/* A load program for brokers that speak RocketMQ's remoting protocol. One thread, epoll, no library beyond libc.
 *
 *     load send    --address 127.0.0.1:10911 --connections 4 --in-flight 64 --body 1024 --seconds 5 [--batch 32]
 *     load pull    --address ... --connections 8 --queues 8 --seconds 5     (the topic was filled by `send` before)
 *     load latency --address ... --connections 4 --queues 4 --rate 5000 --seconds 5
 *     load pull    --awake ...      never sleeping while it waits
 *     load pull    --filter tag|sql ...   one message in ten, of what `send --marked` with the same --queues filled
 *     load send    --account NAME:SECRET ...   every request signed, as a broker with accounts wants it
 *     load send|pull --echo ...     the same work against canned replies: how fast this program could go
 *
 * It judges while it measures. A reply counts only when its code, its opaque and its fields are what the request
 * deserves; a pulled message only when its queue offset is the next one and its body is, byte for byte, what a sender
 * of this program writes. It prints one JSON line; the exit code is 0 only when everything was right:
 * 1 = wrong replies, 2 = wrong usage, 3 = connection lost or replies missing.
 *
 * Only loopback addresses are accepted, and every run ends by itself: this is a yardstick, not a weapon.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The servers' own: who loads them should spend little on what it does not measure. RocketMQ's check it, too. */
#include "../../src/cometmq/native/sha1.h"

enum {
    SEND_V2 = 310, SEND_BATCH = 320, PULL = 11, CREATE_TOPIC = 17, MAX_OFFSET = 30,
    SUCCESS = 0, BUSY = 2, NOT_FOUND = 19, RETRY_IMMEDIATELY = 20,
    CONNECTIONS_MAX = 2048, IN_FLIGHT_MAX = 4096, QUEUES_MAX = 1024, TOPICS_MAX = 100000, BATCH_MAX = 512,
    BODY_MIN = 16, BODY_MAX = 1 << 20, SECONDS_MAX = 600, GRACE_SECONDS = 15, PULL_COUNT = 32,
    FRAME_MAX = 16 << 20, READ_BYTES = 256 << 10, ERRORS_MAX = 1000, HEADER_ROOM = 1024,
    MARKED_EVERY = 10,
    RECORD_QUEUE_OFFSET = 20, RECORD_BODY_LENGTH = 84, RECORD_BODY = 88, MAGIC = 0xDAA320A7 - (1LL << 32),
};
#define SECOND UINT64_C(1000000000)
/* Latency is taken once the pulls are parked and the caches warm. */
#define SETTLE_NS (SECOND / 2)
/* With --awake it looks for replies for so long before it sleeps. */
#define AWAKE_NS (SECOND / 2000)
/* Opaques keep ten digits and stay below 2^31, as Java's int does. */
#define OPAQUE_BASE UINT64_C(1000000000)
#define OPAQUE_SPAN (UINT64_C(1) << 30)

typedef enum { MODE_SEND, MODE_PULL, MODE_LATENCY } load_mode;
typedef enum { FILTER_NONE, FILTER_TAG, FILTER_SQL } filter_kind;

static struct {
    load_mode mode;
    const char *mode_name, *topic, *broker, *account, *secret;
    struct sockaddr_in address;
    uint64_t connections, in_flight, body, batch, queues, topics, count, rate, receivers;
    double seconds;
    bool echo, create, busy_ok, awake, marked;
    filter_kind filter;
} opt = {
    .topic = "LoadTopic", .broker = "bench", .connections = 4, .in_flight = 64, .body = 1024, .batch = 1,
    .queues = 4, .topics = 1, .rate = 1000, .receivers = 4, .seconds = 5, .create = true,
};

static void fail(int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(exit_code);
}

static uint64_t wrong_replies;

/* Only the first ones are told: one cause tends to spoil every reply. */
static void wrong(const char *format, ...)
{
    if (wrong_replies++ < 3) {
        va_list arguments;
        va_start(arguments, format);
        fputs("load: wrong reply: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Log-linear: 64 steps per power of two, so a percentile is true to 1.6 %. */
typedef struct {
    uint64_t counts[64 * 64], total, max;
} histogram;

static void record(histogram *h, uint64_t ns)
{
    unsigned power = ns < 64 ? 0 : 63 - (unsigned)__builtin_clzll(ns) - 5;
    h->counts[power * 64 + (ns >> power)]++;
    h->total++;
    if (ns > h->max)
        h->max = ns;
}

static double percentile_us(const histogram *h, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)h->total), seen = 0;
    for (unsigned i = 0; i < 64 * 64; i++) {
        seen += h->counts[i];
        if (seen > wanted)
            return (double)((uint64_t)(i % 64) << (i / 64)) / 1000.0;
    }
    return (double)h->max / 1000.0;
}

static void print_histogram(const char *name, const histogram *h)
{
    if (h->total)
        printf(",\"%s\":{\"p50\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f,\"count\":%llu}", name,
               percentile_us(h, 0.5), percentile_us(h, 0.99), percentile_us(h, 0.999), (double)h->max / 1000.0,
               (unsigned long long)h->total);
}

typedef struct {
    char *data;
    size_t start, end, room;
} buffer;

static char *reserve(buffer *b, size_t bytes)
{
    if (b->start == b->end)
        b->start = b->end = 0;
    if (b->start && b->end + bytes > b->room) {
        memmove(b->data, b->data + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }
    if (b->end + bytes > b->room) {
        b->room = (b->end + bytes) * 2;
        b->data = realloc(b->data, b->room);
        if (!b->data)
            fail(3, "out of memory");
    }
    return b->data + b->end;
}

static uint32_t get32(const char *p)
{
    uint32_t value;
    memcpy(&value, p, 4);
    return ntohl(value);
}

static uint64_t get64(const char *p)
{
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static char *put32(char *p, uint32_t value)
{
    value = htonl(value);
    memcpy(p, &value, 4);
    return p + 4;
}

static char *put64(char *p, uint64_t value)
{
    return put32(put32(p, (uint32_t)(value >> 32)), (uint32_t)value);
}

static char *put_bytes(char *p, const char *bytes, size_t count)
{
    memcpy(p, bytes, count);
    return p + count;
}
#define LITERAL(p, text) put_bytes(p, text, sizeof(text) - 1)

static char *put_text(char *p, const char *text)
{
    return put_bytes(p, text, strlen(text));
}

static char *put_number(char *p, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do
        digits[sizeof digits - ++count] = (char)('0' + value % 10);
    while (value /= 10);
    return put_bytes(p, digits + sizeof digits - count, count);
}

static char *put_hex(char *p, uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *p++ = "0123456789ABCDEF"[value >> shift & 15];
    return p;
}

static char pattern[BODY_MAX];
static uint64_t run_id; /* half of every UNIQ_KEY, so that no two runs share a key */

/* Body of a message: due time, sequence number, then text that a receiver can compare. */
static char *put_body(char *p, uint64_t sequence, uint64_t due_ns)
{
    p = put64(put64(p, due_ns), sequence);
    return put_bytes(p, pattern + BODY_MIN, opt.body - BODY_MIN);
}

/* The number of a message among those of its queue, by which one in MARKED_EVERY is marked: TAGS=TagB and n=0. */
static uint64_t mark_of(uint64_t sequence)
{
    return sequence / opt.queues % MARKED_EVERY;
}

static char *put_topic(char *p, uint64_t number)
{
    p = put_text(p, opt.topic);
    return opt.topics > 1 ? put_number(LITERAL(p, "-"), number) : p;
}

/* SHA-1 and HMAC (RFC 3174, 2104), for requests that carry a signature. The key's two blocks are worked in once. */
typedef struct {
    uint32_t h[5];
    uint64_t bytes;
    unsigned char block[64];
} sha1;

static const sha1 sha1_start = {.h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}};
static sha1 inner_start, outer_start;

static void sha1_add(sha1 *s, const void *data, size_t count)
{
    const unsigned char *p = data;
    size_t have = s->bytes % 64;
    s->bytes += count;
    if (have) {
        size_t taken = count < 64 - have ? count : 64 - have;
        memcpy(s->block + have, p, taken);
        p += taken;
        count -= taken;
        if (have + taken < 64)
            return;
        sha1_of(s->h, s->block, 1);
    }
    sha1_of(s->h, p, count / 64);
    memcpy(s->block, p + count / 64 * 64, count % 64);
}

static void sha1_end(sha1 *s, unsigned char *digest)
{
    static const unsigned char padding[64] = {0x80};
    char length[8];
    put64(length, s->bytes * 8);
    sha1_add(s, padding, 1 + (119 - s->bytes % 64) % 64);
    sha1_add(s, length, 8);
    for (int i = 0; i < 5; i++)
        put32((char *)digest + 4 * i, s->h[i]);
}

static void prepare_signing(void)
{
    sha1_prepare();
    unsigned char block[64];
    const unsigned char pads[] = {0x36, 0x5C};
    for (int i = 0; i < 2; i++) {
        memset(block, pads[i], sizeof block);
        for (size_t at = 0; opt.secret[at]; at++)
            block[at] ^= (unsigned char)opt.secret[at];
        sha1 *start = i ? &outer_start : &inner_start;
        *start = sha1_start;
        sha1_add(start, block, sizeof block);
    }
}

/* Base64 of the HMAC of what was added to a copy of inner_start. */
static char *put_signature(char *p, sha1 *inner)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char digest[21] = {0};
    sha1_end(inner, digest);
    sha1 outer = outer_start;
    sha1_add(&outer, digest, 20);
    sha1_end(&outer, digest);
    for (int i = 0; i < 21; i += 3) {
        uint32_t word = (uint32_t)digest[i] << 16 | (uint32_t)digest[i + 1] << 8 | digest[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *p++ = digits[word >> shift & 63];
    }
    p[-1] = '=';
    return p;
}

/* A frame grows in place: 8 bytes kept free for the lengths, JSON header, body. */
static char *open_frame(buffer *out, size_t body_bytes)
{
    return reserve(out, 8 + HEADER_ROOM + strlen(opt.topic) + strlen(opt.broker) + body_bytes) + 8;
}

static char *close_header(buffer *out, char *p, uint64_t opaque)
{
    char *frame = out->data + out->end;
    p = put_number(LITERAL(p, "},\"flag\":0,\"language\":\"JAVA\",\"opaque\":"), opaque);
    p = LITERAL(p, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":409}");
    put32(frame + 4, (uint32_t)(p - frame - 8));
    return p;
}

static void close_frame(buffer *out, char *p)
{
    char *frame = out->data + out->end;
    put32(frame, (uint32_t)(p - frame - 4));
    out->end += (size_t)(p - frame);
}

#define MEMBER_PROPERTIES 32 + sizeof("UNIQ_KEY..WAIT.true.TAGS.TagA") - 1

static char *put_member(char *p, uint64_t sequence, uint64_t due_ns)
{
    p = put32(p, (uint32_t)(22 + opt.body + MEMBER_PROPERTIES));
    p = put32(put32(put32(p, 0), 0), 0); /* magic, CRC and flag: the broker fills them in */
    p = put_body(put32(p, (uint32_t)opt.body), sequence, due_ns);
    *p++ = 0;
    *p++ = (char)(MEMBER_PROPERTIES);
    p = put_hex(put_hex(LITERAL(p, "UNIQ_KEY\1"), run_id), sequence);
    return LITERAL(p, "\2WAIT\1true\2TAGS\1TagA");
}

static char *put_members(char *p, uint64_t sequence, uint64_t due_ns)
{
    if (opt.batch == 1)
        return put_body(p, sequence, due_ns);
    for (uint64_t i = 0; i < opt.batch; i++)
        p = put_member(p, sequence + i, due_ns);
    return p;
}

/* Account and signature: over the values of all fields in the order of their keys, capitals first, and the body. */
static char *put_signed(char *p, uint64_t topic, uint64_t queue, uint64_t born_ms, uint64_t sequence, uint64_t due_ns)
{
    static buffer content;
    content.start = content.end = 0;
    char *first = reserve(&content, HEADER_ROOM + opt.batch * (opt.body + 128)), *q = first;
    q = LITERAL(put_topic(LITERAL(put_text(q, opt.account), "load"), topic), "TBW1024");
    q = LITERAL(put_number(LITERAL(put_number(q, queue), "0"), born_ms), "0");
    if (opt.batch > 1)
        q = LITERAL(q, "WAIT\1true0falsetrue");
    else {
        q = put_hex(put_hex(LITERAL(q, "UNIQ_KEY\1"), run_id), sequence);
        q = LITERAL(q, "\2WAIT\1true\2TAGS\1TagA0falsefalse");
    }
    q = put_members(put_text(q, opt.broker), sequence, due_ns);
    sha1 inner = inner_start;
    sha1_add(&inner, first, (size_t)(q - first));
    p = LITERAL(put_text(LITERAL(p, "\"AccessKey\":\""), opt.account), "\",\"Signature\":\"");
    return LITERAL(put_signature(p, &inner), "\",");
}

/* SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE with the header of a Java 4.9.8 client, key for key. */
static void write_send(buffer *out, uint64_t opaque, uint64_t sequence, uint64_t due_ns)
{
    bool is_batch = opt.batch > 1;
    uint64_t request = sequence / opt.batch;
    uint64_t topic = request % opt.topics, queue = request / opt.topics % opt.queues, born_ms = wall_ms();
    char *p = open_frame(out, opt.batch * (opt.body + 128));
    p = LITERAL(p, "{\"code\":");
    p = put_number(p, is_batch ? SEND_BATCH : SEND_V2);
    p = LITERAL(p, ",\"extFields\":{");
    if (opt.account)
        p = put_signed(p, topic, queue, born_ms, sequence, due_ns);
    p = put_topic(LITERAL(p, "\"a\":\"load\",\"b\":\""), topic);
    p = LITERAL(p, "\",\"c\":\"TBW102\",\"d\":\"4\",\"e\":\"");
    p = put_number(p, queue);
    p = put_number(LITERAL(p, "\",\"f\":\"0\",\"g\":\""), born_ms);
    p = LITERAL(p, "\",\"h\":\"0\",\"i\":\"");
    if (is_batch)
        p = LITERAL(p, "WAIT\\u0001true\",\"j\":\"0\",\"k\":\"false\",\"m\":\"true\",\"n\":\"");
    else {
        p = put_hex(put_hex(LITERAL(p, "UNIQ_KEY\\u0001"), run_id), sequence);
        p = LITERAL(p, "\\u0002WAIT\\u0001true\\u0002TAGS\\u0001Tag");
        *p++ = opt.marked && !mark_of(sequence) ? 'B' : 'A';
        if (opt.marked)
            p = put_number(LITERAL(p, "\\u0002n\\u0001"), mark_of(sequence));
        p = LITERAL(p, "\",\"j\":\"0\",\"k\":\"false\",\"m\":\"false\",\"n\":\"");
    }
    p = close_header(out, LITERAL(put_text(p, opt.broker), "\""), opaque);
    close_frame(out, put_members(p, sequence, due_ns));
}

/* PULL_MESSAGE that brings its own subscription (sysFlag 4), so that no heartbeat is needed; 2 asks for long polling. */
static void write_pull(buffer *out, uint64_t opaque, uint64_t queue, uint64_t offset, bool may_suspend)
{
    char *p = open_frame(out, 0);
    p = LITERAL(p, "{\"code\":11,\"extFields\":{\"consumerGroup\":\"load\",\"topic\":\"");
    p = put_number(LITERAL(put_topic(p, 0), "\",\"queueId\":\""), queue);
    p = put_number(LITERAL(p, "\",\"queueOffset\":\""), offset);
    p = put_number(LITERAL(p, "\",\"maxMsgNums\":\""), PULL_COUNT);
    p = put_number(LITERAL(p, "\",\"sysFlag\":\""), may_suspend ? 6 : 4);
    p = LITERAL(p, "\",\"commitOffset\":\"0\",\"suspendTimeoutMillis\":\"15000\",\"subscription\":\"");
    p = put_text(p, opt.filter == FILTER_SQL ? "n < 1" : opt.filter == FILTER_TAG ? "TagB" : "*");
    p = LITERAL(p, "\",\"subVersion\":\"1\",\"expressionType\":\"");
    p = LITERAL(put_text(p, opt.filter == FILTER_SQL ? "SQL92" : "TAG"), "\",\"bname\":\"");
    close_frame(out, close_header(out, LITERAL(put_text(p, opt.broker), "\""), opaque));
}

static void write_create(buffer *out, uint64_t opaque, uint64_t topic)
{
    char *p = open_frame(out, 0);
    p = put_topic(LITERAL(p, "{\"code\":17,\"extFields\":{\"topic\":\""), topic);
    p = put_number(LITERAL(p, "\",\"defaultTopic\":\"TBW102\",\"readQueueNums\":\""), opt.queues);
    p = put_number(LITERAL(p, "\",\"writeQueueNums\":\""), opt.queues);
    p = LITERAL(p, "\",\"perm\":\"6\",\"topicFilterType\":\"SINGLE_TAG\",\"topicSysFlag\":\"0\",\"order\":\"false\"");
    close_frame(out, close_header(out, p, opaque));
}

static void write_max_offset(buffer *out, uint64_t opaque, uint64_t queue)
{
    char *p = open_frame(out, 0);
    p = put_topic(LITERAL(p, "{\"code\":30,\"extFields\":{\"topic\":\""), 0);
    p = LITERAL(put_number(LITERAL(p, "\",\"queueId\":\""), queue), "\",\"bname\":\"");
    close_frame(out, close_header(out, LITERAL(put_text(p, opt.broker), "\""), opaque));
}

typedef struct {
    const char *header, *body;
    size_t header_bytes, body_bytes;
} frame;

/* Takes one whole frame off the buffer; false when more bytes are needed. The frame points into the buffer. */
static bool next_frame(buffer *in, frame *f)
{
    const char *p = in->data + in->start;
    size_t have = in->end - in->start;
    if (have < 8)
        return false;
    uint32_t length = get32(p), word = get32(p + 4);
    if (length < 4 || length > FRAME_MAX || word >> 24 || (word & 0xFFFFFF) > length - 4)
        fail(3, "malformed frame: length %u, header word %08x (JSON headers were asked for)", length, word);
    if (have < 4 + (size_t)length)
        return false;
    *f = (frame){p + 8, p + 8 + word, word, length - 4 - word};
    in->start += 4 + (size_t)length;
    return true;
}

/* A number under a key, bare or as text. Quotes inside of JSON text are escaped, so the quoted key cannot be text. */
static bool number_of(const frame *f, const char *quoted_key, int64_t *value)
{
    size_t key_bytes = strlen(quoted_key);
    const char *end = f->header + f->header_bytes, *p = memmem(f->header, f->header_bytes, quoted_key, key_bytes);
    if (!p)
        return false;
    p += key_bytes;
    while (p < end && (*p == ':' || *p == '"' || *p == ' '))
        p++;
    bool negative = p < end && *p == '-';
    p += negative;
    if (p == end || *p < '0' || *p > '9')
        return false;
    for (*value = 0; p < end && *p >= '0' && *p <= '9'; p++)
        *value = *value * 10 + (*p - '0');
    if (negative)
        *value = -*value;
    return true;
}

static int64_t must_number(const frame *f, const char *quoted_key)
{
    int64_t value = -1;
    if (!number_of(f, quoted_key, &value))
        wrong("no %s in %.*s", quoted_key, (int)f->header_bytes, f->header);
    return value;
}

static uint64_t commas_in_message_id(const frame *f)
{
    uint64_t commas = 0;
    const char *end = f->header + f->header_bytes, *p = memmem(f->header, f->header_bytes, "\"msgId\":\"", 9);
    if (!p)
        return UINT64_MAX;
    for (p += 9; p < end && *p != '"'; p++)
        commas += *p == ',';
    return commas;
}

typedef struct {
    uint64_t opaque, queue, sent_ns;
    bool is_busy;
} slot;

typedef struct {
    int fd;
    bool is_puller, wants_write;
    buffer in, out;
    slot *slots;
    uint32_t slot_count, busy, *free, free_count;
} connection;

static struct {
    uint64_t sequence, sent, answered, requests, bytes, busy, received, started_ns, deadline_ns, ended_ns;
    uint64_t offsets[QUEUES_MAX], ends[QUEUES_MAX], matched[QUEUES_MAX];
    uint64_t opaque;
    bool is_over;
    histogram reply, receive;
} run;

static connection connections[2 * CONNECTIONS_MAX];
static uint64_t connection_count;
static int poll_fd, timer_fd = -1;

static int connect_to_target(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&opt.address, sizeof opt.address) < 0)
        fail(3, "cannot connect to port %u: %s", ntohs(opt.address.sin_port), strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void watch(int fd, void *what, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events, .data.ptr = what};
    if (epoll_ctl(poll_fd, operation, fd, &event) < 0)
        fail(3, "epoll_ctl: %s", strerror(errno));
}

static connection *open_connection(bool is_puller, uint32_t slot_count)
{
    connection *c = &connections[connection_count++];
    *c = (connection){.fd = connect_to_target(), .is_puller = is_puller, .slot_count = slot_count};
    c->slots = calloc(slot_count, sizeof *c->slots);
    c->free = calloc(slot_count, sizeof *c->free);
    if (!c->slots || !c->free)
        fail(3, "out of memory");
    for (uint32_t i = 0; i < slot_count; i++)
        c->free[c->free_count++] = slot_count - 1 - i;
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    watch(c->fd, c, EPOLLIN, EPOLL_CTL_ADD);
    return c;
}

/* The slot is part of the opaque, so a reply finds its request at once, in whatever order replies come. */
static slot *take_slot(connection *c, uint64_t sent_ns)
{
    uint32_t index = c->free[--c->free_count];
    slot *s = &c->slots[index];
    uint64_t generation = run.opaque++ % (OPAQUE_SPAN / IN_FLIGHT_MAX);
    s->opaque = OPAQUE_BASE + generation * IN_FLIGHT_MAX + index;
    s->sent_ns = sent_ns;
    s->is_busy = true;
    c->busy++;
    return s;
}

static slot *give_back_slot(connection *c, uint64_t opaque)
{
    uint64_t index = (opaque - OPAQUE_BASE) % IN_FLIGHT_MAX;
    if (opaque < OPAQUE_BASE || index >= c->slot_count)
        return NULL;
    slot *s = &c->slots[index];
    if (!s->is_busy || s->opaque != opaque)
        return NULL;
    s->is_busy = false;
    c->busy--;
    c->free[c->free_count++] = (uint32_t)index;
    return s;
}

static void flush(connection *c)
{
    while (c->out.start < c->out.end) {
        ssize_t written = send(c->fd, c->out.data + c->out.start, c->out.end - c->out.start, MSG_NOSIGNAL);
        if (written < 0 && errno != EAGAIN && errno != EINTR)
            fail(3, "connection lost while writing: %s", strerror(errno));
        if (written < 0 && errno == EAGAIN)
            break;
        if (written > 0)
            c->out.start += (size_t)written;
    }
    bool wants_write = c->out.start < c->out.end;
    if (wants_write != c->wants_write) {
        c->wants_write = wants_write;
        watch(c->fd, c, wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
}

static bool has_more_to_send(void)
{
    return !run.is_over && (!opt.count || run.sent < opt.count);
}

static void send_one(connection *c, uint64_t due_ns)
{
    slot *s = take_slot(c, due_ns);
    write_send(&c->out, s->opaque, run.sequence, due_ns);
    run.sequence += opt.batch;
    run.sent += opt.batch;
}

static void fill(connection *c)
{
    uint64_t now = now_ns();
    while (c->free_count && has_more_to_send())
        send_one(c, now);
}

static void on_send_reply(const frame *f, const slot *s, uint64_t now)
{
    if (must_number(f, "\"queueOffset\"") < 0)
        return;
    if (opt.batch > 1 && commas_in_message_id(f) != opt.batch - 1) {
        wrong("a batch of %llu got %.*s", (unsigned long long)opt.batch, (int)f->header_bytes, f->header);
        return;
    }
    run.requests++;
    run.answered += opt.batch;
    if (opt.mode != MODE_LATENCY || s->sent_ns >= run.started_ns + SETTLE_NS)
        record(&run.reply, now - s->sent_ns);
}

static void pull_one(connection *c, uint64_t queue, uint64_t now)
{
    slot *s = take_slot(c, now);
    s->queue = queue;
    write_pull(&c->out, s->opaque, queue, run.offsets[queue], opt.mode == MODE_LATENCY);
}

static bool is_record_right(const char *p, size_t left, uint64_t offset)
{
    if (left < RECORD_BODY || get32(p) > left || get32(p) < RECORD_BODY + opt.body)
        wrong("pull reply ends inside of a record");
    else if (get32(p + 4) != (uint32_t)MAGIC)
        wrong("record with magic %08x", get32(p + 4));
    else if (opt.filter ? get64(p + RECORD_QUEUE_OFFSET) < offset : get64(p + RECORD_QUEUE_OFFSET) != offset)
        wrong("queue offset %llu where %llu was due", (unsigned long long)get64(p + RECORD_QUEUE_OFFSET),
              (unsigned long long)offset);
    else if (get32(p + RECORD_BODY_LENGTH) != opt.body)
        wrong("body of %u bytes", get32(p + RECORD_BODY_LENGTH));
    else if (memcmp(p + RECORD_BODY + BODY_MIN, pattern + BODY_MIN, opt.body - BODY_MIN) != 0)
        wrong("body of queue offset %llu is not what was sent", (unsigned long long)offset);
    else if (opt.filter && mark_of(get64(p + RECORD_BODY + 8)))
        wrong("message %llu is not marked", (unsigned long long)get64(p + RECORD_BODY + 8));
    else
        return true;
    return false;
}

/* One that was passed over, or lost, cannot be told from its place: brokers take sends of several connections in any
 * order. But a tenth of each queue is due. */
static void check_matched(uint64_t queue)
{
    if (opt.filter && run.matched[queue] * MARKED_EVERY < run.ends[queue] * 9 / 10)
        wrong("%llu of %llu messages of queue %llu came through the filter", (unsigned long long)run.matched[queue],
              (unsigned long long)run.ends[queue], (unsigned long long)queue);
    run.matched[queue] = 0;
}

static void on_pull_reply(const frame *f, const slot *s, uint64_t now)
{
    const char *p = f->body, *end = f->body + f->body_bytes;
    uint64_t offset = run.offsets[s->queue], next = offset, count = 0;
    for (; p < end; p += get32(p), count++) {
        if (!is_record_right(p, (size_t)(end - p), next))
            return;
        next = get64(p + RECORD_QUEUE_OFFSET) + 1;
        uint64_t due_ns = get64(p + RECORD_BODY);
        if (opt.mode == MODE_LATENCY && due_ns >= run.started_ns + SETTLE_NS)
            record(&run.receive, now - due_ns);
    }
    uint64_t told = (uint64_t)must_number(f, "\"nextBeginOffset\"");
    if (opt.filter ? told < next || told == offset || told > run.ends[s->queue] : count == 0 || told != next) {
        wrong("%llu messages from offset %llu got %.*s", (unsigned long long)count, (unsigned long long)offset,
              (int)f->header_bytes, f->header);
        return;
    }
    run.received += count;
    run.bytes += f->body_bytes;
    run.offsets[s->queue] = told;
    if (opt.mode == MODE_PULL) {
        run.requests++;
        run.matched[s->queue] += count;
        record(&run.reply, now - s->sent_ns);
        if (told >= run.ends[s->queue]) {
            check_matched(s->queue);
            run.offsets[s->queue] = 0;
        }
    }
}

static bool is_expected_code(const connection *c, int64_t code)
{
    if (code == BUSY && opt.busy_ok && !c->is_puller) {
        run.busy++;
        return true;
    }
    /* A long poll may end without a message; a pull of a backlog may not, unless no message is left that matches. */
    return code == SUCCESS || (code == RETRY_IMMEDIATELY && opt.filter) || (c->is_puller && opt.mode == MODE_LATENCY && (code == NOT_FOUND || code == RETRY_IMMEDIATELY));
}

static void on_frame(connection *c, const frame *f, uint64_t now)
{
    int64_t code = must_number(f, "\"code\""), flag = must_number(f, "\"flag\"");
    slot *s = give_back_slot(c, (uint64_t)must_number(f, "\"opaque\""));
    if (!s) {
        wrong("nobody asked for %.*s", (int)f->header_bytes, f->header);
        return;
    }
    if (!(flag & 1) || !is_expected_code(c, code))
        wrong("%.*s", (int)f->header_bytes, f->header);
    else if ((code == SUCCESS || (code == RETRY_IMMEDIATELY && opt.filter)) && now <= run.deadline_ns + (opt.mode == MODE_LATENCY ? GRACE_SECONDS * SECOND : 0))
        (c->is_puller ? on_pull_reply : on_send_reply)(f, s, now);
    /* Messages sent at the last moment are still to come, so the receivers of `latency` go on until the end. */
    if (c->is_puller && (opt.mode == MODE_LATENCY || !run.is_over))
        pull_one(c, s->queue, now);
}

static void on_readable(connection *c)
{
    char *room = reserve(&c->in, READ_BYTES);
    ssize_t got = recv(c->fd, room, c->in.room - c->in.end, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        fail(3, "connection lost after %llu replies: %s", (unsigned long long)run.requests,
             got ? strerror(errno) : "closed by the broker");
    if (got < 0)
        return;
    c->in.end += (size_t)got;
    uint64_t now = now_ns();
    for (frame f; next_frame(&c->in, &f);)
        on_frame(c, &f, now);
}

/* Open loop: what is due is sent, however slow replies are, and latency counts from when it was due. */
static void send_what_is_due(void)
{
    static uint64_t turn;
    uint64_t expirations, now = now_ns();
    if (read(timer_fd, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
        fail(3, "timer: %s", strerror(errno));
    for (uint64_t due; has_more_to_send() && (due = run.started_ns + run.sent * SECOND / opt.rate) <= now;) {
        connection *c = &connections[turn++ % opt.connections];
        if (!c->free_count)
            break;
        send_one(c, due);
    }
    for (uint64_t i = 0; i < opt.connections; i++)
        flush(&connections[i]);
    uint64_t next = run.started_ns + run.sent * SECOND / opt.rate;
    if (next <= now)
        next = now + SECOND / 1000;
    struct itimerspec at = {.it_value = {(time_t)(next / SECOND), (long)(next % SECOND)}};
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static bool is_finished(void)
{
    for (uint64_t i = 0; i < connection_count; i++)
        if (connections[i].busy && !(connections[i].is_puller && opt.mode == MODE_LATENCY))
            return false;
    /* A message that was refused as busy will never be received. */
    return opt.mode != MODE_LATENCY || run.received + run.busy >= run.sent;
}

static void check_time(uint64_t now)
{
    if (!run.is_over && opt.mode != MODE_PULL && opt.count && run.sent >= opt.count)
        run.is_over = true;
    if (!run.is_over && (now >= run.deadline_ns || wrong_replies >= ERRORS_MAX))
        run.is_over = true;
    if (now > run.deadline_ns + GRACE_SECONDS * SECOND)
        fail(3, "%llu sent, %llu answered, %llu received, and nothing more came for %d s",
             (unsigned long long)run.sent, (unsigned long long)run.answered, (unsigned long long)run.received,
             GRACE_SECONDS);
}

/* To wake a sleeping core takes tens of microseconds, about what a broker needs to answer. Clients do sleep while they
 * wait; --awake shows what a broker does without that. It takes a core for itself: for one connection alone. */
static int wait_for_events(struct epoll_event *events, int capacity, int timeout_ms)
{
    if (opt.awake)
        for (uint64_t until = now_ns() + AWAKE_NS; now_ns() < until;) {
            int count = epoll_wait(poll_fd, events, capacity, 0);
            if (count)
                return count;
        }
    return epoll_wait(poll_fd, events, capacity, timeout_ms);
}

static void loop(void)
{
    struct epoll_event events[256];
    while (!(run.is_over && is_finished()) && wrong_replies < 2 * ERRORS_MAX) {
        int count = wait_for_events(events, 256, 100);
        for (int i = 0; i < count; i++) {
            connection *c = events[i].data.ptr;
            if (!c) {
                send_what_is_due();
                continue;
            }
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                on_readable(c);
            if (!c->is_puller && opt.mode == MODE_SEND)
                fill(c);
            flush(c);
        }
        check_time(now_ns());
    }
    run.ended_ns = now_ns();
}

static frame call(int fd, buffer *out, buffer *in)
{
    frame f;
    for (; out->start < out->end;) {
        ssize_t written = send(fd, out->data + out->start, out->end - out->start, MSG_NOSIGNAL);
        if (written <= 0)
            fail(3, "connection lost while writing: %s", strerror(errno));
        out->start += (size_t)written;
    }
    while (!next_frame(in, &f)) {
        char *room = reserve(in, READ_BYTES);
        ssize_t got = recv(fd, room, READ_BYTES, 0);
        if (got <= 0)
            fail(3, "no reply to a preparing request: %s", got ? strerror(errno) : "closed by the broker");
        in->end += (size_t)got;
    }
    int64_t code;
    if (!number_of(&f, "\"code\"", &code) || code != SUCCESS)
        fail(1, "preparing request was answered %.*s", (int)f.header_bytes, f.header);
    return f;
}

static void prepare(void)
{
    int fd = connect_to_target();
    struct timeval patience = {.tv_sec = GRACE_SECONDS};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    buffer out = {0}, in = {0};
    uint64_t opaque = OPAQUE_BASE;
    for (uint64_t i = 0; opt.create && opt.mode != MODE_PULL && i < opt.topics; i++) {
        write_create(&out, opaque++, i);
        call(fd, &out, &in);
    }
    for (uint64_t queue = 0; opt.mode != MODE_SEND && queue < opt.queues; queue++) {
        write_max_offset(&out, opaque++, queue);
        frame f = call(fd, &out, &in);
        run.ends[queue] = (uint64_t)must_number(&f, "\"offset\"");
        if (opt.mode == MODE_PULL && run.ends[queue] == 0)
            fail(1, "queue %llu of %s holds no message to pull", (unsigned long long)queue, opt.topic);
        run.offsets[queue] = opt.mode == MODE_LATENCY ? run.ends[queue] : 0;
    }
    close(fd);
    free(out.data);
    free(in.data);
}

static void start(void)
{
    uint64_t pullers = opt.mode == MODE_PULL ? opt.connections : opt.mode == MODE_LATENCY ? opt.receivers : 0;
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (uint64_t i = 0; opt.mode != MODE_PULL && i < opt.connections; i++)
        open_connection(false, (uint32_t)(opt.mode == MODE_LATENCY ? IN_FLIGHT_MAX : opt.in_flight));
    for (uint64_t i = 0; i < pullers; i++)
        open_connection(true, (uint32_t)((opt.queues + pullers - 1) / pullers));
    run.started_ns = now_ns();
    run.deadline_ns = run.started_ns + (uint64_t)(opt.seconds * 1e9);
    connection *first_puller = connections + connection_count - pullers;
    for (uint64_t queue = 0; pullers && queue < opt.queues; queue++)
        pull_one(first_puller + queue % pullers, queue, run.started_ns);
    for (uint64_t i = 0; i < connection_count; i++) {
        if (opt.mode == MODE_SEND)
            fill(&connections[i]);
        flush(&connections[i]);
    }
    if (opt.mode == MODE_LATENCY) {
        prctl(PR_SET_TIMERSLACK, 1);
        timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        watch(timer_fd, NULL, EPOLLIN, EPOLL_CTL_ADD);
        struct itimerspec soon = {.it_value = {0, 1}};
        timerfd_settime(timer_fd, 0, &soon, NULL);
    }
}

/* The trivial server of `--echo`: cuts frames, finds code and opaque, copies a prepared answer. */
static size_t canned_pull_body(char *body)
{
    char *p = body;
    for (uint64_t i = 0; i < PULL_COUNT; i++) {
        char *r = p;
        size_t bytes = RECORD_BODY + opt.body + 3 + strlen(opt.topic);
        memset(r, 0, bytes);
        put32(put32(r, (uint32_t)bytes), (uint32_t)MAGIC);
        put64(r + RECORD_QUEUE_OFFSET, i);
        put32(r + RECORD_BODY_LENGTH, (uint32_t)opt.body);
        put_body(r + RECORD_BODY, opt.filter ? i * opt.queues * MARKED_EVERY : i, 0);
        p += bytes;
    }
    return (size_t)(p - body);
}

static void answer(buffer *out, const frame *f, const char *pull_body, size_t pull_bytes)
{
    int64_t code = must_number(f, "\"code\""), opaque = must_number(f, "\"opaque\"");
    size_t body_bytes = code == PULL ? pull_bytes : 0;
    char *begin = reserve(out, 8 + HEADER_ROOM + 34 * opt.batch + body_bytes), *p = begin + 8;
    p = LITERAL(p, "{\"code\":0,\"extFields\":{");
    if (code == PULL)
        p = LITERAL(p, "\"suggestWhichBrokerId\":\"0\",\"nextBeginOffset\":\"32\",\"minOffset\":\"0\",\"maxOffset\":\"32\"");
    else if (code == MAX_OFFSET)
        p = LITERAL(p, "\"offset\":\"32\"");
    else if (code == SEND_V2 || code == SEND_BATCH) {
        p = LITERAL(p, "\"queueId\":\"0\",\"TRACE_ON\":\"true\",\"MSG_REGION\":\"DefaultRegion\",\"queueOffset\":\"0\",\"msgId\":\"");
        for (uint64_t i = 0; i < opt.batch; i++)
            p = LITERAL(LITERAL(p, "7F00000100002A9F0000000000000000"), ",");
        p[-1] = '"';
    }
    p = put_number(LITERAL(p, "},\"flag\":1,\"language\":\"JAVA\",\"opaque\":"), (uint64_t)opaque);
    p = LITERAL(p, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":407}");
    put32(begin + 4, (uint32_t)(p - begin - 8));
    p = put_bytes(p, pull_body, body_bytes);
    put32(begin, (uint32_t)(p - begin - 4));
    out->end += (size_t)(p - begin);
}

static void serve_canned(int listener)
{
    char *pull_body = malloc((RECORD_BODY + opt.body + 3 + strlen(opt.topic)) * PULL_COUNT);
    size_t pull_bytes = canned_pull_body(pull_body);
    struct epoll_event events[256];
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch(listener, NULL, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        int count = wait_for_events(events, 256, -1);
        for (int i = 0; i < count; i++) {
            connection *c = events[i].data.ptr;
            if (!c) {
                c = calloc(1, sizeof *c);
                int on = 1;
                c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                watch(c->fd, c, EPOLLIN, EPOLL_CTL_ADD);
                continue;
            }
            char *room = reserve(&c->in, READ_BYTES);
            ssize_t got = recv(c->fd, room, c->in.room - c->in.end, 0);
            if (got == 0) {
                close(c->fd);
                continue;
            }
            c->in.end += got > 0 ? (size_t)got : 0;
            for (frame f; next_frame(&c->in, &f);)
                answer(&c->out, &f, pull_body, pull_bytes);
            flush(c);
        }
    }
}

static pid_t start_canned_server(void)
{
    socklen_t bytes = sizeof opt.address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    opt.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&opt.address, bytes) < 0 || listen(listener, CONNECTIONS_MAX) < 0 ||
        getsockname(listener, (struct sockaddr *)&opt.address, &bytes) < 0)
        fail(3, "cannot listen: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_canned(listener);
    }
    close(listener);
    return child;
}

static uint64_t bounded(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || value < min || value > max)
        fail(2, "--%s %s: expected a number from %llu to %llu", name, text, (unsigned long long)min,
             (unsigned long long)max);
    return value;
}

static void parse_address(const char *text)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host)
        fail(2, "--address %s: expected 127.0.0.1:PORT", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    opt.address.sin_family = AF_INET;
    opt.address.sin_port = htons((uint16_t)bounded("address", colon + 1, 1, 65535));
    if (inet_pton(AF_INET, host, &opt.address.sin_addr) != 1 || ntohl(opt.address.sin_addr.s_addr) >> 24 != 127)
        fail(2, "--address %s: only loopback addresses (127.x.x.x) are accepted", text);
}

static void parse_seconds(const char *text)
{
    char *end;
    opt.seconds = strtod(text, &end);
    if (*end || end == text || !(opt.seconds > 0 && opt.seconds <= SECONDS_MAX))
        fail(2, "--seconds %s: expected more than 0, at most %d", text, SECONDS_MAX);
}

static void check_topic(const char *name, const char *text)
{
    size_t bytes = strlen(text);
    if (!bytes || bytes > 100 || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != bytes)
        fail(2, "--%s %s: expected 1 to 100 letters, digits, - or _", name, text);
}

static void parse_account(char *text)
{
    char *colon = strchr(text, ':');
    if (!colon || colon == text || colon - text > 100 || !colon[1] || strlen(colon + 1) > 64)
        fail(2, "--account %s: expected NAME:SECRET, at most 100 and 64 characters", text);
    *colon = 0;
    check_topic("account", opt.account = text);
    opt.secret = colon + 1;
    prepare_signing();
}

static void parse_mode(int argc, char **argv)
{
    static const char *const names[] = {"send", "pull", "latency"};
    for (unsigned i = 0; argc > 1 && i < 3; i++)
        if (strcmp(argv[1], names[i]) == 0) {
            opt.mode = (load_mode)i;
            opt.mode_name = names[i];
            return;
        }
    fail(2, "expected send, pull or latency first; see the head of the source for the rest");
}

static void parse_filter(const char *text)
{
    opt.filter = strcmp(text, "tag") == 0 ? FILTER_TAG : strcmp(text, "sql") == 0 ? FILTER_SQL : FILTER_NONE;
    if (!opt.filter)
        fail(2, "--filter %s: expected tag or sql", text);
}

static void parse_arguments(int argc, char **argv)
{
    static const struct option options[] = {
        {"address", 1, 0, 'a'}, {"connections", 1, 0, 'c'}, {"in-flight", 1, 0, 'k'}, {"body", 1, 0, 'b'},
        {"batch", 1, 0, 'n'}, {"seconds", 1, 0, 's'}, {"count", 1, 0, 'm'}, {"topic", 1, 0, 't'},
        {"topics", 1, 0, 'T'}, {"queues", 1, 0, 'q'}, {"rate", 1, 0, 'r'}, {"receivers", 1, 0, 'R'},
        {"broker", 1, 0, 'B'}, {"echo", 0, 0, 'e'}, {"no-create", 0, 0, 'C'}, {"busy-ok", 0, 0, 'y'}, {"awake", 0, 0, 'w'},
        {"account", 1, 0, 'A'}, {"marked", 0, 0, 'M'}, {"filter", 1, 0, 'F'}, {0},
    };
    parse_mode(argc, argv);
    optind = 2;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (o) {
        case 'a': parse_address(optarg); break;
        case 'c': opt.connections = bounded("connections", optarg, 1, CONNECTIONS_MAX); break;
        case 'k': opt.in_flight = bounded("in-flight", optarg, 1, IN_FLIGHT_MAX); break;
        case 'b': opt.body = bounded("body", optarg, BODY_MIN, BODY_MAX); break;
        case 'n': opt.batch = bounded("batch", optarg, 1, BATCH_MAX); break;
        case 's': parse_seconds(optarg); break;
        case 'm': opt.count = bounded("count", optarg, 1, UINT64_C(1000000000)); break;
        case 't': check_topic("topic", opt.topic = optarg); break;
        case 'T': opt.topics = bounded("topics", optarg, 1, TOPICS_MAX); break;
        case 'q': opt.queues = bounded("queues", optarg, 1, QUEUES_MAX); break;
        case 'r': opt.rate = bounded("rate", optarg, 1, 10000000); break;
        case 'R': opt.receivers = bounded("receivers", optarg, 1, CONNECTIONS_MAX); break;
        case 'B': check_topic("broker", opt.broker = optarg); break;
        case 'e': opt.echo = true; break;
        case 'C': opt.create = false; break;
        case 'y': opt.busy_ok = true; break;
        case 'w': opt.awake = true; break;
        case 'A': parse_account(optarg); break;
        case 'M': opt.marked = true; break;
        case 'F': parse_filter(optarg); break;
        default: exit(2);
        }
    if (opt.echo ? opt.address.sin_port || opt.mode == MODE_LATENCY : !opt.address.sin_port)
        fail(2, "expected either --address 127.0.0.1:PORT or, for send and pull, --echo");
    if (opt.mode == MODE_LATENCY && opt.batch > 1)
        fail(2, "latency is measured message by message: no --batch");
    if (opt.mode != MODE_SEND && opt.topics > 1)
        fail(2, "--topics is for send");
    if (opt.marked && (opt.mode != MODE_SEND || opt.batch > 1 || opt.topics > 1 || opt.account))
        fail(2, "--marked is for send, one by one, to one topic, without an account");
    if (opt.filter && opt.mode != MODE_PULL)
        fail(2, "--filter is for pull");
    if (opt.account && (opt.mode != MODE_SEND || (opt.create && !opt.echo)))
        fail(2, "--account is for send with --no-create: only sends are signed");
}

static void report(void)
{
    /* The clock stops at the deadline: what was answered later was not counted either. */
    uint64_t end = run.ended_ns < run.deadline_ns ? run.ended_ns : run.deadline_ns;
    double seconds = (double)(end - run.started_ns) / 1e9;
    uint64_t messages = opt.mode == MODE_PULL ? run.received : run.answered;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"mode\":\"%s\",\"connections\":%llu,\"in_flight\":%llu,\"body\":%llu,\"batch\":%llu,\"topics\":%llu,"
           "\"queues\":%llu,\"seconds\":%.3f,\"messages\":%llu,\"requests\":%llu,\"per_second\":%.0f,\"sent\":%llu,"
           "\"received\":%llu,\"busy\":%llu,\"wrong\":%llu,\"cpu_seconds\":%.3f",
           opt.mode_name, (unsigned long long)opt.connections, (unsigned long long)opt.in_flight,
           (unsigned long long)opt.body, (unsigned long long)opt.batch, (unsigned long long)opt.topics,
           (unsigned long long)opt.queues, seconds, (unsigned long long)messages, (unsigned long long)run.requests,
           (double)messages / seconds, (unsigned long long)run.sent, (unsigned long long)run.received,
           (unsigned long long)run.busy, (unsigned long long)wrong_replies, cpu);
    print_histogram("reply_us", &run.reply);
    print_histogram("receive_us", &run.receive);
    puts("}");
}

int main(int argc, char **argv)
{
    parse_arguments(argc, argv);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = "The quick brown fox jumps over the lazy dog. "[i % 45];
    if (getrandom(&run_id, sizeof run_id, 0) != sizeof run_id)
        fail(3, "getrandom: %s", strerror(errno));
    pid_t canned = opt.echo ? start_canned_server() : 0;
    prepare();
    start();
    loop();
    if (canned > 0)
        kill(canned, SIGKILL);
    report();
    return wrong_replies ? 1 : 0;
}
