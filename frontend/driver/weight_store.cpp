// Reads weights where the importer found them.
#include "frontend/driver/weight_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/driver/machine.h"
#include "frontend/weights/random.h"
#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

size_t dense_bytes(const TensorType& type) {
  return static_cast<size_t>(type.static_elements().value_or(0) * dtype_bytes(type.dtype));
}

}  // namespace

StoredRange range_of(const TensorData& data, int64_t first_byte) {
  const int64_t width = dtype_bytes(data.type.dtype);
  int64_t reach = data.type.static_elements().value_or(0) > 0 ? 1 : 0;
  const std::vector<int64_t> shape = data.type.static_shape();
  for (size_t i = 0; i < shape.size() && reach > 0; ++i) reach += (shape[i] - 1) * data.strides[i];
  return {first_byte, first_byte + reach * width, width};
}

WeightStore::WeightStore(const Module& module, std::optional<uint64_t> seed,
                         std::shared_ptr<const WeightFile> file)
    : module_(module), seed_(seed), file_(std::move(file)) {
  if (seed_)
    for (const auto& [name, weight] : module.weights)
      made_bytes_ += static_cast<double>(dense_bytes(weight.data.type));
  if (file_ == nullptr) return;
  constexpr uint64_t kAlignment = 64;  // elements are as aligned as they are in the entry
  for (const auto& [name, place] : file_->places) {
    const auto weight = module.weights.find(name);
    if (weight == module.weights.end()) continue;
    const StoredRange range = range_of(weight->second.data, place.first_byte);
    Entry& entry = entries_[place.entry];
    ++entry.num_weights;
    if (range.begin == range.end) continue;
    entry.begin =
        std::min(entry.begin, static_cast<uint64_t>(range.begin) / kAlignment * kAlignment);
    entry.end = std::max(entry.end, static_cast<uint64_t>(range.end));
  }
}

// The importer has checked that the elements lie in their entry.
Status WeightStore::read(const std::string& name, TensorData& data) {
  const auto place = file_->places.find(name);
  if (place == file_->places.end()) return Ok{};
  const StoredRange range = range_of(data, place->second.first_byte);
  if (range.begin == range.end) {
    FileBytes none = own_bytes({});
    data.bytes = none.data;
    data.owner = std::move(none.owner);
    return Ok{};
  }
  Entry& entry = entries_[place->second.entry];
  FileBytes bytes = entry.bytes;
  if (bytes.data == nullptr) {
    LATHE_TRY(bytes, file_->file.read_range(place->second.entry, entry.begin, entry.end));
    if (entry.num_weights > 1) entry.bytes = bytes;
  }
  const auto skipped = static_cast<size_t>(static_cast<uint64_t>(range.begin) - entry.begin);
  data.bytes = bytes.data + skipped;
  data.num_bytes = bytes.size - skipped;
  data.owner = std::move(bytes.owner);
  return Ok{};
}

Result<FileBytes> WeightStore::make(const std::string& name, const TensorData& data) {
  if (seed_) LATHE_DO(check_fits(made_bytes_, "the model's weights"));
  if (seed_) return random_tensor(name, data.type, weight_rule(name, data.type), *seed_);
  TensorData stored = data;
  if (stored.bytes == nullptr && file_ != nullptr) LATHE_DO(read(name, stored));
  if (stored.bytes == nullptr)
    return Diag{
        code::kMissingWeight, Loc::unknown(),
        fmt::format("weight '{}' is not in the file, expected --weights random:SEED", name)};
  if (is_row_major(stored))
    return FileBytes{stored.bytes, dense_bytes(stored.type), std::move(stored.owner)};
  LATHE_TRY(Tensor tensor, read_tensor(stored));
  auto dense = std::make_shared<std::vector<std::byte>>(to_bytes(tensor));
  return FileBytes{dense->data(), dense->size(), dense};
}

Result<BufferView> WeightStore::get(const std::string& name) {
  const auto view = [](const FileBytes& bytes) {
    return BufferView{const_cast<std::byte*>(bytes.data), bytes.size};
  };
  if (auto held = held_.find(name); held != held_.end()) return view(held->second);
  auto weight = module_.weights.find(name);
  if (weight == module_.weights.end())
    return Diag{code::kMissingWeight, Loc::unknown(), fmt::format("no weight named '{}'", name)};
  const TensorData& data = weight->second.data;
  if (!seed_ && data.bytes != nullptr && is_row_major(data))
    return BufferView{const_cast<std::byte*>(data.bytes), dense_bytes(data.type)};
  LATHE_TRY(FileBytes bytes, make(name, data));
  return view(held_.emplace(name, std::move(bytes)).first->second);
}

void WeightStore::close() {
  entries_.clear();
  file_.reset();
}

Status WeightStore::read_into(Module& module) {
  if (file_ == nullptr) return Ok{};
  for (auto& [name, weight] : module.weights)
    if (weight.data.bytes == nullptr) LATHE_DO(read(name, weight.data));
  return Ok{};
}

}  // namespace lathe
