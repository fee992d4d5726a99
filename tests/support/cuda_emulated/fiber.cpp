#include "fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulated
{

#ifdef __SANITIZE_ADDRESS__
enum { STACK_BYTES = 512 << 10 };
#else
enum { STACK_BYTES = 128 << 10 };
#endif

struct fiber {
#ifdef __x86_64__
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    void (*body)(fiber *);
    void *fake_stack; /* AddressSanitizer's */
    const void *stack;
    size_t stack_bytes;
};

/* Called on a stack right after it was switched to. */
static void arrived(fiber *self, fiber *from)
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(self->fake_stack, &bottom, &bytes);
    if (!from->stack) { /* a thread's own stack is known from here on */
        from->stack = bottom;
        from->stack_bytes = bytes;
    }
#else
    (void)self;
    (void)from;
#endif
}

/* One launch runs at a time. */
static fiber *came_from, *going_to;

static void leaving(fiber *from, fiber *to)
{
    came_from = from;
    going_to = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
}

static void start()
{
    fiber *self = going_to;
    arrived(self, came_from);
    self->body(self);
    abort();
}

#ifdef __x86_64__

/* Keeps what a function must keep (the flags of the floating point unit are never changed here). */
extern "C" void emulated_switch(void **save, void *to);
asm(R"(
.text
.globl emulated_switch
.hidden emulated_switch
.type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulated_switch, .-emulated_switch
)");

static void prepare(fiber *f)
{
    uint64_t *top = (uint64_t *)((char *)f->stack + f->stack_bytes);
    *--top = 0; /* start never returns; with this its stack is aligned as after a call */
    *--top = (uint64_t)(uintptr_t)start;
    for (int k = 0; k < 6; k++)
        *--top = 0;
    f->stack_pointer = top;
}

void fiber_switch(fiber *from, fiber *to)
{
    leaving(from, to);
    emulated_switch(&from->stack_pointer, to->stack_pointer);
    arrived(from, came_from);
}

#else

static void prepare(fiber *f)
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = (void *)f->stack;
    f->context.uc_stack.ss_size = f->stack_bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, start, 0);
}

void fiber_switch(fiber *from, fiber *to)
{
    leaving(from, to);
    swapcontext(&from->context, &to->context);
    arrived(from, came_from);
}

#endif

fiber *fiber_make(void (*body)(fiber *self))
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = (char *)mmap(nullptr, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    fiber *f = new fiber();
    if (at == MAP_FAILED || mprotect(at, page, PROT_NONE) != 0) {
        fprintf(stderr, "cuda emulated: no memory for a stack\n");
        abort();
    }
    f->body = body;
    f->stack = at + page;
    f->stack_bytes = STACK_BYTES;
    prepare(f);
    return f;
}

fiber *fiber_host()
{
    static thread_local fiber own;
    return &own;
}

} // namespace emulated
