// Runs of one program: the caller's memory, then the handle's own.
#include "frontend/api/served.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/binding/mutations.h"
#include "frontend/file/file_bytes.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

const ProgramBuffer& buffer_at(const Program& program, BufferId id) {
  return program.buffers[static_cast<size_t>(id)];
}

void keep_least(const std::vector<double>& seconds, std::vector<double>& least) {
  if (least.empty()) least = seconds;
  for (size_t i = 0; i < least.size() && i < seconds.size(); ++i)
    least[i] = std::min(least[i], seconds[i]);
}

}  // namespace

Result<OwnBuffer> OwnBuffer::create(size_t num_bytes, const std::string& name) {
  OwnBuffer buffer;
  buffer.num_bytes = num_bytes;
  LATHE_TRY(buffer.bytes, new_bytes(num_bytes, fmt::format("buffer '{}'", name)));
  return buffer;
}

Result<std::unique_ptr<Served>> Served::create(Build build, const Model& model, State& state) {
  auto served = std::make_unique<Served>();
  served->build_ = std::move(build);
  const Program& program = served->build_.program();
  const Graph& graph = model.module.main();
  WeightStore weights = model.weights();
  for (size_t i = graph.params.size(); i < program.inputs.size(); ++i) {
    const ProgramBuffer& buffer = buffer_at(program, program.inputs[i]);
    served->state_names_.push_back(buffer.name);
    if (state.count(buffer.name) != 0) continue;
    LATHE_TRY(BufferView view, weights.get(buffer.name));
    LATHE_TRY(OwnBuffer own,
              OwnBuffer::create(static_cast<size_t>(buffer.num_bytes.value()), buffer.name));
    std::copy_n(view.bytes, std::min(view.num_bytes, own.num_bytes), own.bytes.get());
    state.emplace(buffer.name, std::move(own));
  }
  for (size_t i = graph.outputs.size(); i < program.outputs.size(); ++i) {
    const ProgramBuffer& buffer = buffer_at(program, program.outputs[i]);
    served->result_infos_.push_back(describe(buffer.name, buffer.type));
  }
  for (const auto& info : served->result_infos_) {
    LATHE_TRY(served->results_.emplace_back(), OwnBuffer::create(info->info.num_bytes, info->name));
  }
  if (!served->build_.symbolic) return served;
  const Program& symbolic = *served->build_.symbolic;
  std::vector<std::string> symbols;
  for (const std::string& symbol : bound_by_callers(symbolic)) {
    const auto at = model.dims.find(symbol);
    symbols.push_back(symbol);
    served->places_.push_back(static_cast<size_t>(std::distance(model.dims.begin(), at)));
    served->values_.push_back(at->second);
  }
  served->bound_ = served->values_;
  served->sized_ = std::make_unique<SizedTensors>(symbols);
  for (size_t i = 0; i < served->results_.size(); ++i)
    served->sized_->add(*served->result_infos_[i],
                        buffer_at(symbolic, symbolic.outputs[graph.outputs.size() + i]).type);
  return served;
}

// Changes nothing unless all of it works: whatever can fail comes before what is changed.
Status Served::bind(std::span<const int64_t> sizes) {
  if (places_.empty()) return Ok{};
  for (size_t i = 0; i < places_.size(); ++i) values_[i] = sizes[places_[i]];
  if (!sized_->evaluate(values_))
    return Diag{code::kTooLarge, Loc::unknown(), "at these sizes an input is too large"};
  std::vector<OwnBuffer> more;  // what a run makes of state may need
  for (size_t i = 0; i < results_.size(); ++i) {
    const auto num_bytes = static_cast<size_t>(sized_->num_bytes(i));
    if (num_bytes <= results_[i].num_bytes) continue;
    more.resize(results_.size());
    LATHE_TRY(more[i], OwnBuffer::create(num_bytes, result_infos_[i]->name));
  }
  LATHE_DO(build_.executable->bind(values_));
  for (size_t i = 0; i < more.size(); ++i)
    if (more[i].bytes != nullptr) results_[i] = std::move(more[i]);
  sized_->show();
  if (bound_ == values_) return Ok{};
  bound_ = values_;
  seconds_.clear();
  return Ok{};
}

void Served::set_timing(bool on) {
  build_.executable->set_timing(on);
  is_timing_ = on;
  if (on) seconds_.clear();
}

Status Served::run(std::vector<BufferView> inputs, std::vector<BufferView> outputs,
                   const State& state) {
  for (const std::string& name : state_names_) {
    const OwnBuffer& buffer = state.find(name)->second;
    inputs.push_back({buffer.bytes.get(), buffer.num_bytes});
  }
  for (size_t i = 0; i < results_.size(); ++i)
    outputs.push_back(
        {results_[i].bytes.get(), static_cast<size_t>(result_infos_[i]->info.num_bytes)});
  LATHE_DO(build_.executable->run(inputs, outputs));
  if (is_timing_) keep_least(build_.executable->step_seconds(), seconds_);
  return write_back(build_.program(), *build_.executable, inputs, outputs);
}

}  // namespace lathe
