/* Runs a package as its users do: the header, the library, the C library.
 *
 *   run_model WEIGHTS RUNS [SIZE...] < inputs > outputs
 *
 * Inputs and outputs follow one another as they lie in memory; outputs are those of the last run.
 * -DMODEL=name, -DHEADER="name.h", and -DNUM_INPUTS, -DNUM_OUTPUTS, -DNUM_SIZES name the header's
 * constants. Ends with 1 and the package's own words where it refuses. */
#include <stdio.h>
#include <stdlib.h>

#include HEADER

#define PASTE(a, b) a##_##b
#define OF(a, b) PASTE(a, b)
#define CALL(function) OF(MODEL, function)

static int fail(const MODEL* model, const char* what) {
  const char* error = CALL(error)(model);
  fprintf(stderr, "%s: %s\n", what, error ? error : "no reason");
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3 + NUM_SIZES) return fprintf(stderr, "%d sizes\n", NUM_SIZES), 2;
  MODEL* model = CALL(load)(argv[1], 2);
  if (CALL(error)(model)) return fail(model, "load");
#if NUM_SIZES > 0
  int64_t sizes[NUM_SIZES];
  for (int i = 0; i < NUM_SIZES; ++i) sizes[i] = atoll(argv[3 + i]);
  if (CALL(bind)(model, sizes) != 0) return fail(model, "bind");
#endif
  void* inputs[NUM_INPUTS + 1];
  void* outputs[NUM_OUTPUTS + 1];
  for (int i = 0; i < NUM_INPUTS; ++i) {
    const size_t bytes = (size_t)CALL(input_bytes)(model, i);
    inputs[i] = malloc(bytes + 1);
    if (fread(inputs[i], 1, bytes, stdin) != bytes) return fprintf(stderr, "input %d\n", i), 2;
  }
  for (int i = 0; i < NUM_OUTPUTS; ++i)
    outputs[i] = malloc((size_t)CALL(output_bytes)(model, i) + 1);
  for (int run = atoi(argv[2]); run > 0; --run)
    if (CALL(run)(model, (const void* const*)inputs, outputs) != 0) return fail(model, "run");
  for (int i = 0; i < NUM_OUTPUTS; ++i) {
    fwrite(outputs[i], 1, (size_t)CALL(output_bytes)(model, i), stdout);
    free(outputs[i]);
  }
  for (int i = 0; i < NUM_INPUTS; ++i) free(inputs[i]);
  CALL(free)(model);
  return 0;
}
