// Runs exported calls, one after another, in the interpreter and on a target, for opinfo_test.py:
//   run_calls [TARGET [ISA]]
// The target is the CPU unless given; "wasm" keeps one Node process for all calls.
//
// Reads calls from standard input and answers each on standard output. Numbers are little-endian
// i64; a text or tensor's bytes are their number and then they.
//   call:    model JSON, number of inputs, the bytes of each
//   answer:  "ran", number of outputs, for each: dtype, rank, extents, the interpreter's bytes, the
//            target's bytes. Otherwise "refused" or "internal", and the error as it is printed.
// Ends with its input. A crash ends it in the midst of an answer.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"

namespace lathe {
namespace {

struct Call {
  std::string model;
  std::vector<std::string> inputs;
};

struct Answer {
  std::vector<Tensor> interpreted;
  std::vector<Tensor> compiled;
};

bool read(int64_t& number) { return std::fread(&number, sizeof number, 1, stdin) == 1; }

bool read(std::string& bytes) {
  int64_t size = 0;
  if (!read(size) || size < 0) return false;
  bytes.resize(static_cast<size_t>(size));
  return std::fread(bytes.data(), 1, bytes.size(), stdin) == bytes.size();
}

bool read(Call& call) {
  int64_t count = 0;
  if (!read(call.model) || !read(count) || count < 0) return false;
  call.inputs.assign(static_cast<size_t>(count), {});
  for (std::string& bytes : call.inputs)
    if (!read(bytes)) return false;
  return true;
}

void write(int64_t number) { std::fwrite(&number, sizeof number, 1, stdout); }
void write(const void* bytes, size_t size) {
  write(static_cast<int64_t>(size));
  std::fwrite(bytes, 1, size, stdout);
}
void write(const std::string& text) { write(text.data(), text.size()); }
void write(const std::vector<std::byte>& bytes) { write(bytes.data(), bytes.size()); }

void write(const Answer& answer) {
  write("ran");
  write(static_cast<int64_t>(answer.compiled.size()));
  for (size_t i = 0; i < answer.compiled.size(); ++i) {
    const Tensor& tensor = answer.compiled[i];
    write(std::string(dtype_name(tensor.dtype)));
    write(static_cast<int64_t>(tensor.shape.size()));
    for (int64_t extent : tensor.shape) write(extent);
    write(to_bytes(answer.interpreted[i]));
    write(to_bytes(tensor));
  }
}

Result<std::vector<Tensor>> read_inputs(const Model& model, const Call& call) {
  LATHE_TRY(std::vector<TensorType> types, input_types(model));
  LATHE_CHECK(types.size() == call.inputs.size(), "the call has another number of inputs");
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < types.size(); ++i) {
    TensorData data;
    data.type = types[i];
    data.strides = row_major_strides(types[i].static_shape());
    data.bytes = reinterpret_cast<const std::byte*>(call.inputs[i].data());
    data.num_bytes = call.inputs[i].size();
    LATHE_TRY(Tensor tensor, read_tensor(data));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Result<Answer> run(const Call& call, Backend& backend, LocTable& locs) {
  LATHE_TRY(const pt2::ModelFile file, pt2::open_model(own_bytes(call.model), "call.json"));
  LATHE_TRY(const Model model, load_model(file, {}, locs));
  locs = model.module.locs;
  LATHE_TRY(const std::vector<Tensor> inputs, read_inputs(model, call));
  LATHE_TRY(const Module functional, reference_module(model));
  LATHE_TRY(EvalResult evaluated, evaluate(functional, functional.main(), inputs));
  Answer answer;
  answer.interpreted = results_of(std::move(evaluated));
  BuildFailure failure;
  LATHE_TRY(const Build built, build(model, backend, {}, failure));
  LATHE_TRY(CallBuffers buffers, CallBuffers::create(built.program(), inputs, model.weights()));
  LATHE_DO(buffers.run(*built.executable));
  LATHE_TRY(answer.compiled, buffers.outputs());
  LATHE_CHECK(answer.compiled.size() == answer.interpreted.size(),
              "the target gives another number of results than the interpreter");
  for (size_t i = 0; i < answer.compiled.size(); ++i) {
    LATHE_CHECK(answer.compiled[i].dtype == answer.interpreted[i].dtype &&
                    answer.compiled[i].shape == answer.interpreted[i].shape,
                "the target gives another type than the interpreter");
  }
  return answer;
}

int serve(const std::string& target, const std::string& isa) {
  auto backend = make_backend(target, isa);
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.error().message.c_str());
    return 2;
  }
  Call call;
  while (read(call)) {
    LocTable locs;
    Result<Answer> answer = run(call, **backend, locs);
    if (answer.ok()) {
      write(*answer);
    } else {
      write(answer.error().is_internal ? "internal" : "refused");
      write(render(answer.error(), locs));
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  return lathe::serve(argc > 1 ? argv[1] : "cpu", argc > 2 ? argv[2] : "");
}
