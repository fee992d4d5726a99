#include "engine.h"

#include "fiber.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, bytes)   ((void)(ptr), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, bytes) ((void)(ptr), (void)(bytes))
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim(1), gridDim(1);

/* Where all __shared__ variables are; the linker says. */
extern "C" char __start_emulated_shared[] __attribute__((weak)),
    __stop_emulated_shared[] __attribute__((weak));

namespace emulated
{

enum { WARP = 32, MOST_THREADS = 1024, MOST_WARPS = MOST_THREADS / WARP, DYNAMIC_BYTES = 48 << 10 };
/* After this many blocks of a launch what shared memory holds is spoilt for one block in 16 only. */
enum { SPOIL_ALWAYS = 4 };

enum state { UNBORN, READY, MEETS, OVER };

struct lane {
    state now;
    fiber *on; /* where it goes on; nullptr: it has not begun */
    meeting kind;
    unsigned mask;
    uint64_t value, result;
    int which, width;
    const char *file;
    int line;
};

/* Everything of the block that runs. */
static struct {
    const call *what;
    bool early;
    unsigned n_threads, n_warps, n_over, n_at_barrier, n_waited_for_grid;
    unsigned warp, at; /* the running lane: its warp and its place there */
    unsigned order;    /* which lane is next */
    bool leave_warp, wait_too;
    bool met; /* lanes of this launch have met */
    uint32_t runnable[MOST_WARPS], over[MOST_WARPS];
    uint32_t waiting[MOST_WARPS], waiting_all[MOST_WARPS]; /* for lanes of the warp; for all of them */
    uint32_t busy;                                         /* warps with a runnable lane */
    lane lanes[MOST_THREADS];
    uint64_t random;
    fiber *host;
    fiber *free_fibers[MOST_THREADS + 1];
    unsigned n_free;
    uint64_t n_launches;
} run;

alignas(256) static char dynamic_memory[DYNAMIC_BYTES + 256];
/* The running fiber; changes with every switch. */
static fiber *running;

uint64_t seed()
{
    static const uint64_t value = [] {
        const char *text = getenv("VOXELD_EMULATED_SEED");
        uint64_t x = text ? strtoull(text, nullptr, 10) : 1;
        fprintf(stderr, "CUDA emulated on the CPU, for tests only: VOXELD_EMULATED_SEED=%llu\n",
                (unsigned long long)x);
        return x;
    }();
    return value;
}

uint64_t random(uint64_t &state)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state * 0x2545f4914f6cdd1dull) >> 32;
}

void *dynamic_shared()
{
    return dynamic_memory;
}

void waited_for_grid_before()
{
    run.n_waited_for_grid++;
}

/* Failures */

static const char *name_of_meeting(meeting k)
{
    static const char *const names[] = {
        "__syncwarp",    "__shfl_sync", "__shfl_up_sync",    "__shfl_down_sync", "__shfl_xor_sync",
        "__ballot_sync", "__any_sync",  "__reduce_add_sync", "__reduce_or_sync", "__syncthreads"};
    return names[k];
}

static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Lanes that stand alike are one line. */
static void print_lanes(unsigned warp)
{
    bool done[WARP] = {};
    for (unsigned k = 0; k < WARP && warp * WARP + k < run.n_threads; k++) {
        const lane &l = run.lanes[warp * WARP + k];
        uint32_t alike = 0;
        if (done[k])
            continue;
        for (unsigned j = k; j < WARP && warp * WARP + j < run.n_threads; j++) {
            const lane &o = run.lanes[warp * WARP + j];
            if (o.now == l.now && (l.now != MEETS || (o.kind == l.kind && o.mask == l.mask &&
                                                      o.line == l.line && strcmp(o.file, l.file) == 0))) {
                alike |= 1u << j;
                done[j] = true;
            }
        }
        if (l.now == MEETS)
            fprintf(stderr, "  warp %u, lanes %08x: wait in %s of %08x at %s:%d\n", warp, alike,
                    name_of_meeting(l.kind), l.mask, short_name(l.file), l.line);
        else
            fprintf(stderr, "  warp %u, lanes %08x: %s\n", warp, alike,
                    l.now == OVER ? "have returned" : "run");
    }
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    va_list list;
    fprintf(stderr, "cuda emulated: kernel %s, block (%u, %u) of (%u, %u), %u threads: ",
            name_of(run.what->address()), blockIdx.x, blockIdx.y, gridDim.x, gridDim.y, run.n_threads);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    for (unsigned w = 0; w < run.n_warps; w++)
        if (run.over[w] != 0xffffffffu)
            print_lanes(w);
    fflush(stderr);
    abort();
}

/* Which lane runs next */

static lane &own()
{
    return run.lanes[run.warp * WARP + run.at];
}

static void make_runnable(unsigned warp, uint32_t lanes)
{
    if (!lanes)
        return;
    run.runnable[warp] |= lanes;
    run.busy |= 1u << warp;
}

/* A bit of a mask that is not 0: the first from a place on, upwards or downwards. */
static unsigned first_bit(uint32_t mask, unsigned order)
{
    unsigned turn = order & 31;
    uint32_t turned = mask >> turn | mask << (-turn & 31);
    unsigned bit = (unsigned)(order & 32 ? __builtin_ctz(turned) : 31 - __builtin_clz(turned));
    return (bit + turn) & 31;
}

/* Another order from here on. */
static void stir()
{
    uint64_t r = random(run.random);
    run.order = (unsigned)r & 63;
    run.leave_warp = (r >> 6 & 15) == 0;
    run.wait_too = r >> 10 & 1;
}

/* Makes another lane the running one: one of the same warp while there is one.  False: none can run. */
static bool pick()
{
    if (!run.busy)
        return false;
    if (run.leave_warp || !(run.busy >> run.warp & 1)) {
        stir();
        run.leave_warp = false;
        run.warp = first_bit(run.busy, run.order);
    }
    run.at = first_bit(run.runnable[run.warp], run.order);
    run.runnable[run.warp] &= ~(1u << run.at);
    if (!run.runnable[run.warp])
        run.busy &= ~(1u << run.warp);
    threadIdx.x = run.warp * WARP + run.at;
    return true;
}

static void switch_to(fiber *to)
{
    fiber *from = running;
    if (to == from)
        return;
    running = to;
    fiber_switch(from, to);
}

static void lane_over();

/* A fiber runs lanes from their begin; one that has to wait keeps its fiber. */
static void run_lanes(fiber *self)
{
    for (;;) {
        own().now = READY;
        run.what->run();
        lane_over();
        if (!pick()) {
            run.free_fibers[run.n_free++] = self;
            switch_to(run.host);
        } else if (own().on) {
            run.free_fibers[run.n_free++] = self;
            switch_to(own().on);
        }
    }
}

static fiber *free_fiber()
{
    return run.n_free ? run.free_fibers[--run.n_free] : fiber_make(run_lanes);
}

/* The running lane waits until others make it runnable. */
static void wait_here()
{
    lane &me = own();
    me.on = running;
    if (!pick())
        switch_to(run.host); /* which says what is wrong */
    else
        switch_to(own().on ? own().on : free_fiber());
    me.now = READY;
}

/* A meeting is complete: these are runnable again. */
static void go_on(unsigned warp, uint32_t lanes)
{
    for (uint32_t m = lanes; m; m &= m - 1)
        run.lanes[warp * WARP + (unsigned)__builtin_ctz(m)].now = READY;
    make_runnable(warp, lanes);
}

/* The last one that came goes on at once, or lets others go first. */
static void maybe_wait()
{
    stir();
    if (run.wait_too) {
        make_runnable(run.warp, 1u << run.at);
        wait_here();
    }
}

/* Meetings of a warp */

/* The lane that lane `at` gets its value from, or itself. */
static unsigned shuffle_from(const lane &l, unsigned at)
{
    unsigned width = (unsigned)l.width, begin = at & ~(width - 1);
    int from;
    if (l.width < 1 || l.width > WARP || (width & (width - 1)))
        fail("lane %u of warp %u shuffles with a width of %d", at, run.warp, l.width);
    switch (l.kind) {
    case SHUFFLE:
        return begin | ((unsigned)l.which & (width - 1));
    case SHUFFLE_UP:
        from = (int)at - l.which;
        return from < (int)begin ? at : (unsigned)from;
    case SHUFFLE_DOWN:
        from = (int)at + l.which;
        return from >= (int)(begin + width) ? at : (unsigned)from;
    default:
        from = (int)at ^ l.which;
        return from >= (int)(begin + width) || from < 0 ? at : (unsigned)from;
    }
}

/* Everyone of `mask` has come: what each gets. */
static void finish_meeting(unsigned warp, uint32_t mask, meeting kind)
{
    lane *lanes = &run.lanes[warp * WARP];
    uint64_t all = 0;
    if (kind == SYNC)
        return;
    if (kind == SHUFFLE || kind == SHUFFLE_UP || kind == SHUFFLE_DOWN || kind == SHUFFLE_XOR) {
        for (uint32_t m = mask; m; m &= m - 1) {
            unsigned k = (unsigned)__builtin_ctz(m), from = shuffle_from(lanes[k], k);
            if (!(mask >> from & 1))
                fail("lane %u of warp %u reads lane %u, which is not in the mask %08x", k, warp, from, mask);
            lanes[k].result = lanes[from].value;
        }
        return;
    }
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned k = (unsigned)__builtin_ctz(m);
        uint64_t v = lanes[k].value;
        all = kind == BALLOT ? all | v << k : kind == ADD ? (uint32_t)(all + v) : all | v;
    }
    for (uint32_t m = mask; m; m &= m - 1)
        lanes[__builtin_ctz(m)].result = all;
}

static bool same_place(const lane &a, const lane &b)
{
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

static void check_together(const lane &me, unsigned k)
{
    const lane &o = run.lanes[run.warp * WARP + k];
    if (o.mask != me.mask || o.kind != me.kind || !same_place(o, me))
        fail("lanes %u and %u of warp %u wait for each other at different places", run.at, k, run.warp);
}

uint64_t warp_meets(meeting kind, unsigned mask, uint64_t value, int which, int width, const char *file,
                    int line)
{
    lane &me = own();
    lane *lanes = &run.lanes[run.warp * WARP];
    unsigned warp = run.warp;
    uint32_t others = mask & ~(1u << run.at), missing = 0;
    run.met = true;
    me.now = MEETS;
    me.kind = kind;
    me.mask = mask;
    me.value = value;
    me.which = which;
    me.width = width;
    me.file = file;
    me.line = line;
    if (!(mask >> run.at & 1))
        fail("lane %u of warp %u calls %s for lanes %08x, itself not among them", run.at, warp,
             name_of_meeting(kind), mask);
    if (mask & run.over[warp])
        fail("lanes %08x of warp %u have returned, others wait for them", mask & run.over[warp], warp);
    if (mask == 0xffffffffu && run.waiting[warp] == run.waiting_all[warp]) {
        missing = others & ~run.waiting[warp];
        if (run.waiting[warp]) /* one stands for all: each was compared when it came */
            check_together(me, (unsigned)__builtin_ctz(run.waiting[warp]));
    } else {
        missing = others & ~run.waiting[warp];
        for (uint32_t m = others & run.waiting[warp]; m; m &= m - 1) {
            unsigned k = (unsigned)__builtin_ctz(m);
            if (lanes[k].mask >> run.at & 1)
                check_together(me, k);
            else
                missing |= 1u << k; /* it meets others first */
        }
    }
    if (missing) {
        run.waiting[warp] |= 1u << run.at;
        run.waiting_all[warp] |= mask == 0xffffffffu ? 1u << run.at : 0;
        wait_here();
    } else {
        finish_meeting(warp, mask, kind);
        run.waiting[warp] &= ~mask;
        run.waiting_all[warp] &= ~mask;
        go_on(warp, others);
        me.now = READY;
        if (others)
            maybe_wait();
    }
    return me.result;
}

/* Meetings of a block */

int block_meets(int value, const char *file, int line)
{
    lane &me = own();
    int any = 0;
    run.met = true;
    me.now = MEETS;
    me.kind = BLOCK;
    me.mask = 0xffffffffu;
    me.value = (uint64_t)value;
    me.file = file;
    me.line = line;
    if (run.n_over)
        fail("%u threads have returned, others wait for them in __syncthreads", run.n_over);
    if (++run.n_at_barrier < run.n_threads) {
        wait_here();
        return (int)me.result;
    }
    run.n_at_barrier = 0;
    for (unsigned k = 0; k < run.n_threads; k++) {
        if (!same_place(run.lanes[k], me))
            fail("threads %u and %u wait for each other at different places", k, run.warp * WARP + run.at);
        any |= (int)run.lanes[k].value;
    }
    for (unsigned k = 0; k < run.n_threads; k++)
        run.lanes[k].result = (uint64_t)any;
    for (unsigned w = 0; w < run.n_warps; w++)
        go_on(w, ~run.over[w] & ~(w == run.warp ? 1u << run.at : 0));
    maybe_wait();
    return any;
}

static void lane_over()
{
    lane &me = own();
    lane *lanes = &run.lanes[run.warp * WARP];
    me.now = OVER;
    run.n_over++;
    run.over[run.warp] |= 1u << run.at;
    for (unsigned k = 0; k < WARP && run.warp * WARP + k < run.n_threads; k++)
        if (lanes[k].now == MEETS && lanes[k].kind != BLOCK && (lanes[k].mask >> run.at & 1))
            fail("lane %u of warp %u has returned, others wait for it", run.at, run.warp);
    if (run.n_at_barrier)
        fail("thread %u has returned, others wait for it in __syncthreads", run.warp * WARP + run.at);
}

/* Blocks */

/* Both ends are multiples of 8, or nearly: the few bytes behind the last multiple are left. */
__attribute__((no_sanitize("address"), optimize("no-tree-loop-distribute-patterns"))) static void
spoil(char *from, const char *to)
{
    typedef uint64_t __attribute__((may_alias)) word;
    for (; from + sizeof(word) <= to; from += sizeof(word))
        *(word *)(void *)from = 0xcbcbcbcbcbcbcbcbull;
}

static void begin_block(uint64_t k, size_t shared_bytes)
{
    run.n_over = run.n_at_barrier = run.n_waited_for_grid = 0;
    run.busy = 0;
    for (unsigned w = 0; w < run.n_warps; w++) {
        unsigned n = run.n_threads - w * WARP;
        uint32_t there = n >= WARP ? 0xffffffffu : (1u << n) - 1;
        run.runnable[w] = there;
        run.over[w] = ~there; /* lanes that were never there */
        run.waiting[w] = run.waiting_all[w] = 0;
        run.busy |= 1u << w;
    }
    for (unsigned k2 = 0; k2 < run.n_threads; k2++) {
        run.lanes[k2].now = UNBORN;
        run.lanes[k2].on = nullptr;
    }
    /* a kernel whose lanes never meet has no use for shared memory */
    if (k == 0 || (run.met && (k < SPOIL_ALWAYS || random(run.random) % 16 == 0))) {
        spoil(__start_emulated_shared, __stop_emulated_shared);
        spoil(dynamic_memory, dynamic_memory + shared_bytes);
    }
}

static void run_block()
{
    run.leave_warp = true;
    pick();
    switch_to(free_fiber());
    if (run.n_over < run.n_threads)
        fail("lanes wait for others that never come");
    if (run.early && run.n_waited_for_grid != run.n_threads)
        fail("launched so that it may start early, but %u threads did not wait for the launch before it",
             run.n_threads - run.n_waited_for_grid);
}

static uint64_t greatest_common(uint64_t a, uint64_t b)
{
    return b ? greatest_common(b, a % b) : a;
}

void run_grid(const call &what, dim3 grid, dim3 block, size_t shared_bytes, bool early)
{
    uint64_t n = (uint64_t)grid.x * grid.y, step, first;
    run.what = &what;
    run.early = early;
    run.met = false;
    run.host = running = fiber_host();
    run.n_threads = block.x;
    run.n_warps = (block.x + WARP - 1) / WARP;
    run.random = ((seed() * 0x9e3779b97f4a7c15ull + ++run.n_launches) * 0xbf58476d1ce4e5b9ull) | 1;
    random(run.random);
    gridDim = grid;
    blockDim = block;
    threadIdx = {0, 0, 0};
    ASAN_UNPOISON_MEMORY_REGION(dynamic_memory, sizeof dynamic_memory);
    ASAN_POISON_MEMORY_REGION(dynamic_memory + shared_bytes, sizeof dynamic_memory - shared_bytes);
    /* blocks in the order first, first + step, ... of a step that meets all */
    first = random(run.random) % n;
    for (step = random(run.random) % n | 1; greatest_common(step, n) != 1;)
        step++;
    for (uint64_t k = 0; k < n; k++, first = (first + step) % n) {
        blockIdx = {(unsigned)(first % grid.x), (unsigned)(first / grid.x), 0};
        begin_block(k, shared_bytes);
        run_block();
    }
}

} // namespace emulated
