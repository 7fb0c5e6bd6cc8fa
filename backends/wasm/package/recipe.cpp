// See recipe.h.
#include "backends/wasm/package/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "backends/wasm/json_text.h"
#include "ir/program/binding.h"
#include "ir/type/dim_tape.h"

namespace lathe::wasm {
namespace {

template <class Items, class Print>
std::string array(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ",") + std::string(print(item));
  return "[" + text + "]";
}

std::string_view op_name(DimTape::Op op) {
  constexpr std::string_view kNames[] = {"constant",  "symbol", "fail", "add", "mul",
                                         "floor_div", "mod",    "max",  "min"};
  return kNames[static_cast<size_t>(op)];
}

class Writer {
 public:
  Writer(const Program& program, const CompiledProgram& compiled, const WeightsPlan& weights)
      : program_(program),
        compiled_(compiled),
        weights_(weights),
        plan_(Binder(program).plan()),
        tape_(plan_.tape) {}

  std::string run(size_t num_inputs, size_t num_outputs, uint64_t weights_id) {
    // The tape is written last: the rest adds to it.
    std::string text = fmt::format("\"symbols\":{},\"checks\":{},", symbols(), checks());
    text += fmt::format("\"kernels\":{},\"fits\":{},\"alike\":{},", kernels(), fits(), alike());
    text += fmt::format("\"buffers\":[{}],\"address\":[{}],", fmt::join(plan_.num_bytes, ","),
                        fmt::join(compiled_.layout.address, ","));
    text += fmt::format("\"inputs\":{},\"outputs\":{},", ports(program_.inputs, num_inputs),
                        ports(program_.outputs, num_outputs));
    text += fmt::format("\"state\":{},\"mutations\":{},", state(num_inputs), mutations());
    text += fmt::format("\"kept\":{},\"init\":{},", stored(compiled_.layout.weights),
                        array(compiled_.layout.staged, [&](const auto& s) { return stored(s); }));
    text += fmt::format("\"asserts\":{},", asserts());
    text += fmt::format("\"table\":{},\"ports\":[{}],\"lives\":{},\"scratch\":{},", table(),
                        fmt::join(called_ports(), ","), lives(), scratch());
    return fmt::format(
        "{{\"version\":1,{}\"rest\":{},\"pages\":{},\"weights\":{{\"bytes\":{},\"id\":\"{:016x}\"}}"
        ","
        "\"tape\":{}}}",
        text, compiled_.layout.rest, compiled_.module.num_pages, file_offset(weights_.num_bytes),
        weights_id, array(tape_.steps(), [](const DimTape::Step& step) {
          return fmt::format("[\"{}\",{},{}]", op_name(step.op), step.a, step.b);
        }));
  }

 private:
  const ProgramBuffer& buffer(BufferId id) const {
    return program_.buffers[static_cast<size_t>(id)];
  }

  static int64_t file_offset(int64_t in_data) {
    return static_cast<int64_t>(kWeightsHeaderBytes) + in_data;
  }
  int64_t offset_of(const std::string& weight) const {
    return file_offset(weights_.find(weight)->offset);
  }

  std::string symbols() const {
    return array(program_.symbols, [](const auto& symbol) {
      const DimRange& range = symbol.second;
      const std::string most = range.max ? fmt::to_string(*range.max) : "null";
      return fmt::format(R"({{"name":{},"min":{},"max":{}}})", quoted(symbol.first),
                         std::max<int64_t>(range.min.value_or(0), 0), most);
    });
  }

  std::string checks() {
    return array(program_.guards, [&](const Guard& guard) {
      return fmt::format("[{},{},{},{}]", quoted(std::string(relation_sign(guard.relation))),
                         tape_.add(guard.left), tape_.add(guard.right), quoted(to_string(guard)));
    });
  }

  std::string kernels() const {
    return array(plan_.kernel_sizes, [](const BindingPlan::KernelSize& size) {
      return fmt::format("[{},{},{},{}]", size.at, size.min, size.max, size.multiple);
    });
  }

  std::string fits() {
    std::string text = array(plan_.fit_checks, [&](const BindingPlan::FitCheck& check) {
      const size_t has = plan_.num_bytes[static_cast<size_t>(check.buffer)];
      return fmt::format("[{},{},{},{}]", check.needed, has, check.bytes_each, check.offset);
    });
    for (const auto& [needed, has] : plan_.type_fits)
      text.insert(text.size() - 1,
                  fmt::format("{}[{},{},1,0]", text.size() > 2 ? "," : "", needed, has));
    return text;
  }

  std::string alike() const {
    return array(plan_.alike,
                 [](const auto& pair) { return fmt::format("[{},{}]", pair.first, pair.second); });
  }

  std::string ports(const std::vector<BufferId>& ids, size_t count) {
    const std::vector<BufferId> first(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count));
    return array(first, [&](BufferId id) {
      const TensorType& type = buffer(id).type;
      std::vector<size_t> shape;
      for (const Dim& dim : type.shape) shape.push_back(tape_.add(dim));
      return fmt::format(R"({{"name":{},"dtype":"{}","shape":[{}],"buffer":{}}})",
                         quoted(buffer(id).name), dtype_name(type.dtype), fmt::join(shape, ","),
                         id);
    });
  }

  std::string state(size_t num_inputs) const {
    const std::vector<BufferId> ids(program_.inputs.begin() + static_cast<ptrdiff_t>(num_inputs),
                                    program_.inputs.end());
    return array(ids, [&](BufferId id) {
      return fmt::format(R"({{"buffer":{},"offset":{},"bytes":{}}})", id,
                         offset_of(buffer(id).name), buffer(id).num_bytes.value());
    });
  }

  std::string mutations() const {
    return array(program_.mutations, [](const ProgramMutation& mutation) {
      return fmt::format("[{},{}]", mutation.input, mutation.output);
    });
  }

  std::string stored(const std::vector<Placement>& placements) const {
    return array(placements, [&](const Placement& placement) {
      const ProgramBuffer& weight = buffer(placement.buffer);
      return fmt::format("[{},{},{}]", placement.address, offset_of(weight.weight),
                         weight.num_bytes.value());
    });
  }

  std::string table() const {
    if (compiled_.layout.table < 0) return "null";
    std::string steps;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      std::vector<size_t> words = plan_.sizes[i];
      if (const auto* copy = std::get_if<CopyLaunch>(&program_.steps[i].kind))
        words = {plan_.num_bytes[static_cast<size_t>(copy->source)]};
      steps += fmt::format("{}[{}]", i == 0 ? "" : ",", fmt::join(words, ","));
    }
    return fmt::format(R"({{"address":{},"steps":[{}]}})", compiled_.layout.table, steps);
  }

  // [buffer of the key, low, high, message]
  std::string asserts() {
    std::string text;
    for (const Launch& step : program_.steps) {
      const auto* assertion = std::get_if<AssertLaunch>(&step.kind);
      if (assertion == nullptr) continue;
      text += fmt::format("{}[{},{},{},{}]", text.empty() ? "" : ",", assertion->key,
                          tape_.add(assertion->low), tape_.add(assertion->high),
                          quoted(assertion->message));
    }
    return "[" + text + "]";
  }

  // Those that have an address for each choice of sizes, in the order in which they get it.
  std::vector<size_t> called_ports() const {
    std::vector<size_t> ids;
    for (size_t id = 0; id < program_.buffers.size(); ++id)
      if (const BufferKind kind = program_.buffers[id].kind;
          kind == BufferKind::input || kind == BufferKind::output)
        ids.push_back(id);
    return ids;
  }

  std::string lives() const {
    return array(plan_.lives, [](const Lifetime& life) {
      return fmt::format("[{},{},{}]", life.id, life.first, life.last);
    });
  }

  // By kernel launch: bytes, then [elements, bytes of each] of what follows from sizes.
  std::string scratch() {
    std::string text;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const auto* kernel = std::get_if<KernelLaunch>(&program_.steps[i].kind);
      if (kernel == nullptr) continue;
      const auto& frame = compiled_.frames[static_cast<size_t>(kernel->kernel)];
      const auto of = [&](const placement::FrameSize& size) {
        return size.dim < 0 ? tape_.add(size.number)
                            : plan_.sizes[i][static_cast<size_t>(size.dim)];
      };
      const std::string sized = array(frame.sized_scratch, [&](const auto& part) {
        return fmt::format("[{},{}]", of(part.elements), part.bytes_each);
      });
      text += fmt::format("{}[{},{}]", text.empty() ? "" : ",", frame.scratch_bytes, sized);
    }
    return "[" + text + "]";
  }

  const Program& program_;
  const CompiledProgram& compiled_;
  const WeightsPlan& weights_;
  const BindingPlan plan_;
  DimTape tape_;
};

}  // namespace

Result<std::string> recipe_json(const Program& program, const CompiledProgram& compiled,
                                size_t num_inputs, size_t num_outputs, const WeightsPlan& weights,
                                uint64_t weights_id) {
  return Writer(program, compiled, weights).run(num_inputs, num_outputs, weights_id);
}

}  // namespace lathe::wasm
