#include "backends/staged/staged.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/binding/binding.h"
#include "ir/program/split.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// What is there only grows.
struct OwnMemory {
  std::shared_ptr<std::byte> bytes = nullptr;
  size_t num_bytes = 0;

  Status reserve(Executable& executable, size_t wanted, const std::string& name) {
    if (wanted <= num_bytes) return Ok{};
    *this = {};
    LATHE_TRY(bytes, executable.allocate(wanted, name));
    num_bytes = wanted;
    return Ok{};
  }
};

class StagedExecutable final : public Executable {
 public:
  explicit StagedExecutable(const Program& program)
      : name_(program.name),
        inputs_(program.inputs),
        outputs_(program.outputs),
        by_callers_(bound_by_callers(program)),
        num_steps_(program.steps.size()),
        buffers_(program.buffers.size()) {
    const std::vector<std::string> in_run = bound_by_steps(program);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      Buffer& buffer = buffers_[i];
      buffer.name = program.buffers[i].name;
      buffer.num_bytes = program.buffers[i].num_bytes;
      buffer.shape = program.buffers[i].type.shape;
      std::vector<std::string> names;
      buffer.num_bytes.collect_symbols(names);
      for (const Dim& dim : buffer.shape) dim.collect_symbols(names);
      buffer.is_sized_in_run = std::any_of(names.begin(), names.end(), [&](const auto& name) {
        return std::find(in_run.begin(), in_run.end(), name) != in_run.end();
      });
    }
  }

  Status compile(Backend& backend, std::vector<Piece> pieces, const CompileOptions& options) {
    for (Piece& piece : pieces) {
      Stage stage;
      LATHE_TRY(stage.executable, backend.compile(piece.program, options));
      for (const auto& [symbol, range] : piece.program.symbols) stage.symbols.push_back(symbol);
      stage.inputs = std::move(piece.inputs);
      stage.outputs = std::move(piece.outputs);
      stage.steps = std::move(piece.steps);
      stage.symbol = std::move(piece.symbol);
      stage.value = piece.value;
      stage.loc = piece.loc;
      const ExecutableStats& stats = stage.executable->stats();
      stats_.codegen_ms += stats.codegen_ms;
      stats_.init_ms += stats.init_ms;
      stats_.persistent_bytes += stats.persistent_bytes;
      stages_.push_back(std::move(stage));
    }
    add_arenas();
    return Ok{};
  }

  Status bind(std::span<const int64_t> sizes) override {
    if (by_callers_.empty()) return check_no_sizes(name_, sizes);
    std::map<std::string, int64_t> values;
    for (size_t i = 0; i < by_callers_.size(); ++i) values.emplace(by_callers_[i], sizes[i]);
    LATHE_DO(bind_stage(stages_.front(), values));
    given_ = std::move(values);
    is_bound_ = true;
    return Ok{};
  }

  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override {
    if (!is_bound_ && !by_callers_.empty()) return needs_sizes(name_);
    if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size())
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("'{}' takes {} inputs and gives {} outputs, got {} and {}", name_,
                              inputs_.size(), outputs_.size(), inputs.size(), outputs.size())};
    for (Buffer& buffer : buffers_) buffer.view = {};
    for (size_t i = 0; i < inputs.size(); ++i) at(inputs_[i]).view = inputs[i];
    found_.clear();
    values_ = given_;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!at(outputs_[i]).is_sized_in_run && at(outputs_[i]).view.bytes == nullptr)
        at(outputs_[i]).view = outputs[i];
    Loc loc;  // of what bound the last size
    for (Stage& stage : stages_) {
      if (Status bound = bind_stage(stage, values_); !bound.ok()) {
        Diag error = std::move(bound).error();
        if (error.loc.is_unknown()) error.loc = loc;
        return error;
      }
      LATHE_DO(run_stage(stage));
      loc = stage.loc;
    }
    // An output that is an input or another output as well.
    for (size_t i = 0; i < outputs.size(); ++i) {
      const BufferView& view = at(outputs_[i]).view;
      if (at(outputs_[i]).is_sized_in_run || view.bytes == outputs[i].bytes) continue;
      LATHE_DO(stages_.back().executable->copy(view, outputs[i]));
    }
    add_arenas();
    return Ok{};
  }

  Status copy(const BufferView& from, const BufferView& to) override {
    return stages_.back().executable->copy(from, to);
  }
  Status wait() override { return stages_.back().executable->wait(); }
  const ExecutableStats& stats() const override { return stats_; }
  const std::map<std::string, int64_t>& sizes_in_run() const override { return found_; }
  std::optional<SizedOutput> output(size_t index) const override {
    const Buffer& buffer = buffers_[static_cast<size_t>(outputs_[index])];
    if (!buffer.is_sized_in_run) return std::nullopt;
    SizedOutput output{buffer.view, {}};
    for (const Dim& dim : buffer.shape) {
      const Result<int64_t> extent = dim.evaluate(values_);
      output.shape.push_back(extent.ok() ? *extent : 0);
    }
    return output;
  }
  void set_stream(void* stream) override {
    for (Stage& stage : stages_) stage.executable->set_stream(stream);
  }
  void set_timing(bool on) override {
    for (Stage& stage : stages_) stage.executable->set_timing(on);
  }
  std::vector<double> step_seconds() const override {
    std::vector<double> seconds(num_steps_);
    for (const Stage& stage : stages_) {
      const std::vector<double> own = stage.executable->step_seconds();
      if (own.size() != stage.steps.size()) return {};
      for (size_t i = 0; i < own.size(); ++i)
        if (stage.steps[i] >= 0) seconds[static_cast<size_t>(stage.steps[i])] = own[i];
    }
    return seconds;
  }

 private:
  struct Stage {
    std::unique_ptr<Executable> executable;
    std::vector<std::string> symbols;  // in the order that bind() has
    std::vector<BufferId> inputs, outputs;
    std::vector<int> steps;
    std::string symbol;  // bound behind it
    BufferId value = -1;
    Loc loc = {};
  };
  // Of the whole program.
  struct Buffer {
    std::string name;
    Dim num_bytes = 0;
    Shape shape = {};
    bool is_sized_in_run = false;
    OwnMemory memory = {};  // where it is not the caller's
    BufferView view = {};   // of this run
  };

  Buffer& at(BufferId id) { return buffers_[static_cast<size_t>(id)]; }

  static Status bind_stage(Stage& stage, const std::map<std::string, int64_t>& values) {
    if (stage.symbols.empty()) return Ok{};
    std::vector<int64_t> sizes;
    for (const std::string& symbol : stage.symbols) sizes.push_back(values.at(symbol));
    return stage.executable->bind(sizes);
  }

  Status run_stage(Stage& stage) {
    std::vector<BufferView> inputs, outputs;
    for (BufferId id : stage.inputs) inputs.push_back(at(id).view);
    for (BufferId id : stage.outputs) {
      LATHE_TRY(outputs.emplace_back(), output_view(id, stage));
    }
    LATHE_DO(stage.executable->run(inputs, outputs));
    for (size_t i = 0; i < outputs.size(); ++i) at(stage.outputs[i]).view = outputs[i];
    return stage.symbol.empty() ? Ok{} : read_size(stage);
  }

  // The caller's memory, or memory of our own: another one where the piece reads what was there.
  Result<BufferView> output_view(BufferId id, const Stage& stage) {
    Buffer& buffer = at(id);
    const bool is_read = std::count(stage.inputs.begin(), stage.inputs.end(), id) != 0;
    const bool is_given = buffer.view.bytes != nullptr && !is_read;
    if (is_given) return buffer.view;
    const Result<int64_t> num_bytes = buffer.num_bytes.evaluate(values_);
    if (!num_bytes.ok() || *num_bytes < 0)
      return Diag{code::kTooLarge, Loc::unknown(),
                  fmt::format("'{}' of program '{}' is too large", buffer.name, name_)};
    const auto bytes = static_cast<size_t>(*num_bytes);
    OwnMemory next;
    OwnMemory& memory = is_read ? next : buffer.memory;
    // One byte more: what is empty has a place too.
    LATHE_DO(memory.reserve(*stage.executable, bytes + 1, buffer.name));
    if (is_read) {
      std::swap(buffer.memory, next);
      replaced_.push_back(std::move(next));
    }
    return BufferView{buffer.memory.bytes.get(), bytes};
  }

  // What the piece wrote for the next one's size.
  Status read_size(Stage& stage) {
    LATHE_DO(stage.executable->wait());
    replaced_.clear();
    int64_t size = 0;
    const BufferView number{reinterpret_cast<std::byte*>(&size), sizeof(size)};
    LATHE_DO(stage.executable->copy(at(stage.value).view, number));
    LATHE_DO(stage.executable->wait());
    if (size < 0)
      return Diag{code::kDimRange, stage.loc,
                  fmt::format("'{}' of program '{}' is {}, below 0", stage.symbol, name_, size)};
    found_[stage.symbol] = values_[stage.symbol] = size;
    return Ok{};
  }

  void add_arenas() {
    stats_.arena_bytes = 0;
    for (const Stage& stage : stages_) stats_.arena_bytes += stage.executable->stats().arena_bytes;
  }

  const std::string name_;
  const std::vector<BufferId> inputs_, outputs_;
  const std::vector<std::string> by_callers_;
  const size_t num_steps_;
  std::vector<Buffer> buffers_;
  std::vector<Stage> stages_;
  std::vector<OwnMemory> replaced_;                // what a running piece may still read
  std::map<std::string, int64_t> given_;           // sizes that the caller bound
  std::map<std::string, int64_t> values_, found_;  // of a run
  bool is_bound_ = false;
  ExecutableStats stats_;
};

}  // namespace

Result<std::unique_ptr<Executable>> compile_staged(Backend& backend, const Program& program,
                                                   const CompileOptions& options) {
  if (bound_by_steps(program).empty()) return backend.compile(program, options);
  LATHE_DO(verify(program));
  CompileOptions own = options;
  own.reduce_overhead = false;  // sizes and addresses differ from run to run
  auto made = std::make_unique<StagedExecutable>(program);
  LATHE_DO(made->compile(backend, split(program), own));
  return std::unique_ptr<Executable>(std::move(made));
}

}  // namespace lathe
