// See weights_file.h.
#include "backends/binding/weights_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/program/arena.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"

namespace lathe {
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

void WeightsPlan::add(const std::string& name, int64_t bytes) {
  if (find(name) != nullptr) return;
  places.push_back({name, num_bytes, bytes});
  num_bytes += aligned(bytes);
}

const WeightsPlan::Place* WeightsPlan::find(const std::string& name) const {
  const auto at = std::find_if(places.begin(), places.end(),
                               [&](const Place& place) { return place.name == name; });
  return at == places.end() ? nullptr : &*at;
}

void add_state(WeightsPlan& plan, const Program& program, size_t num_inputs) {
  for (size_t i = num_inputs; i < program.inputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.inputs[i])];
    plan.add(buffer.name, buffer.num_bytes.value());
  }
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

uint64_t set_weights_id(std::string& file, std::string_view program) {
  const uint64_t id = Hasher().add(program).add(file).value();
  std::memcpy(file.data() + kMagic.size(), &id, sizeof id);
  return id;
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

}  // namespace lathe
