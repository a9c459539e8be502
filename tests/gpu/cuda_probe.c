/* Adds two vectors on the first GPU by the driver's own library, and says which GPU that was.

   Needs no toolkit of CUDA to be built: what it calls is declared here as in NVIDIA's cuda.h, and the kernel is PTX, which
   the driver compiles for the GPU that there is. Prints "UUID sum" where the sums are right. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 4096

static const char *PTX =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c) {\n"
    "  .reg .b32 %r<5>; .reg .b64 %d<8>;\n"
    "  ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "  mul.wide.s32 %d4, %r4, 4;\n"
    "  add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4; add.s64 %d7, %d3, %d4;\n"
    "  ld.global.u32 %r1, [%d5]; ld.global.u32 %r2, [%d6];\n"
    "  add.u32 %r3, %r1, %r2; st.global.u32 [%d7], %r3; ret;\n}\n";

static void *library;

static int call(const char *name, int result) {
    if (result != 0) {
        printf("%s says %d\n", name, result);
        exit(1);
    }
    return result;
}

static void *function(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        printf("libcuda has no %s\n", name);
        exit(1);
    }
    return found;
}

#define CU(name, types, ...) call(#name, ((int(*) types)function(#name))(__VA_ARGS__))

int main(void) {
    typedef unsigned long long pointer;
    int count = 0, device = 0;
    unsigned char id[16];
    void *context, *module, *kernel;
    pointer memory[3];
    static unsigned host[3][COUNT];
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        printf("no CUDA: %s\n", dlerror());
        return 1;
    }
    CU(cuInit, (unsigned), 0);
    CU(cuDeviceGetCount, (int *), &count);
    if (count != 1) {
        printf("%d GPUs\n", count);
        return 1;
    }
    CU(cuDeviceGet, (int *, int), &device, 0);
    CU(cuDeviceGetUuid, (void *, int), id, device);
    CU(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CU(cuCtxSetCurrent, (void *), context);
    CU(cuModuleLoadData, (void **, const void *), &module, PTX);
    CU(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "add");
    for (unsigned i = 0; i < COUNT; i++) {
        host[0][i] = i * 2654435761u;
        host[1][i] = i ^ 40503u;
        host[2][i] = 0xdeadbeefu;
    }
    for (int each = 0; each < 3; each++) {
        CU(cuMemAlloc_v2, (pointer *, size_t), &memory[each], sizeof host[each]);
        CU(cuMemcpyHtoD_v2, (pointer, const void *, size_t), memory[each], host[each], sizeof host[each]);
    }
    void *arguments[] = {&memory[0], &memory[1], &memory[2]};
    CU(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
    CU(cuMemcpyDtoH_v2, (void *, pointer, size_t), host[2], memory[2], sizeof host[2]);
    unsigned long long sum = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        if (host[2][i] != host[0][i] + host[1][i]) {
            printf("element %u is %u\n", i, host[2][i]);
            return 1;
        }
        sum += host[2][i];
    }
    printf("GPU-");
    for (int i = 0; i < 16; i++) {
        printf("%02x%s", id[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
    }
    printf(" %llu\n", sum);
    return 0;
}
