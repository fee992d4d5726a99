/* Names of functions for the words of a failure: kernels are static, so only the symbol table has them. */
#include "engine.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *find(const char *image, uint64_t value)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)image;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(image + head->e_shoff);
    for (unsigned k = 0; k < head->e_shnum; k++) {
        if (sections[k].sh_type != SHT_SYMTAB)
            continue;
        const ElfW(Sym) *symbols = (const ElfW(Sym) *)(image + sections[k].sh_offset);
        const char *names = image + sections[sections[k].sh_link].sh_offset;
        for (size_t i = 0; i < sections[k].sh_size / sizeof *symbols; i++)
            if ((symbols[i].st_info & 15) == STT_FUNC && symbols[i].st_value == value)
                return names + symbols[i].st_name;
    }
    return nullptr;
}

/* The strings and the image stay: the program is about to end. */
const char *emulated::name_of(const void *function)
{
    Dl_info info;
    struct stat file;
    const char *name = nullptr;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), status;
    if (fd >= 0 && fstat(fd, &file) == 0 && dladdr(function, &info)) {
        const char *image = (const char *)mmap(nullptr, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (image != MAP_FAILED)
            name = find(image, (uint64_t)((const char *)function - (const char *)info.dli_fbase));
    }
    if (fd >= 0)
        close(fd);
    char *clear = name ? abi::__cxa_demangle(name, nullptr, nullptr, &status) : nullptr;
    return clear ? clear : name ? name : "without a name";
}
