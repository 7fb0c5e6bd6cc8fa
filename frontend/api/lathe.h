/* The C ABI of Lathe, version 1: load a model, ask what it takes and gives, run it on the caller's
 * memory.
 *
 *   lathe_model* model = lathe_load("m.pt2", "{\"threads\": 2}");
 *   if (lathe_error(model)) puts(lathe_error(model));
 *   else lathe_run(model, inputs, outputs);
 *   lathe_free(model);
 *
 * Nothing here throws, prints or exits, but for one case: where LLVM generates machine code ("cpu")
 * it may end the process when memory is out. Threads that the system refuses are done without.
 * Strings and arrays that a function returns belong to the
 * handle and live as long as it does, but lathe_error's until the next call on the handle. A handle
 * is used by one thread at a time; several handles at once are fine. After fork a child may use and
 * free its parent's handles and load others, if no other thread was in a call when it was forked;
 * older handles run on one thread there ("cuda" does not outlive a fork). Tensors are row-major and
 * contiguous, and are never copied, but for host memory that a GPU works on. Complex ones, weights
 * too, are pairs of reals: their last dim is 2. Numbers of 8 bits are bytes. (lathe_info's
 * signature says which, as "encoding".) */
#ifndef LATHE_H
#define LATHE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_ABI_VERSION 1
#define LATHE_EXPORT __attribute__((visibility("default")))

typedef struct lathe_model lathe_model;

typedef enum lathe_status {
  LATHE_OK = 0,
  LATHE_WRONG_INPUT = 2,  /* the file, an option or an argument is wrong */
  LATHE_INTERNAL = 3,     /* Lathe is wrong */
  LATHE_OUT_OF_MEMORY = 4 /* the machine is at its end; the handle stays usable, or can be freed */
} lathe_status;

typedef enum lathe_dtype {
  LATHE_BOOL = 0, /* one byte */
  LATHE_U8 = 1,
  LATHE_I8 = 2,
  LATHE_I16 = 3,
  LATHE_I32 = 4,
  LATHE_I64 = 5,
  LATHE_F16 = 6,
  LATHE_BF16 = 7,
  LATHE_F32 = 8,
  LATHE_F64 = 9
} lathe_dtype;

typedef struct lathe_tensor_info {
  const char* name;
  lathe_dtype dtype;
  int32_t rank;
  const int64_t* shape; /* `rank` extents */
  uint64_t num_bytes;
} lathe_tensor_info;

/* The ABI version that the library was built with; a client that was compiled against another major
 * one must not go on. */
LATHE_EXPORT int32_t lathe_abi_version(void);

/* Loads and compiles. `path`: .pt2, model JSON (.gz) or .lathe text. `options`: a JSON object, or
 * null, with any of
 *   "weights": "file" (default) or "random:SEED"
 *   "target":  "cpu" (default), "cuda", "wasm" (in Node)
 *   "threads": a number (default: every core)
 *   "mode":    "default"; "reduce-overhead": on "cuda", the whole run is one CUDA graph;
 *              "max-autotune": kernels are chosen by measuring them once (and the former)
 *   "numerics": "default"; "ieee": convolutions in f32 on "cuda" without TF32, which they may use
 *              as PyTorch's do; "strict": the same bits on "cpu" and "wasm"
 *   "isa":     "avx512_bf16", "avx512", "avx2", "sm_90", "relaxed", "simd128" (default: the best
 *              of this machine)
 *   "passes":  pipeline text (default: "default")
 *   "dynamic": true: one program for every size; false: one for each; null (default): first for
 *              one, then for every size of what changed
 *   "mark_dynamic":    ["s0"]: symbols of every size from the first program on
 *   "specialize_on":   ["s0 == 8; s1 % 4 == 0"]: sizes with a program of their own
 *   "recompile_limit": programs that are kept (default: 8)
 *   "force":   ["kernel NODE = KIND", "tile NODE = 9x3", "keep NODE"]: decided so, or an error
 *   "dims":    {"s0": 8}: sizes of symbolic dims (default: the exporter's example)
 *   "cache":   true: programs are kept in $XDG_CACHE_HOME/lathe or ~/.cache/lathe for processes to
 *              come, and found there; what was found, or why not, stands in lathe_info's "cache"
 * Never null but when memory is out; ask lathe_error whether it worked.
 *
 * The file is read, never mapped, and closed before this returns, but that of a model with symbolic
 * sizes, whose later programs may need weights again: it stays open until the model is freed. It
 * may be changed, truncated or removed, and runs of what is compiled give what they gave. A file
 * that shrinks or is written to while it is read, or before it is read again, is an error. */
LATHE_EXPORT lathe_model* lathe_load(const char* path, const char* options);

/* A parameter, buffer or constant in the caller's memory. */
typedef struct lathe_weight {
  const char* name; /* as the graph's signature has it */
  const void* data; /* the first element; host memory or, with target "cuda", the GPU's, row-major,
                       of a weight that the graph does not change */
  lathe_dtype dtype;
  int32_t rank;
  const int64_t* shape;   /* `rank` extents */
  const int64_t* strides; /* in elements, at least 0; any order */
} lathe_weight;

/* The same of `size` bytes of model JSON, which may be gone when this returns, with weights that
 * must stay, unchanged, until the model is freed: a program may read them where they are. With
 * option "weights": "random:SEED" none is needed. */
LATHE_EXPORT lathe_model* lathe_load_memory(const char* json, uint64_t size,
                                            const lathe_weight* weights, int32_t count,
                                            const char* options);
/* After lathe_load_memory failed: the graph's calls that Lathe refuses, as a JSON array of "node"
 * (the call's name in the graph), "target", "reason" and "code". All that cannot be imported, or
 * the one that a later step failed at; empty when no call is to blame. */
LATHE_EXPORT const char* lathe_refusals(const lathe_model* model);
LATHE_EXPORT void lathe_free(lathe_model* model); /* null is fine */

/* The message of the last call that failed, as `lathe` would print it, or null when it worked. */
LATHE_EXPORT const char* lathe_error(const lathe_model* model);
LATHE_EXPORT lathe_status lathe_last_status(const lathe_model* model);

/* Tensors in the flattened order of args and kwargs, and of the outputs; 0 and null after a failed
 * load or for a number that is out of range. */
LATHE_EXPORT int32_t lathe_num_inputs(const lathe_model* model);
LATHE_EXPORT int32_t lathe_num_outputs(const lathe_model* model);
LATHE_EXPORT const lathe_tensor_info* lathe_input(const lathe_model* model, int32_t index);
LATHE_EXPORT const lathe_tensor_info* lathe_output(const lathe_model* model, int32_t index);

/* Elements may decide how large an output is (nonzero, x[mask]). Before a run such a one has
 * extents of -1 and no bytes; lathe_run ignores its pointer, which may be null; afterwards
 * lathe_output tells its shape, and this copies its num_bytes, which the model holds until the next
 * lathe_run or lathe_bind. */
LATHE_EXPORT lathe_status lathe_copy_output(lathe_model* model, int32_t index, void* to);
/* The sizes that the last run found, by symbol, as a JSON object: {"u0": 3}. Valid until the next
 * call of this. */
LATHE_EXPORT const char* lathe_run_sizes(lathe_model* model);

/* Runs once: one pointer for every input and output, each to at least its num_bytes. Outputs must
 * not overlap inputs or each other. Inputs are only read, but those that the model itself mutates,
 * which get their new contents; buffers that it mutates keep theirs for the next run. */
LATHE_EXPORT lathe_status lathe_run(lathe_model* model, const void* const* inputs,
                                    void* const* outputs);

/* The sizes of the runs that follow, one of each of lathe_info's "dims" in its order; at first they
 * are those of option "dims". lathe_input and lathe_output tell of tensors at these sizes. Compiles
 * when none of the model's programs serves them; those of a program that is there, bound lately,
 * cost neither compilation nor memory. Sizes that the model forbids are LATHE_WRONG_INPUT, and
 * every error leaves the sizes as they were. */
LATHE_EXPORT lathe_status lathe_bind(lathe_model* model, const int64_t* sizes, int32_t count);

/* lathe_bind, then lathe_run. */
LATHE_EXPORT lathe_status lathe_run_shaped(lathe_model* model, const int64_t* sizes, int32_t count,
                                           const void* const* inputs, void* const* outputs);

/* The programs that the model was compiled to, as a JSON array in the order of their numbers:
 * "sizes" (a number of each of the dims, null: every size), "hint", "reason" (why it was compiled),
 * "guards" (what it needs of sizes), "calls" (sizes that were bound to it), "compile_ms",
 * "cache", "load_ms", "drops" (on "cuda", what was kept for some sizes and had to go, by reason),
 * "arena_bytes", "persistent_bytes". Valid until the next call of this. */
LATHE_EXPORT const char* lathe_artifacts(lathe_model* model);

/* From now on the model's mutated buffers are those of `other`, the same model loaded for other
 * sizes or with other options: what a run of either changes, the next run of either sees. Runs of
 * the two then wait for each other; either may be freed first. */
LATHE_EXPORT lathe_status lathe_share_state(lathe_model* model, const lathe_model* other);

/* On "cuda", where pointers may also be the device's: later runs are put into this CUstream and not
 * waited for. Null, as at first: a run waits until it is done. Other targets ignore it. */
LATHE_EXPORT void lathe_set_stream(lathe_model* model, void* stream);

/* The launches of a run at the sizes that are bound, as a JSON array in their order: "label",
 * "kind" (of kernel, as option "force" names it), "ops" (modules or calls that it is made of),
 * "line" (of Python, where the file has it), "flops", "bytes" (the least that it may move),
 * "predicted_ms" and "limit_ms" (where the target has prices), and "ms", the least of the runs at
 * these sizes since lathe_set_timing. What is not known is null. Valid until the next call of
 * this. */
LATHE_EXPORT const char* lathe_kernels(lathe_model* model);
/* Whether later runs measure each launch, which makes them a little slower; on "cuda" they wait
 * for the GPU then, and are no CUDA graph. Turning it on forgets what was measured. */
LATHE_EXPORT void lathe_set_timing(lathe_model* model, int32_t on);

/* Milliseconds of the last lathe_run, measured inside. */
LATHE_EXPORT double lathe_last_run_ms(const lathe_model* model);
LATHE_EXPORT int32_t lathe_num_threads(const lathe_model* model);

/* What is known of the model, as a JSON object: "name", "target", "isa", "threads", "kernels",
 * "gflop", "compile_ms", "cache", "load_ms", "arena_bytes", "persistent_bytes", "dims", "inputs",
 * "outputs" (with symbolic shapes), "run_sizes" (symbols that a run finds), "mutations" (names of
 * the inputs and buffers that a run changes), and "signature" (how args, kwargs and results
 * flatten). */
LATHE_EXPORT const char* lathe_info(const lathe_model* model);

#ifdef __cplusplus
}
#endif

#endif /* LATHE_H */
