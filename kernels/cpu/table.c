/* Compiled with VXK_TABLE = the name of the table and the flags of its instruction set. */
#include "table.h"

#include "../body/kernels.h"
#include "../vxk.h"
#include "tuned_band.h"
#include "tuned_beams.h"
#include "tuned_cell.h"
#include "tuned_normal.h"
#include "tuned_smooth.h"

/* The arguments are copied so that the compiler knows that no store of the body changes them. */
#define VXK_KERNEL(name)                                                                                     \
    static void run_##name(const void *args, uint32_t begin, uint32_t end)                                   \
    {                                                                                                        \
        const struct vxk_##name##_args a = *(const struct vxk_##name##_args *)args;                          \
        for (uint32_t i = begin; i < end; i++)                                                               \
            vxk_##name(&a, i);                                                                               \
    }                                                                                                        \
    _Static_assert(sizeof(struct vxk_##name##_args) <= VXK_MAX_ARGS, "arguments of " #name " are too "       \
                                                                     "large");
#include "../body/kernels.def"
#undef VXK_KERNEL

static const struct vxk_cpu_kernel kernels[VXK_N_KERNELS] = {
#define VXK_KERNEL(name) {run_##name, sizeof(struct vxk_##name##_args)},
#include "../body/kernels.def"
#undef VXK_KERNEL
};

#define VXK_TUNED(name)                                                                                      \
    static void tuned_##name(const void *args, uint32_t begin, uint32_t end)                                 \
    {                                                                                                        \
        vxk_cpu_##name((const struct vxk_##name##_args *)args, begin, end);                                  \
    }
#include "tuned.def"
#undef VXK_TUNED

static vxk_cpu_run *const tuned[VXK_N_KERNELS] = {
#define VXK_TUNED(name) [VXK_K_##name] = tuned_##name,
#include "tuned.def"
#undef VXK_TUNED
};

const struct vxk_cpu_table VXK_TABLE = {kernels, tuned};
