// See weights_file.h.
#include "backends/cpu/package/weights_file.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "backends/binding/binding.h"
#include "ir/program/arena.h"
#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

constexpr std::string_view kMagic = "lathe weights 1\n";
static_assert(kMagic.size() == 16);

uint64_t number_at(std::string_view bytes, size_t offset) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Diag wrong(std::string message) { return {code::kBadValue, Loc::unknown(), std::move(message)}; }

}  // namespace

WeightsPlan plan_weights(const Program& program, size_t num_inputs) {
  WeightsPlan plan;
  std::set<std::string> known;
  const auto add = [&](const std::string& name, const ProgramBuffer& buffer) {
    if (!known.insert(name).second) return;
    const int64_t num_bytes = buffer.num_bytes.value();
    plan.places.push_back({name, plan.num_bytes, num_bytes});
    plan.num_bytes += aligned(num_bytes);
  };
  for (BufferId id : weight_lifetimes(program).kept) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
    add(buffer.weight, buffer);
  }
  for (size_t i = num_inputs; i < program.inputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.inputs[i])];
    add(buffer.name, buffer);
  }
  return plan;
}

Result<std::string> write_weights(
    const WeightsPlan& plan, const std::function<Result<BufferView>(const std::string&)>& weight) {
  std::string file(kWeightsHeaderBytes + static_cast<size_t>(plan.num_bytes), '\0');
  const auto size = static_cast<uint64_t>(plan.num_bytes);
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  std::memcpy(file.data() + kMagic.size() + sizeof(uint64_t), &size, sizeof size);
  for (const WeightsPlan::Place& place : plan.places) {
    LATHE_TRY(const BufferView view, weight(place.name));
    if (view.num_bytes != static_cast<size_t>(place.num_bytes))
      return wrong(fmt::format("weight '{}' has {} bytes, expected {}", place.name, view.num_bytes,
                               place.num_bytes));
    if (view.num_bytes > 0)
      std::memcpy(file.data() + kWeightsHeaderBytes + place.offset, view.bytes, view.num_bytes);
  }
  return file;
}

void set_weights_id(std::string& file, uint64_t id) {
  std::memcpy(file.data() + kMagic.size(), &id, sizeof id);
}

Status check_weights_header(std::string_view header, uint64_t id, int64_t num_bytes) {
  if (header.size() < kWeightsHeaderBytes || !header.starts_with(kMagic))
    return wrong("it is no weights file of a package");
  if (number_at(header, kMagic.size()) != id)
    return wrong("it belongs to another package, or to another compilation of this one");
  const uint64_t size = number_at(header, kMagic.size() + sizeof id);
  if (size != static_cast<uint64_t>(num_bytes))
    return wrong(fmt::format("it has {} bytes of weights, expected {}", size, num_bytes));
  return Ok{};
}

}  // namespace lathe::cpu
