#include "granted.h"

#include <pthread.h>
#include <stdlib.h>

#include "_cgo_export.h"

enum {
    SETS = 64,
    EACH = 8,            /* of a set, the newest first */
    STREAMS = 128,       /* that stay; of others nothing is kept */
    ROOM = 1 << 10,      /* of the table to begin with, a power of two */
    LAST_OF_ALL = 1,     /* handles up to it are the default stream of all threads */
};
#define MOST ((uint64_t)128 << 20) /* bytes in all */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Granted kept[SETS][EACH];
static int counts[SETS];
static uint64_t bytes; /* that are kept; read without the lock, too */
static int64_t handed_out;
static int users;
static const uint64_t *trace;   /* words of the core's that are zero while nobody asks what it does … */
static const uint32_t *watched; /* … and while nobody records, tracks or limits memory */

static struct {
    int32_t device;
    uint64_t stream;
} streams[STREAMS];
static int streams_count;

/* What somebody has, and what is kept, by address: open addressing without tombstones. */
static Granted *table;
static size_t room, used;

static uint64_t spread(uint64_t key) { return key * UINT64_C(0x9e3779b97f4a7c15); }

static size_t home(uint64_t address) { return (size_t)(spread(address >> 9) >> 20) & (room - 1); }

static int same(const Granted *a, const Granted *b) {
    return a->size == b->size && a->stream == b->stream && a->device == b->device && a->library == b->library;
}

static int set_of(const Granted *of) {
    uint64_t where = of->stream + (uint64_t)(uint32_t)of->device * 4 + (uint64_t)(uint32_t)of->library;
    return (int)(spread(of->size ^ spread(where)) >> 58);
}

/* Whether each allocation is to be the core's: with the lock. */
static int is_core(void) {
    return users <= 0 || __atomic_load_n(trace, __ATOMIC_RELAXED) != 0 ||
        __atomic_load_n(watched, __ATOMIC_RELAXED) != 0;
}

static int stays(int32_t device, uint64_t stream) {
    if (stream <= LAST_OF_ALL) return 1;
    for (int i = 0; i < streams_count; i++)
        if (streams[i].stream == stream && streams[i].device == device) return 1;
    return 0;
}

static int grow(void) {
    size_t before = room;
    Granted *old = table, *larger = calloc(before ? before * 2 : ROOM, sizeof *larger);
    if (!larger) return 0;
    table = larger;
    room = before ? before * 2 : ROOM;
    for (size_t i = 0; i < before; i++) {
        if (!old[i].address) continue;
        size_t at = home(old[i].address);
        while (table[at].address) at = (at + 1) & (room - 1);
        table[at] = old[i];
    }
    free(old);
    return 1;
}

static Granted *known_locked(uint64_t address) {
    if (!used) return NULL;
    size_t at = home(address);
    while (table[at].address != address) {
        if (!table[at].address) return NULL;
        at = (at + 1) & (room - 1);
    }
    return &table[at];
}

static void note_locked(const Granted *granted) {
    if (used * 2 >= room && !grow()) return; /* then it is not kept when it is freed */
    size_t at = home(granted->address);
    while (table[at].address && table[at].address != granted->address) at = (at + 1) & (room - 1);
    used += !table[at].address;
    table[at] = *granted;
}

static void forget_locked(Granted *known) {
    size_t at = (size_t)(known - table);
    for (size_t next = (at + 1) & (room - 1); table[next].address; next = (next + 1) & (room - 1)) {
        size_t wanted = home(table[next].address);
        if (((next - wanted) & (room - 1)) >= ((next - at) & (room - 1))) {
            table[at] = table[next];
            at = next;
        }
    }
    table[at].address = 0;
    used--;
}

/* Kept memory is no longer: its place in the list is the caller's. */
static uint64_t let_go_locked(const Granted *of) {
    Granted *known = known_locked(of->address);
    if (known) forget_locked(known);
    bytes -= of->size;
    return of->address;
}

int granted_take(Granted *wanted) {
    int found = 0, set = set_of(wanted);
    pthread_mutex_lock(&mutex);
    for (int i = is_core() ? 0 : counts[set]; i-- > 0;) {
        if (!same(&kept[set][i], wanted)) continue;
        wanted->address = kept[set][i].address;
        for (int j = i + 1; j < counts[set]; j++) kept[set][j - 1] = kept[set][j];
        counts[set]--;
        bytes -= wanted->size;
        handed_out++;
        Granted *known = known_locked(wanted->address);
        if (known) known->freed = 0;
        found = 1;
        break;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

void granted_note(const Granted *granted) {
    pthread_mutex_lock(&mutex);
    if (users > 0 && granted->size <= MOST && stays(granted->device, granted->stream)) note_locked(granted);
    pthread_mutex_unlock(&mutex);
}

void granted_forget(uint64_t address) {
    pthread_mutex_lock(&mutex);
    Granted *known = known_locked(address);
    if (known && !known->freed) forget_locked(known);
    pthread_mutex_unlock(&mutex);
}

uint64_t granted_put(uint64_t address) {
    uint64_t left = address;
    pthread_mutex_lock(&mutex);
    Granted *known = known_locked(address);
    if (!known) {
        /* the core knows it, or nobody */
    } else if (known->freed) {
        left = 0; /* a second time: it is to be handed out once */
    } else if (is_core() || bytes + known->size > MOST || !stays(known->device, known->stream)) {
        forget_locked(known);
    } else {
        known->freed = 1;
        Granted granted = *known;
        int set = set_of(&granted);
        left = 0;
        if (counts[set] == EACH) {
            left = let_go_locked(&kept[set][0]);
            for (int j = 1; j < EACH; j++) kept[set][j - 1] = kept[set][j];
            counts[set]--;
        }
        kept[set][counts[set]++] = granted;
        bytes += granted.size;
    }
    pthread_mutex_unlock(&mutex);
    return left;
}

/* Takes what is kept out of the lists, of one stream or of all, and gives it back without the lock. */
static int give_back(int all, int32_t device, uint64_t stream) {
    uint64_t found[SETS * EACH];
    size_t count = 0;
    pthread_mutex_lock(&mutex);
    for (int set = 0; set < SETS; set++) {
        int left = 0;
        for (int i = 0; i < counts[set]; i++) {
            Granted each = kept[set][i];
            if (all || (each.device == device && each.stream == stream)) {
                found[count++] = let_go_locked(&each);
            } else {
                kept[set][left++] = each;
            }
        }
        counts[set] = left;
    }
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < count; i++) hamrFreeFor(found[i]);
    return count > 0;
}

int granted_drop(void) { return __atomic_load_n(&bytes, __ATOMIC_RELAXED) != 0 && give_back(1, 0, 0); }

int64_t granted_handed_out(void) {
    pthread_mutex_lock(&mutex);
    int64_t often = handed_out;
    pthread_mutex_unlock(&mutex);
    return often;
}

void granted_use(int by, uintptr_t trace_word, uintptr_t watched_word) {
    pthread_mutex_lock(&mutex);
    trace = (const uint64_t *)trace_word;
    watched = (const uint32_t *)watched_word;
    users += by;
    int over = users == 0;
    pthread_mutex_unlock(&mutex);
    if (over) give_back(1, 0, 0);
}

void granted_stream(int32_t device, uint64_t stream, int stays_now) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < streams_count; i++) {
        if (streams[i].stream != stream || streams[i].device != device) continue;
        streams[i] = streams[--streams_count];
        break;
    }
    if (stays_now && streams_count < STREAMS) {
        streams[streams_count].device = device;
        streams[streams_count++].stream = stream;
    }
    pthread_mutex_unlock(&mutex);
    if (!stays_now) give_back(0, device, stream);
}
