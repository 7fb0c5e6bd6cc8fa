// The C ABI over the driver. Every function keeps its promises for a null handle too, and no
// exception crosses: the library has none.
#include "frontend/api/lathe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "frontend/api/info.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/files.h"
#include "frontend/driver/options.h"
#include "ir/support/diag_codes.h"

namespace lathe {

static_assert(static_cast<int>(DType::f64) == LATHE_F64 &&
              static_cast<int>(DType::b8) == LATHE_BOOL);

namespace {

// Stays where it is: the C struct points into it.
struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;
  lathe_tensor_info info;
};

std::unique_ptr<TensorInfo> describe(std::string name, const TensorType& type) {
  auto tensor = std::make_unique<TensorInfo>();
  tensor->name = std::move(name);
  tensor->shape = type.static_shape();
  int64_t bytes = type.static_elements().value_or(0) * dtype_bytes(type.dtype);
  tensor->info = {tensor->name.c_str(), static_cast<lathe_dtype>(type.dtype), type.rank(),
                  tensor->shape.data(), static_cast<uint64_t>(bytes)};
  return tensor;
}

}  // namespace

}  // namespace lathe

struct lathe_model {
  std::string error;
  lathe_status status = LATHE_OK;
  lathe::Model model;
  std::unique_ptr<lathe::Backend> backend;
  lathe::Build build;
  int threads = 1;
  std::vector<std::unique_ptr<lathe::TensorInfo>> inputs;
  std::vector<std::unique_ptr<lathe::TensorInfo>> outputs;
  // Buffers that the model mutates, and what a run makes of them.
  std::vector<std::vector<std::byte>> state;
  std::vector<std::vector<std::byte>> results;
  std::string info;
  double last_run_ms = 0;

  lathe_status fail(const lathe::Diag& diag, const lathe::LocTable& locs) {
    error = lathe::render(diag, locs);
    status = diag.is_internal ? LATHE_INTERNAL : LATHE_WRONG_INPUT;
    return status;
  }
  bool is_loaded() const { return build.executable != nullptr; }
};

namespace lathe {

namespace {

Result<CompileRequest> read_request(const char* path, const char* options_text, LocTable& locs) {
  CompileRequest request;
  if (options_text != nullptr) {
    LATHE_TRY(auto document, json::parse(options_text, "options", locs, {.max_bytes = 1 << 20}));
    LocateFn locate = [&](size_t offset) { return json::locate(*document, offset, locs); };
    LATHE_DO(apply_options(document->root(), locate, {"model"}, request));
  }
  request.model = path;
  return request;
}

Status load(lathe_model& handle, const char* path, const char* options_text, LocTable& locs) {
  LATHE_TRY(CompileRequest request, read_request(path, options_text, locs));
  handle.threads = request.num_threads();
  LATHE_TRY(handle.backend, choose_backend(request));
  LATHE_TRY(std::string found, find_model(request.model));
  LATHE_TRY(handle.model, load_model(found, model_options(request), locs));
  BuildFailure failure;
  Result<Build> made = build(handle.model, *handle.backend, request, failure);
  if (!made.ok()) {
    locs = std::move(failure.locs);
    return std::move(made).error();
  }
  handle.build = *std::move(made);
  return Ok{};
}

// The caller sees the graph's params and outputs; what the program takes and gives beyond them is
// the model's state, which the handle keeps.
Status describe(lathe_model& handle) {
  const Program& program = handle.build.program();
  const Graph& graph = handle.model.module.main();
  WeightStore weights = handle.model.weights();
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.inputs[i])];
    if (i < graph.params.size()) {
      handle.inputs.push_back(describe(buffer.name, buffer.type));
      continue;
    }
    LATHE_TRY(BufferView view, weights.get(buffer.name));
    handle.state.emplace_back(view.bytes, view.bytes + view.num_bytes);
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.outputs[i])];
    if (i < graph.outputs.size()) {
      handle.outputs.push_back(describe(buffer.name, buffer.type));
    } else {
      handle.results.emplace_back(static_cast<size_t>(buffer.num_bytes));
    }
  }
  handle.info = info_json(handle.model, handle.build, handle.backend->target(), handle.threads);
  return Ok{};
}

const lathe_tensor_info* tensor_at(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
                                   int32_t index) {
  bool is_valid = index >= 0 && static_cast<size_t>(index) < tensors.size();
  return is_valid ? &tensors[static_cast<size_t>(index)]->info : nullptr;
}

// The caller's memory, then the handle's own.
std::vector<BufferView> views(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
                              const void* const* pointers,
                              std::vector<std::vector<std::byte>>& own) {
  std::vector<BufferView> result;
  result.reserve(tensors.size() + own.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    result.push_back({static_cast<std::byte*>(const_cast<void*>(pointers[i])),
                      static_cast<size_t>(tensors[i]->info.num_bytes)});
  for (std::vector<std::byte>& bytes : own) result.push_back({bytes.data(), bytes.size()});
  return result;
}

// Puts mutated contents where the next run, or the caller, looks for them.
void write_back(const Program& program, const std::vector<BufferView>& inputs,
                const std::vector<BufferView>& outputs) {
  auto view_of = [](const std::vector<BufferId>& ids, const std::vector<BufferView>& from,
                    BufferId id) {
    auto at = std::find(ids.begin(), ids.end(), id);
    return at == ids.end() ? BufferView{} : from[static_cast<size_t>(at - ids.begin())];
  };
  for (const ProgramMutation& mutation : program.mutations) {
    BufferView to = view_of(program.inputs, inputs, mutation.input);
    BufferView from = view_of(program.outputs, outputs, mutation.output);
    if (to.bytes != nullptr && from.bytes != nullptr)
      std::memcpy(to.bytes, from.bytes, std::min(to.num_bytes, from.num_bytes));
  }
}

bool has_null(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
              const void* const* pointers) {
  if (pointers == nullptr) return !tensors.empty();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (pointers[i] == nullptr && tensors[i]->info.num_bytes > 0) return true;
  return false;
}

}  // namespace

}  // namespace lathe

extern "C" {

int32_t lathe_abi_version(void) { return LATHE_ABI_VERSION; }

lathe_model* lathe_load(const char* path, const char* options) {
  auto* handle = new (std::nothrow) lathe_model;
  if (handle == nullptr) return nullptr;
  lathe::LocTable locs;
  if (path == nullptr) {
    handle->fail({lathe::code::kMissingFile, lathe::Loc::unknown(), "no path given"}, locs);
    return handle;
  }
  lathe::Status status = lathe::load(*handle, path, options, locs);
  if (status.ok()) status = lathe::describe(*handle);
  if (!status.ok()) handle->fail(status.error(), locs);
  return handle;
}

void lathe_free(lathe_model* model) { delete model; }

const char* lathe_error(const lathe_model* model) {
  if (model == nullptr) return "no model";
  return model->status == LATHE_OK ? nullptr : model->error.c_str();
}

lathe_status lathe_last_status(const lathe_model* model) {
  return model == nullptr ? LATHE_WRONG_INPUT : model->status;
}

int32_t lathe_num_inputs(const lathe_model* model) {
  return model == nullptr ? 0 : static_cast<int32_t>(model->inputs.size());
}
int32_t lathe_num_outputs(const lathe_model* model) {
  return model == nullptr ? 0 : static_cast<int32_t>(model->outputs.size());
}
const lathe_tensor_info* lathe_input(const lathe_model* model, int32_t index) {
  return model == nullptr ? nullptr : lathe::tensor_at(model->inputs, index);
}
const lathe_tensor_info* lathe_output(const lathe_model* model, int32_t index) {
  return model == nullptr ? nullptr : lathe::tensor_at(model->outputs, index);
}

void lathe_set_stream(lathe_model* model, void* stream) {
  if (model != nullptr && model->is_loaded()) model->build.executable->set_stream(stream);
}

lathe_status lathe_run(lathe_model* model, const void* const* inputs, void* const* outputs) {
  if (model == nullptr) return LATHE_WRONG_INPUT;
  const lathe::LocTable& locs = model->model.module.locs;
  if (!model->is_loaded())
    return model->fail({lathe::code::kBadValue, lathe::Loc::unknown(), "the model is not loaded"},
                       locs);
  if (lathe::has_null(model->inputs, inputs) || lathe::has_null(model->outputs, outputs))
    return model->fail(
        {lathe::code::kBadValue, lathe::Loc::unknown(), "a pointer is null, expected memory"},
        locs);
  auto start = std::chrono::steady_clock::now();
  auto input_views = lathe::views(model->inputs, inputs, model->state);
  auto output_views = lathe::views(model->outputs, outputs, model->results);
  lathe::Status status = model->build.executable->run(input_views, output_views);
  if (status.ok()) lathe::write_back(model->build.program(), input_views, output_views);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  model->last_run_ms = elapsed.count();
  if (!status.ok()) return model->fail(status.error(), model->build.lowered.unit.module.locs);
  model->status = LATHE_OK;
  return LATHE_OK;
}

double lathe_last_run_ms(const lathe_model* model) {
  return model == nullptr ? 0 : model->last_run_ms;
}
int32_t lathe_num_threads(const lathe_model* model) {
  return model == nullptr ? 0 : model->threads;
}
const char* lathe_info(const lathe_model* model) {
  return model == nullptr ? "{}" : model->info.c_str();
}

}  // extern "C"
