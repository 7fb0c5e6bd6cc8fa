/* The C ABI of the engine: the compiler as one WebAssembly module, or as a library in its tests.
 *
 * A caller writes a request into memory it was given, and gets an answer that stays valid until its
 * next request:
 *
 *   char* text = lathe_engine_allocate(n);           // n bytes of JSON, UTF-8
 *   const lathe_engine_answer* a = lathe_engine_request(text, n, bytes, num_bytes);
 *   // a->text is JSON: the answer, or {"error": ...}; a->bytes is what does not belong in JSON
 *   lathe_engine_release(text);
 *
 * Requests and answers are listed in README.md. Nothing here throws, prints or exits, no request
 * can crash it, and equal requests have equal answers, but for times. One thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What lathe_engine_version returns; another one has other requests. */
enum { kLatheEngineVersion = 1 };

/* On wasm32 four little-endian 32-bit words. */
typedef struct lathe_engine_answer {
  const char* text;
  size_t text_size;
  const uint8_t* bytes; /* null when there are none */
  size_t num_bytes;
} lathe_engine_answer;

int32_t lathe_engine_version(void);

/* Memory for the caller's text and bytes, aligned to 16; null when there is no more. */
void* lathe_engine_allocate(size_t num_bytes);
void lathe_engine_release(void* memory); /* null is fine */

/* Never null. `bytes` belong to the request ("open", "check"); they are read, not kept. */
const lathe_engine_answer* lathe_engine_request(const char* json, size_t json_size,
                                                const uint8_t* bytes, size_t num_bytes);

#ifdef __cplusplus
}
#endif
