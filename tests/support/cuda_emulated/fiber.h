/*
 * fiber.h - stacks to run a thread of a block on.
 *
 * Thread: all fibers of one launch run on the thread that runs the launch.
 */
#ifndef EMULATED_FIBER_H
#define EMULATED_FIBER_H

namespace emulated
{

struct fiber;

/* A fiber that will run `body` when it is first switched to; body never returns.  It is kept for good. */
fiber *fiber_make(void (*body)(fiber *self));
/* The calling thread's own stack. */
fiber *fiber_host();
/* Leaves `from`, the one that runs, for `to`; returns when something switches back. */
void fiber_switch(fiber *from, fiber *to);

} // namespace emulated

#endif
