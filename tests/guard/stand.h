/* Modules for the guard's tests: assembled from text, guarded, and seen by the validator before and
 * after. No device. Their memory goes with the test. */
#ifndef GUARD_STAND_H
#define GUARD_STAND_H

#include "harness.h"

#include "worker/guard/guard.h"
#include "worker/spirv/validate.h"

/* Advertises everything. */
extern struct bhi_spirv_target stand_device;

struct stand_module {
    uint32_t *code;
    size_t words;
};

/* |minor| of the SPIR-V version, 0 to 6. Fails the test where the text is not assembly. */
struct stand_module stand_assemble(const char *text, unsigned minor);
/* A compute module for SPIR-V 1.|minor| whose entry point "main" has |body| behind its OpLabel. The
 * text may use %void %bool %int %uint %float %true %false, the constants %u_N and %i_N (0, 1, 2, 8,
 * 10, 100, 5000, -1 as m1), and the storage buffer %out of uints, to which %u_0 %u_0 is the first
 * element (pointer type %p_uint). |globals| stands before the functions, |functions| behind them.
 */
struct stand_module stand_compute(const char *globals, const char *body, const char *functions,
                                  unsigned minor);
/* The same with decorations, and names of more variables for the entry point's interface. */
struct stand_module stand_compute_with(const char *decorations, const char *globals,
                                       const char *interface, const char *body,
                                       const char *functions, unsigned minor);
/* A file of SPIR-V. */
struct stand_module stand_load(const char *path);
/* Returns |module| with one more capability. */
struct stand_module stand_capable(const struct stand_module *module, SpvCapability capability);

/* Valid before, guarded, valid after. */
struct bhi_guarded stand_guard(const struct stand_module *module);
struct bhi_guarded stand_guard_with(const struct stand_module *module,
                                    const struct bhi_guard_options *options);
/* The guard must refuse it with |status| and a text that has |text| in it. */
void stand_refuses(const struct stand_module *module, bh_status status, const char *text);
/* The same where a validator may have refused it, too. */
void stand_guard_refuses(const struct stand_module *module, bh_status status, const char *text);
/* Newer validators (SPIRV-Tools from 2024 on) refuse what older ones take. False: this one refuses
 * the module, and says |text| (anything else fails the test); no kernel can be that then. */
bool stand_is_valid_here(const struct stand_module *module, const char *text);
/* Disassembly, for messages and for tests that look for an instruction. */
char *stand_text(const uint32_t *code, size_t words);
/* How often |opcode| occurs. */
unsigned stand_count(const uint32_t *code, size_t words, SpvOp opcode);

#endif
