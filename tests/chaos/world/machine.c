/* Stands between a server and its system library (LD_PRELOAD), so that a test is the master of its machine:

   - what a sync has made durable is copied to a shadow file, page by page; "power loss" puts the shadows in place
     of the files (machine.py);
   - syncs fail while the control page says so;
   - the wall clock is off by what the control page says;
   - the machine's boot id comes from a file.

   CHAOS_CONTROL is the control page, CHAOS_SHADOW the directory of shadows, CHAOS_ROOT the disk, CHAOS_BOOT the boot id.
   Shadows are named by inode and generation: renames do not concern them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>

#define PAGE 4096
#define CHUNK (64 * PAGE)

struct control {
    volatile int64_t sync_fails;
    volatile int64_t clock_offset_ns;
};

static struct control nothing;
static struct control *control = &nothing;
static const char *shadow, *boot, *root_path;
static dev_t root_device;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    struct stat root;
    const char *path = getenv("CHAOS_CONTROL");
    shadow = getenv("CHAOS_SHADOW");
    boot = getenv("CHAOS_BOOT");
    root_path = getenv("CHAOS_ROOT");
    if (!path || !shadow || !boot || !root_path || stat(root_path, &root)) {
        shadow = NULL;
        return;
    }
    root_device = root.st_dev;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        void *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED) control = page;
        close(fd);
    }
}

static void copy_changed(int from, int to, off_t start, off_t end) {
    static char live[CHUNK], kept[CHUNK];
    while (start < end) {
        size_t wanted = end - start < CHUNK ? (size_t)(end - start) : CHUNK;
        ssize_t count = pread(from, live, wanted, start);
        if (count <= 0) return;
        ssize_t old = pread(to, kept, (size_t)count, start);
        for (ssize_t at = 0; at < count; at += PAGE) {
            size_t size = count - at < PAGE ? (size_t)(count - at) : PAGE;
            if (old < at + (ssize_t)size || memcmp(live + at, kept + at, size))
                if (pwrite(to, live + at, size, start + at) < 0) abort();
        }
        start += count;
    }
}

static void keep(int fd) {
    struct stat file;
    char name[4096];
    long generation = 0;
    int saved = errno;
    if (!shadow || fstat(fd, &file) || !S_ISREG(file.st_mode) || file.st_dev != root_device) return;
    /* The descriptor may be for writing only. */
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int from = open(name, O_RDONLY | O_CLOEXEC);
    if (from < 0) { errno = saved; return; }
    if (ioctl(from, FS_IOC_GETVERSION, &generation)) generation = 0;
    snprintf(name, sizeof name, "%s/%lu-%u", shadow, (unsigned long)file.st_ino, (unsigned)generation);
    pthread_mutex_lock(&mutex);
    int to = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (to < 0 || ftruncate(to, file.st_size)) abort();
    off_t start = 0;
    while (start < file.st_size) {
        off_t data = lseek(from, start, SEEK_DATA);
        if (data < 0) break;
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || hole > file.st_size) hole = file.st_size;
        copy_changed(from, to, data - data % PAGE, hole);
        start = hole;
    }
    close(to);
    pthread_mutex_unlock(&mutex);
    close(from);
    errno = saved;
}

static int keep_path(const char *path, const struct stat *file, int type, struct FTW *where) {
    (void)file; (void)where;
    if (type == FTW_F) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) { keep(fd); close(fd); }
    }
    return 0;
}

static int fails(void) {
    if (!control->sync_fails) return 0;
    errno = EIO;
    return 1;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    if (fails()) return -1;
    keep(fd);
    return real(fd);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    if (fails()) return -1;
    keep(fd);
    return real(fd);
}

int syncfs(int fd) {
    REAL(int, "syncfs", int);
    if (fails()) return -1;
    if (shadow) nftw(root_path, keep_path, 16, FTW_PHYS);
    /* The real one would wait for the disks of everybody on this machine. */
    (void)real; (void)fd;
    return 0;
}

int msync(void *address, size_t length, int flags) {
    REAL(int, "msync", void *, size_t, int);
    if (fails()) return -1;
    if (shadow && flags & MS_SYNC) {
        char line[8192], path[4096];
        unsigned long low, high;
        FILE *maps = fopen("/proc/self/maps", "re");
        while (maps && fgets(line, sizeof line, maps)) {
            path[0] = 0;
            if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &low, &high, path) >= 2 &&
                (unsigned long)address >= low && (unsigned long)address < high && path[0] == '/') {
                int fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd >= 0) { keep(fd); close(fd); }
                break;
            }
        }
        if (maps) fclose(maps);
    }
    return real(address, length, flags);
}

static const char *instead(const char *path) {
    return boot && path && !strcmp(path, "/proc/sys/kernel/random/boot_id") ? boot : path;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return real(instead(path), flags, mode); \
    }
OPEN(open)
OPEN(open64)

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = now->tv_sec * 1000000000LL + now->tv_nsec + control->clock_offset_ns;
        now->tv_sec = ns / 1000000000LL;
        now->tv_nsec = ns % 1000000000LL;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *target) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (target) *target = now.tv_sec;
    return now.tv_sec;
}
