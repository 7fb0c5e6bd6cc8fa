// The C ABI over the driver. Every function keeps its promises for a null handle too, and no
// exception crosses: the library throws none, but the standard library does when memory is out.
#include "frontend/api/lathe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/api/info.h"
#include "frontend/api/model_source.h"
#include "frontend/api/served.h"
#include "frontend/api/tensor_info.h"
#include "frontend/artifacts/dispatcher.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/options.h"
#include "ir/support/diag_codes.h"

namespace lathe {

static_assert(static_cast<int>(DType::f64) == LATHE_F64 &&
              static_cast<int>(DType::b8) == LATHE_BOOL);

}  // namespace lathe

struct lathe_model {
  std::string error;
  const char* fixed_error = nullptr;  // stands for `error`: that of what needs no memory
  lathe_status status = LATHE_OK;
  lathe::Model model;
  lathe::CompileRequest request;
  std::unique_ptr<lathe::Backend> backend;
  std::optional<lathe::Dispatcher> dispatcher;
  lathe::SharedWeights weights;                        // of its programs
  std::vector<std::unique_ptr<lathe::Served>> served;  // by number of an artifact
  lathe::Served* bound = nullptr;                      // what the next run runs
  lathe::BuildFailure failure;                         // of the last build that failed
  void* stream = nullptr;
  bool is_timing = false;
  std::unique_ptr<lathe::SizedTensors> sized;  // of inputs and outputs
  int threads = 1;
  std::vector<std::unique_ptr<lathe::TensorInfo>> inputs;
  std::vector<std::unique_ptr<lathe::TensorInfo>> outputs;
  std::vector<lathe::BufferView> sized_data;  // by output: the model's own memory, of the last run
  std::vector<bool> is_sized_in_run;          // by output
  // Buffers that the model mutates, which other handles may share and then wait for each other.
  lathe::State state;
  std::shared_ptr<std::mutex> turn = std::make_shared<std::mutex>();
  std::string info, artifacts, kernels, run_sizes;
  std::string refusals = "[]";
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
    bound = nullptr;
    served.clear();
    inputs.clear();
    outputs.clear();
  }
  bool is_loaded() const { return bound != nullptr; }
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

// The program that the policy planned, bound to these sizes.
Result<std::unique_ptr<Served>> compile(lathe_model& handle, const Artifact& planned,
                                        std::span<const int64_t> sizes) {
  CompileRequest request = handle.request;
  request.sizes = handle.dispatcher->sizes_of(planned);
  const std::vector<std::string>& symbols = handle.dispatcher->symbols();
  for (size_t i = 0; i < symbols.size(); ++i) handle.model.dims[symbols[i]] = sizes[i];
  LATHE_TRY(Build made,
            build(handle.model, *handle.backend, request, handle.failure, &handle.weights));
  LATHE_TRY(auto served, Served::create(std::move(made), handle.model, handle.state));
  LATHE_DO(served->bind(sizes));
  return served;
}

// Outputs whose sizes elements decide have none until a run finds them.
void forget_sized(lathe_model& handle) {
  handle.sized_data.assign(handle.outputs.size(), {});
  for (size_t i = 0; i < handle.outputs.size(); ++i) {
    if (!handle.is_sized_in_run[i]) continue;
    TensorInfo& tensor = *handle.outputs[i];
    const Shape& shape = handle.model.module.main().outputs[i].type().shape;
    for (size_t d = 0; d < shape.size(); ++d)
      tensor.shape[d] = shape[d].is_const() ? shape[d].value() : -1;
    tensor.info.num_bytes = 0;
  }
}

// From now on runs are for these sizes; compiles when no program serves them. `locs` becomes what
// the error refers to.
Status bind_sizes(lathe_model& handle, std::span<const int64_t> sizes, const LocTable*& locs) {
  Dispatcher& dispatcher = *handle.dispatcher;
  locs = &handle.model.module.locs;
  const bool fits =
      !handle.sized || sizes.size() != dispatcher.symbols().size() || handle.sized->evaluate(sizes);
  const auto too_large = [] {
    return Diag{code::kTooLarge, Loc::unknown(), "at these sizes an input or output is too large"};
  };
  std::unique_ptr<Served> made;
  LATHE_TRY(const auto found,
            dispatcher.serve(sizes, [&](const Artifact& planned) -> Result<std::vector<Guard>> {
              if (!fits) return too_large();
              locs = &handle.failure.locs;
              LATHE_TRY(made, compile(handle, planned, sizes));
              handle.served.resize(dispatcher.artifacts().size() + 1);  // what follows cannot fail
              const auto& symbolic = made->build().symbolic;
              return symbolic ? symbolic->guards : std::vector<Guard>();
            }));
  if (!fits) return too_large();
  std::unique_ptr<Served>& served = handle.served[found.artifact];
  if (found.is_new)
    served = std::move(made);
  else
    LATHE_DO(served->bind(sizes));
  handle.bound = served.get();
  handle.bound->executable().set_stream(handle.stream);
  forget_sized(handle);
  if (found.is_new) handle.bound->set_timing(handle.is_timing);
  if (handle.sized) handle.sized->show();
  return Ok{};
}

Status load(lathe_model& handle, const ModelSource& source, const char* options_text,
            LocTable& locs) {
  LATHE_TRY(handle.request, read_request(source.name(), options_text, locs));
  const CompileRequest& request = handle.request;
  handle.threads = request.num_threads();
  LATHE_TRY(handle.backend, choose_backend(request));
  LATHE_TRY(handle.model, open_source(source, request, locs));
  LATHE_TRY(handle.dispatcher, Dispatcher::create(handle.model, request));
  std::vector<int64_t> sizes;
  for (const auto& [symbol, size] : handle.model.dims) sizes.push_back(size);
  const LocTable* found_in = nullptr;
  Status bound = bind_sizes(handle, sizes, found_in);
  if (!bound.ok()) locs = *found_in;
  return bound;
}

bool has_any(const TensorType& type, const std::vector<std::string>& symbols) {
  std::vector<std::string> own;
  for (const Dim& dim : type.shape) dim.collect_symbols(own);
  return std::any_of(own.begin(), own.end(), [&](const std::string& name) {
    return std::find(symbols.begin(), symbols.end(), name) != symbols.end();
  });
}

// The caller sees the graph's params and outputs; what programs take and give beyond them is the
// model's state, which the handle keeps.
void describe_model(lathe_model& handle) {
  const Build& build = handle.bound->build();
  const Graph& graph = handle.model.module.main();
  handle.sized = std::make_unique<SizedTensors>(handle.dispatcher->symbols());
  const auto add = [&](std::vector<std::unique_ptr<TensorInfo>>& tensors, BufferId id,
                       const TensorType& type) {
    const ProgramBuffer& buffer = build.program().buffers[static_cast<size_t>(id)];
    tensors.push_back(describe(buffer.name, buffer.type));
    handle.sized->add(*tensors.back(), type);
  };
  for (size_t i = 0; i < graph.params.size(); ++i)
    add(handle.inputs, build.program().inputs[i], graph.params[i]->types[0]);
  const std::vector<std::string> in_run = graph.bound_symbols();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorType& type = graph.outputs[i].type();
    handle.is_sized_in_run.push_back(has_any(type, in_run));
    if (!handle.is_sized_in_run.back()) {
      add(handle.outputs, build.program().outputs[i], type);
      continue;
    }
    TensorType unknown = type;
    for (Dim& dim : unknown.shape) dim = 0;
    handle.outputs.push_back(describe(graph.outputs[i].node->name, unknown));
  }
  forget_sized(handle);
  handle.info = info_json(handle.model, build, handle.backend->target(), handle.threads);
  // Other sizes may need programs that pack weights anew.
  if (handle.model.dims.empty()) handle.model.weight_file.reset();
}

const lathe_tensor_info* tensor_at(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
                                   int32_t index) {
  bool is_valid = index >= 0 && static_cast<size_t>(index) < tensors.size();
  return is_valid ? &tensors[static_cast<size_t>(index)]->info : nullptr;
}

std::vector<BufferView> views(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
                              const void* const* pointers) {
  std::vector<BufferView> result;
  for (size_t i = 0; i < tensors.size(); ++i)
    result.push_back({static_cast<std::byte*>(const_cast<void*>(pointers[i])),
                      static_cast<size_t>(tensors[i]->info.num_bytes)});
  return result;
}

// A handle that the body has filled, or that says why it could not; null when memory is out.
template <class Body>
lathe_model* new_model(Body body) {
  lathe_model* handle = nullptr;
  try {
    handle = new lathe_model;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (handle->guard([&] { return body(*handle); }) != LATHE_OK) handle->unload();
  return handle;
}

lathe_status load_into(lathe_model& handle, const ModelSource& source, const char* options) {
  LocTable locs;
  const Status loaded = load(handle, source, options, locs);
  if (!loaded.ok()) {
    const bool is_imported = handle.dispatcher.has_value();
    if (source.graph) handle.refusals = refusals_json(source, is_imported, loaded.error(), locs);
    return handle.fail(loaded.error(), locs);
  }
  describe_model(handle);
  return LATHE_OK;
}

bool has_null(const std::vector<std::unique_ptr<TensorInfo>>& tensors,
              const void* const* pointers) {
  if (pointers == nullptr) return !tensors.empty();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (pointers[i] == nullptr && tensors[i]->info.num_bytes > 0) return true;
  return false;
}

// What the last run found of outputs whose sizes elements decide.
void show_sized(lathe_model& handle) {
  for (size_t i = 0; i < handle.outputs.size(); ++i) {
    if (!handle.is_sized_in_run[i]) continue;
    const std::optional<SizedOutput> found = handle.bound->executable().output(i);
    if (!found) continue;
    TensorInfo& tensor = *handle.outputs[i];
    std::copy(found->shape.begin(), found->shape.end(), tensor.shape.begin());
    tensor.info.num_bytes = found->view.num_bytes;
    handle.sized_data[i] = found->view;
  }
}

lathe_status run(lathe_model& handle, const void* const* inputs, void* const* outputs) {
  const auto refuse = [&](const char* why) {
    return handle.fail({code::kBadValue, Loc::unknown(), why}, handle.model.module.locs);
  };
  if (!handle.is_loaded()) return refuse("the model is not loaded");
  forget_sized(handle);
  if (has_null(handle.inputs, inputs) || has_null(handle.outputs, outputs))
    return refuse("a pointer is null, expected memory");
  std::unique_lock<std::mutex> turn(*handle.turn, std::defer_lock);
  if (!handle.state.empty()) turn.lock();
  const auto start = std::chrono::steady_clock::now();
  const Status status =
      handle.bound->run(views(handle.inputs, inputs), views(handle.outputs, outputs), handle.state);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  handle.last_run_ms = elapsed.count();
  if (!status.ok())
    return handle.fail(status.error(), handle.bound->build().lowered.unit.module.locs);
  show_sized(handle);
  handle.status = LATHE_OK;
  return LATHE_OK;
}

lathe_status copy_output(lathe_model& handle, int32_t index, void* to) {
  const bool is_there = index >= 0 && static_cast<size_t>(index) < handle.sized_data.size();
  const BufferView from = is_there ? handle.sized_data[static_cast<size_t>(index)] : BufferView();
  if (from.bytes == nullptr || (to == nullptr && from.num_bytes > 0))
    return handle.fail({code::kBadValue, Loc::unknown(),
                        "expected an output whose size a run found, and memory for it"},
                       handle.model.module.locs);
  const BufferView view{static_cast<std::byte*>(to), from.num_bytes};
  const Status copied = from.num_bytes == 0 ? Ok{} : handle.bound->executable().copy(from, view);
  if (!copied.ok()) return handle.fail(copied.error(), handle.model.module.locs);
  handle.status = LATHE_OK;
  return LATHE_OK;
}

lathe_status bind(lathe_model& handle, const int64_t* sizes, int32_t count) {
  const auto refuse = [&](const std::string& why) {
    return handle.fail({code::kBadValue, Loc::unknown(), why}, handle.model.module.locs);
  };
  if (!handle.is_loaded()) return refuse("the model is not loaded");
  if ((sizes == nullptr && count != 0) || count < 0)
    return refuse(fmt::format("the model has {} sizes, got {}", handle.model.dims.size(),
                              sizes == nullptr ? "none" : fmt::to_string(count)));
  const LocTable* locs = nullptr;
  const Status status = bind_sizes(handle, std::span(sizes, static_cast<size_t>(count)), locs);
  if (!status.ok()) return handle.fail(status.error(), *locs);
  handle.status = LATHE_OK;
  return LATHE_OK;
}

void set_timing(lathe_model& handle, bool on) {
  handle.is_timing = on;
  for (const auto& served : handle.served)
    if (served) served->set_timing(on);
}

lathe_status write_kernels(lathe_model& handle) {
  const Result<std::string> text = kernels_json(*handle.bound, handle.backend->target());
  if (!text.ok()) return handle.fail(text.error(), handle.bound->build().lowered.unit.module.locs);
  handle.kernels = *text;
  handle.status = LATHE_OK;
  return LATHE_OK;
}

lathe_status share_state(lathe_model& handle, const lathe_model& other) {
  const auto refuse = [&](const std::string& why) {
    return handle.fail({code::kBadValue, Loc::unknown(), why}, handle.model.module.locs);
  };
  if (!handle.is_loaded() || !other.is_loaded()) return refuse("the model is not loaded");
  for (const auto& [name, own] : handle.state) {
    const auto found = other.state.find(name);
    if (found == other.state.end() || found->second.num_bytes != own.num_bytes)
      return refuse(fmt::format("'{}' is no state of both models", name));
  }
  for (auto& [name, own] : handle.state) own = other.state.find(name)->second;
  handle.turn = other.turn;
  handle.status = LATHE_OK;
  return LATHE_OK;
}

}  // namespace

}  // namespace lathe

extern "C" {

int32_t lathe_abi_version(void) { return LATHE_ABI_VERSION; }

lathe_model* lathe_load(const char* path, const char* options) {
  return lathe::new_model([&](lathe_model& handle) {
    if (path == nullptr)
      return handle.fail({lathe::code::kMissingFile, lathe::Loc::unknown(), "no path given"}, {});
    return lathe::load_into(handle, {.path = path}, options);
  });
}

lathe_model* lathe_load_memory(const char* json, uint64_t size, const lathe_weight* weights,
                               int32_t count, const char* options) {
  return lathe::new_model([&](lathe_model& handle) {
    lathe::LocTable locs;
    auto source = lathe::given_source(json, size, weights, count);
    if (!source.ok()) return handle.fail(source.error(), locs);
    return lathe::load_into(handle, *source, options);
  });
}

const char* lathe_refusals(const lathe_model* model) {
  return model == nullptr ? "[]" : model->refusals.c_str();
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

lathe_status lathe_copy_output(lathe_model* model, int32_t index, void* to) {
  if (model == nullptr) return LATHE_WRONG_INPUT;
  return model->guard([&] { return lathe::copy_output(*model, index, to); });
}
const char* lathe_run_sizes(lathe_model* model) {
  if (model == nullptr || !model->is_loaded()) return "{}";
  const lathe_status status = model->guard([&] {
    model->run_sizes = lathe::sizes_json(model->bound->executable().sizes_in_run());
    return LATHE_OK;
  });
  return status == LATHE_OK ? model->run_sizes.c_str() : "{}";
}

void lathe_set_stream(lathe_model* model, void* stream) {
  if (model == nullptr || !model->is_loaded()) return;
  model->guard([&] {
    model->stream = stream;
    model->bound->executable().set_stream(stream);
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

lathe_status lathe_run_shaped(lathe_model* model, const int64_t* sizes, int32_t count,
                              const void* const* inputs, void* const* outputs) {
  const lathe_status status = lathe_bind(model, sizes, count);
  return status == LATHE_OK ? lathe_run(model, inputs, outputs) : status;
}

lathe_status lathe_share_state(lathe_model* model, const lathe_model* other) {
  if (model == nullptr || other == nullptr) return LATHE_WRONG_INPUT;
  return model->guard([&] { return lathe::share_state(*model, *other); });
}

void lathe_set_timing(lathe_model* model, int32_t on) {
  if (model == nullptr || !model->is_loaded()) return;
  model->guard([&] {
    lathe::set_timing(*model, on != 0);
    return LATHE_OK;
  });
}
const char* lathe_kernels(lathe_model* model) {
  if (model == nullptr || !model->is_loaded()) return "[]";
  const lathe_status status = model->guard([&] { return lathe::write_kernels(*model); });
  return status == LATHE_OK ? model->kernels.c_str() : "[]";
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
const char* lathe_artifacts(lathe_model* model) {
  if (model == nullptr || !model->dispatcher) return "[]";
  const lathe_status status = model->guard([&] {
    model->artifacts = lathe::artifacts_json(*model->dispatcher, model->served);
    return LATHE_OK;
  });
  return status == LATHE_OK ? model->artifacts.c_str() : "[]";
}

}  // extern "C"
