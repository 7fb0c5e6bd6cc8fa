// The C ABI over the driver. Every function keeps its promises for a null handle too, and no
// exception crosses: the library throws none, but the standard library does when memory is out.
#include "frontend/api/lathe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "frontend/api/info.h"
#include "frontend/api/tensor_info.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/files.h"
#include "frontend/driver/options.h"
#include "frontend/file/file_bytes.h"
#include "ir/support/diag_codes.h"

namespace lathe {

static_assert(static_cast<int>(DType::f64) == LATHE_F64 &&
              static_cast<int>(DType::b8) == LATHE_BOOL);

namespace {

// Memory of the handle.
struct OwnBuffer {
  std::shared_ptr<std::byte> bytes;
  size_t num_bytes = 0;

  static Result<OwnBuffer> create(int64_t num_bytes, const std::string& name) {
    OwnBuffer buffer;
    buffer.num_bytes = static_cast<size_t>(num_bytes);
    LATHE_TRY(buffer.bytes, new_bytes(buffer.num_bytes, fmt::format("buffer '{}'", name)));
    return buffer;
  }
};

}  // namespace

// Sizes of a program with symbols, and what follows them.
struct BoundSizes {
  explicit BoundSizes(const std::vector<std::string>& symbols) : tensors(symbols) {}
  std::vector<size_t> places;  // of the program's symbols among the model's dims
  std::vector<int64_t> values;
  SizedTensors tensors;
  std::vector<std::unique_ptr<TensorInfo>> results;  // what a run makes of state
};

}  // namespace lathe

struct lathe_model {
  std::string error;
  const char* fixed_error = nullptr;  // stands for `error`: that of what needs no memory
  lathe_status status = LATHE_OK;
  lathe::Model model;
  std::unique_ptr<lathe::Backend> backend;
  lathe::Build build;
  int threads = 1;
  std::vector<std::unique_ptr<lathe::TensorInfo>> inputs;
  std::vector<std::unique_ptr<lathe::TensorInfo>> outputs;
  // Buffers that the model mutates, which other handles may share and then wait for each other, and
  // what a run makes of them.
  std::vector<lathe::OwnBuffer> state;
  std::shared_ptr<std::mutex> turn = std::make_shared<std::mutex>();
  std::vector<lathe::OwnBuffer> results;
  std::unique_ptr<lathe::BoundSizes> sizes;  // with option "dynamic"
  std::string info;
  double last_run_ms = 0;

  lathe_status fail(const lathe::Diag& diag, const lathe::LocTable& locs) {
    error = lathe::render(diag, locs);
    fixed_error = nullptr;
    status = diag.is_internal ? LATHE_INTERNAL : LATHE_WRONG_INPUT;
    return status;
  }
  lathe_status fail(const char* message, lathe_status why) {
    fixed_error = message;
    status = why;
    return status;
  }
  // Runs a body that gives a status. What the standard library throws in there ends here.
  template <class Body>
  lathe_status guard(Body body) {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return fail("error[too-large]: memory is out\n", LATHE_OUT_OF_MEMORY);
    } catch (const std::exception&) {
      return fail("error[internal]: the standard library threw\n", LATHE_INTERNAL);
    }
  }
  // Leaves nothing to ask for or to run.
  void unload() {
    build.executable.reset();
    inputs.clear();
    outputs.clear();
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

// Prepares for lathe_bind: the tensors of the caller and the results follow the sizes.
void describe_sizes(lathe_model& handle) {
  const Program& program = *handle.build.symbolic;
  std::vector<std::string> symbols;
  for (const auto& [symbol, range] : program.symbols) symbols.push_back(symbol);
  handle.sizes = std::make_unique<BoundSizes>(symbols);
  BoundSizes& sizes = *handle.sizes;
  for (const std::string& symbol : symbols)
    sizes.places.push_back(static_cast<size_t>(
        std::distance(handle.model.dims.begin(), handle.model.dims.find(symbol))));
  sizes.values.resize(symbols.size());
  const auto type_of = [&](BufferId id) -> const TensorType& {
    return program.buffers[static_cast<size_t>(id)].type;
  };
  for (size_t i = 0; i < handle.inputs.size(); ++i)
    sizes.tensors.add(*handle.inputs[i], type_of(program.inputs[i]));
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const bool is_callers = i < handle.outputs.size();
    if (!is_callers) {
      const ProgramBuffer& buffer =
          handle.build.program().buffers[static_cast<size_t>(program.outputs[i])];
      sizes.results.push_back(describe(buffer.name, buffer.type));
    }
    TensorInfo& tensor = is_callers ? *handle.outputs[i] : *sizes.results.back();
    sizes.tensors.add(tensor, type_of(program.outputs[i]));
  }
}

// The caller sees the graph's params and outputs; what the program takes and gives beyond them is
// the model's state, which the handle keeps.
Status describe_model(lathe_model& handle) {
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
    LATHE_TRY(OwnBuffer own, OwnBuffer::create(buffer.num_bytes.value(), buffer.name));
    std::copy_n(view.bytes, std::min(view.num_bytes, own.num_bytes), own.bytes.get());
    handle.state.push_back(std::move(own));
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.outputs[i])];
    if (i < graph.outputs.size()) {
      handle.outputs.push_back(describe(buffer.name, buffer.type));
    } else {
      LATHE_TRY(OwnBuffer own, OwnBuffer::create(buffer.num_bytes.value(), buffer.name));
      handle.results.push_back(std::move(own));
    }
  }
  if (handle.build.symbolic) describe_sizes(handle);
  handle.model.weight_file.reset();  // what runs need of it is in memory
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
                              const void* const* pointers, const std::vector<OwnBuffer>& own) {
  std::vector<BufferView> result;
  result.reserve(tensors.size() + own.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    result.push_back({static_cast<std::byte*>(const_cast<void*>(pointers[i])),
                      static_cast<size_t>(tensors[i]->info.num_bytes)});
  for (const OwnBuffer& buffer : own) result.push_back({buffer.bytes.get(), buffer.num_bytes});
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

lathe_model* new_handle() {
  try {
    return new lathe_model;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool has_null(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
              const void* const* pointers) {
  if (pointers == nullptr) return !tensors.empty();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (pointers[i] == nullptr && tensors[i]->info.num_bytes > 0) return true;
  return false;
}

lathe_status run(lathe_model& handle, const void* const* inputs, void* const* outputs) {
  const auto refuse = [&](const char* why) {
    return handle.fail({code::kBadValue, Loc::unknown(), why}, handle.model.module.locs);
  };
  if (!handle.is_loaded()) return refuse("the model is not loaded");
  if (has_null(handle.inputs, inputs) || has_null(handle.outputs, outputs))
    return refuse("a pointer is null, expected memory");
  std::unique_lock<std::mutex> turn(*handle.turn, std::defer_lock);
  if (!handle.state.empty()) turn.lock();
  auto start = std::chrono::steady_clock::now();
  auto input_views = views(handle.inputs, inputs, handle.state);
  auto output_views = views(handle.outputs, outputs, handle.results);
  Status status = handle.build.executable->run(input_views, output_views);
  if (status.ok()) write_back(handle.build.program(), input_views, output_views);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  handle.last_run_ms = elapsed.count();
  if (!status.ok()) return handle.fail(status.error(), handle.build.lowered.unit.module.locs);
  handle.status = LATHE_OK;
  return LATHE_OK;
}

// Makes room for what a run makes of state.
Status grow_results(lathe_model& handle) {
  for (size_t i = 0; i < handle.results.size(); ++i) {
    const TensorInfo& needed = *handle.sizes->results[i];
    OwnBuffer& own = handle.results[i];
    if (needed.info.num_bytes > own.num_bytes) {
      LATHE_TRY(own, OwnBuffer::create(static_cast<int64_t>(needed.info.num_bytes), needed.name));
    }
    own.num_bytes = static_cast<size_t>(needed.info.num_bytes);
  }
  return Ok{};
}

lathe_status bind(lathe_model& handle, const int64_t* sizes, int32_t count) {
  const auto refuse = [&](const std::string& why) {
    return handle.fail({code::kBadValue, Loc::unknown(), why}, handle.model.module.locs);
  };
  if (!handle.is_loaded()) return refuse("the model is not loaded");
  if (handle.sizes == nullptr) return refuse("sizes are bound with option 'dynamic' alone");
  if (sizes == nullptr || static_cast<size_t>(std::max(count, 0)) != handle.model.dims.size())
    return refuse(fmt::format("the model has {} sizes, got {}", handle.model.dims.size(), count));
  BoundSizes& bound = *handle.sizes;
  for (size_t i = 0; i < bound.places.size(); ++i) bound.values[i] = sizes[bound.places[i]];
  Status status = handle.build.executable->bind(bound.values);
  if (status.ok()) {
    bound.tensors.set_sizes(bound.values);
    status = grow_results(handle);
  }
  if (!status.ok()) return handle.fail(status.error(), handle.build.lowered.unit.module.locs);
  handle.status = LATHE_OK;
  return LATHE_OK;
}

const std::string& state_name(const lathe_model& handle, size_t i) {
  const Program& program = handle.build.program();
  return program.buffers[static_cast<size_t>(program.inputs[handle.inputs.size() + i])].name;
}

lathe_status share_state(lathe_model& handle, const lathe_model& other) {
  const auto refuse = [&](const std::string& why) {
    return handle.fail({code::kBadValue, Loc::unknown(), why}, handle.model.module.locs);
  };
  if (!handle.is_loaded() || !other.is_loaded()) return refuse("the model is not loaded");
  std::vector<OwnBuffer> shared;
  for (size_t i = 0; i < handle.state.size(); ++i) {
    const std::string& name = state_name(handle, i);
    size_t j = 0;
    while (j < other.state.size() && state_name(other, j) != name) ++j;
    if (j == other.state.size() || other.state[j].num_bytes != handle.state[i].num_bytes)
      return refuse(fmt::format("'{}' is no state of both models", name));
    shared.push_back(other.state[j]);
  }
  handle.state = std::move(shared);
  handle.turn = other.turn;
  handle.status = LATHE_OK;
  return LATHE_OK;
}

}  // namespace

}  // namespace lathe

extern "C" {

int32_t lathe_abi_version(void) { return LATHE_ABI_VERSION; }

lathe_model* lathe_load(const char* path, const char* options) {
  lathe_model* handle = lathe::new_handle();
  if (handle == nullptr) return nullptr;
  const lathe_status status = handle->guard([&] {
    lathe::LocTable locs;
    if (path == nullptr)
      return handle->fail({lathe::code::kMissingFile, lathe::Loc::unknown(), "no path given"},
                          locs);
    lathe::Status loaded = lathe::load(*handle, path, options, locs);
    if (loaded.ok()) loaded = lathe::describe_model(*handle);
    return loaded.ok() ? LATHE_OK : handle->fail(loaded.error(), locs);
  });
  if (status != LATHE_OK) handle->unload();
  return handle;
}

void lathe_free(lathe_model* model) { delete model; }

const char* lathe_error(const lathe_model* model) {
  if (model == nullptr) return "no model";
  if (model->status == LATHE_OK) return nullptr;
  return model->fixed_error != nullptr ? model->fixed_error : model->error.c_str();
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
  if (model == nullptr || !model->is_loaded()) return;
  model->guard([&] {
    model->build.executable->set_stream(stream);
    return LATHE_OK;
  });
}

lathe_status lathe_run(lathe_model* model, const void* const* inputs, void* const* outputs) {
  if (model == nullptr) return LATHE_WRONG_INPUT;
  return model->guard([&] { return lathe::run(*model, inputs, outputs); });
}

lathe_status lathe_bind(lathe_model* model, const int64_t* sizes, int32_t count) {
  if (model == nullptr) return LATHE_WRONG_INPUT;
  return model->guard([&] { return lathe::bind(*model, sizes, count); });
}

lathe_status lathe_share_state(lathe_model* model, const lathe_model* other) {
  if (model == nullptr || other == nullptr) return LATHE_WRONG_INPUT;
  return model->guard([&] { return lathe::share_state(*model, *other); });
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
