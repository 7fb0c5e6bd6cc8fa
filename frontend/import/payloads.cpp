// Finds each weight's bytes through the archive's payload configurations.
#include "frontend/import/payloads.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "frontend/import/import.h"
#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr size_t kMaxListedNames = 20;
constexpr int64_t kMaxExpandedBytes = int64_t{1} << 30;
constexpr uintptr_t kAlignment = 8;  // of the widest dtype

struct Source {
  const pt2::PayloadMeta* meta = nullptr;
  std::string_view folder;
};

// The two configurations, with the documents that locations refer to.
class Payloads {
 public:
  static Result<Payloads> read(const pt2::ModelFile& file, LocTable& locs) {
    Payloads payloads;
    LATHE_DO(payloads.read_one(file, file.weights_config, "weights", locs));
    LATHE_DO(payloads.read_one(file, file.constants_config, "constants", locs));
    return payloads;
  }
  Source find(const std::string& name) const {
    for (const Part& part : parts_) {
      auto found = part.config.config.find(name);
      if (found != part.config.config.end()) return {&found->second, part.folder};
    }
    return {};
  }
  // The bytes of a payload, read and inflated once for all weights that share them.
  Result<FileBytes> read(const pt2::ModelFile& file, const Source& source) {
    const ZipEntry* entry = file.find_payload(source.folder, source.meta->path_name);
    if (auto found = read_.find(entry); found != read_.end()) return found->second;
    LATHE_TRY(FileBytes bytes, file.payload(source.folder, source.meta->path_name));
    // Archives align payloads; one that does not is copied so that typed reads are allowed.
    if (reinterpret_cast<uintptr_t>(bytes.data) % kAlignment != 0)
      bytes = own_bytes(std::string(bytes.text()));
    read_[entry] = bytes;
    return bytes;
  }
  Diag fail(const Source& source, LocTable& locs, const char* code, std::string message) const {
    for (const Part& part : parts_)
      if (part.folder == source.folder)
        return {code, json::locate(*part.document, source.meta->offset, locs), std::move(message)};
    return {code, Loc::unknown(), std::move(message)};
  }

 private:
  struct Part {
    std::string_view folder;
    FileBytes text;
    std::unique_ptr<json::Document> document;
    pt2::PayloadConfig config;
  };
  Status read_one(const pt2::ModelFile& file, const std::optional<FileBytes>& text,
                  std::string_view folder, LocTable& locs) {
    if (!text) return Ok{};
    Part part{folder, *text, nullptr, {}};
    std::string name = fmt::format("{}:data/{}/*config.json", file.file, folder);
    LATHE_TRY(part.document, json::parse(part.text.text(), std::move(name), locs));
    LATHE_TRY(part.config, pt2::read_payload_config(*part.document, locs));
    parts_.push_back(std::move(part));
    return Ok{};
  }
  std::vector<Part> parts_;
  std::map<const ZipEntry*, FileBytes> read_;
};

// What the weights of a file take that cannot be used as they lie there, which are copied densely.
// Small files must not stand for much memory: by strides of 0, or by many names for one payload.
class DenseCopies {
 public:
  void add(const TensorData& data, const ZipEntry& entry) {
    if (entries_.insert(&entry).second) stored_bytes_ += static_cast<double>(entry.size);
    if (is_row_major(data)) return;
    double bytes = static_cast<double>(dtype_bytes(data.type.dtype));
    for (int64_t extent : data.type.static_shape()) bytes *= static_cast<double>(extent);
    copied_bytes_ += bytes;
  }
  Status check(const pt2::ModelFile& file, LocTable& locs) const {
    constexpr double kMaxCopies = 2;  // of all that is stored, beside kMaxExpandedBytes
    if (copied_bytes_ <= kMaxCopies * stored_bytes_ + static_cast<double>(kMaxExpandedBytes))
      return Ok{};
    return Diag{code::kTooLarge, locs.text(file.file, 0, 0),
                fmt::format("payloads of {:.0f} bytes expand to weights of {:.0f}", stored_bytes_,
                            copied_bytes_)};
  }

 private:
  std::set<const ZipEntry*> entries_;
  double stored_bytes_ = 0, copied_bytes_ = 0;
};

// One past the last element that strides reach from the offset; nullopt: negative or overflowing.
std::optional<int64_t> extent(const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& strides, int64_t offset) {
  if (offset < 0) return std::nullopt;
  int64_t end = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    int64_t reach = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(end, reach, &end))
      return std::nullopt;
  }
  if (__builtin_add_overflow(end, 1, &end)) return std::nullopt;
  return end;
}

// Strides and storage offset, which must be constants.
Status read_strides(const pt2::TensorMeta& meta, std::vector<int64_t>& strides, int64_t& offset,
                    const std::string& name) {
  bool is_static = !meta.storage_offset.expr_str && meta.strides.size() == meta.sizes.size();
  const bool is_pairs = encoding_of(meta.dtype) == Encoding::complex;
  const int64_t width = is_pairs ? 2 : 1;
  for (const pt2::SymInt& stride : meta.strides) {
    is_static = is_static && !stride.expr_str;
    is_static = is_static && !__builtin_mul_overflow(stride.value, width, &strides.emplace_back());
  }
  if (is_pairs) strides.push_back(1);
  is_static = is_static && !__builtin_mul_overflow(meta.storage_offset.value, width, &offset);
  if (is_static) return Ok{};
  return Diag{code::kBadModel, Loc::unknown(),
              fmt::format("weight '{}' needs one constant stride a dim", name)};
}

// Whether a payload of `payload_size` bytes, those of a whole storage, holds the tensor. None at
// all is fine: exported without data (from fake tensors), which is as good as missing.
Status check_extent(const TensorData& data, int64_t offset, uint64_t payload_size,
                    const std::string& name) {
  int64_t width = dtype_bytes(data.type.dtype);
  std::optional<int64_t> end = extent(data.type.static_shape(), data.strides, offset);
  int64_t last_byte = 0;
  if (!end || __builtin_mul_overflow(*end, width, &last_byte))
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("the strides of weight '{}' reach outside any memory", name)};
  if (payload_size == 0) return Ok{};
  if (static_cast<uint64_t>(last_byte) > payload_size)
    return Diag{code::kMissingWeight, Loc::unknown(),
                fmt::format("weight '{}' ({}) needs {} bytes, its payload has {}", name,
                            to_string(data.type), last_byte, payload_size)};
  // Strides of 0 make few bytes stand for many; a dense copy must stay possible.
  const int64_t dense = data.type.static_elements().value_or(INT64_MAX / width) * width;
  if (dense > kMaxExpandedBytes && static_cast<uint64_t>(dense) > payload_size)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("weight '{}' ({}) expands a payload of {} bytes to {}", name,
                            to_string(data.type), payload_size, dense)};
  return Ok{};
}

// The tensor inside its payload.
Status place(TensorData& data, FileBytes payload, int64_t offset, const std::string& name) {
  LATHE_DO(check_extent(data, offset, payload.size, name));
  int64_t width = dtype_bytes(data.type.dtype);
  const bool is_empty = data.type.static_elements() == 0;
  if (payload.size == 0 && !is_empty) {
    data.strides = row_major_strides(data.type.static_shape());
    return Ok{};
  }
  if (is_empty) offset = 0;
  size_t begin = static_cast<size_t>(offset * width);
  data.bytes = payload.data + begin;
  data.num_bytes = payload.size - begin;
  data.owner = std::move(payload.owner);
  return Ok{};
}

// `data` gets its strides, and its bytes unless they are to stay where they are.
Result<WeightPlace> load_one(const pt2::ModelFile& file, Payloads& payloads, const Source& source,
                             const std::string& name, Symbols& symbols, bool leave_bytes,
                             Module& module, TensorData& data) {
  const pt2::PayloadMeta& meta = *source.meta;
  auto fail = [&](const char* code, std::string message) {
    return payloads.fail(source, module.locs, code, std::move(message));
  };
  if (meta.use_pickle || !meta.tensor_meta)
    return fail(code::kUnsupported,
                fmt::format("weight '{}' is pickled (a tensor subclass or custom object); only "
                            "plain tensors are read",
                            name));
  auto stored = symbols.type(*meta.tensor_meta, name);
  if (!stored.ok()) return fail(stored.error().code.c_str(), stored.error().message);
  if (stored->dtype != data.type.dtype || stored->shape != data.type.shape)
    return fail(code::kBadModel, fmt::format("weight '{}' is {} in the archive, {} in the graph",
                                             name, to_string(*stored), to_string(data.type)));
  int64_t offset = 0;
  data.strides.clear();
  Status status = read_strides(*meta.tensor_meta, data.strides, offset, name);
  const ZipEntry* entry = file.find_payload(source.folder, meta.path_name);
  if (status.ok() && leave_bytes && entry != nullptr) {
    status = check_extent(data, offset, entry->size, name);
  } else if (status.ok()) {
    auto payload = payloads.read(file, source);
    status = payload.ok() ? place(data, *std::move(payload), offset, name)
                          : Status(std::move(payload).error());
  }
  const bool is_empty = data.type.static_elements() == 0;
  if (status.ok() && entry->size == 0 && !is_empty) return WeightPlace{};
  // An empty weight may say any offset.
  if (status.ok())
    return WeightPlace{entry->name, is_empty ? 0 : offset * dtype_bytes(data.type.dtype)};
  Diag diag = std::move(status).error();
  return fail(diag.code.c_str(), std::move(diag.message));
}

std::optional<WeightKind> weight_kind(pt2::InputSpec::Tag tag) {
  switch (tag) {
    case pt2::InputSpec::Tag::parameter:
      return WeightKind::parameter;
    case pt2::InputSpec::Tag::buffer:
      return WeightKind::buffer;
    case pt2::InputSpec::Tag::tensor_constant:
      return WeightKind::constant;
    default:
      return std::nullopt;
  }
}

Diag missing_weights(const pt2::ModelFile& file, const std::vector<std::string>& names,
                     LocTable& locs) {
  Diag diag{code::kMissingWeight, locs.text(file.file, 0, 0),
            fmt::format("{} weight{} of this model {} not in the file", names.size(),
                        names.size() == 1 ? "" : "s", names.size() == 1 ? "is" : "are")};
  if (!file.archive)
    diag.message += ", which is a bare graph; plausible ones can be made with random:SEED";
  for (size_t i = 0; i < names.size() && i < kMaxListedNames; ++i) diag.rows.push_back(names[i]);
  if (names.size() > kMaxListedNames)
    diag.rows.push_back(fmt::format("and {} more", names.size() - kMaxListedNames));
  return diag;
}

}  // namespace

Status load_weights(const pt2::ModelFile& file, const pt2::GraphSignature& signature,
                    const pt2::Graph& graph, Symbols& symbols, const ImportOptions& options,
                    Module& module, std::map<std::string, WeightPlace>& places) {
  LATHE_TRY(Payloads payloads, Payloads::read(file, module.locs));
  std::vector<std::string> missing;
  DenseCopies copies;
  for (const pt2::InputSpec& spec : signature.input_specs) {
    std::optional<WeightKind> kind = weight_kind(spec.tag);
    if (!kind) continue;
    const std::string& value = spec.arg.as<std::string>();
    auto meta = graph.tensor_values.find(value);
    if (meta == graph.tensor_values.end())
      return Diag{code::kBadModel, module.locs.text(file.program_name, 0, 0),
                  fmt::format("input '{}' (weight '{}') has no entry in tensor_values", value,
                              spec.target)};
    Weight weight{*kind, spec.persistent, {}};
    LATHE_TRY(weight.data.type, symbols.type(meta->second, spec.target));
    if (!weight.data.type.is_static())
      return Diag{code::kBadModel, module.locs.text(file.program_name, 0, 0),
                  fmt::format("weight '{}' has the symbolic shape {}", spec.target,
                              to_string(weight.data.type.shape))};
    weight.data.strides = row_major_strides(weight.data.type.static_shape());
    Source source = payloads.find(spec.target);
    const bool leaves_bytes = options.leave_weights && !is_number(weight);
    WeightPlace place;
    if (source.meta) {
      LATHE_TRY(place, load_one(file, payloads, source, spec.target, symbols, leaves_bytes, module,
                                weight.data));
    }
    bool is_missing = leaves_bytes ? place.entry.empty() : !weight.data.bytes;
    if (is_missing && !options.allow_missing_weights) missing.push_back(spec.target);
    if (const ZipEntry* entry = file.archive ? file.archive->find(place.entry) : nullptr)
      copies.add(weight.data, *entry);
    if (!place.entry.empty()) places[spec.target] = std::move(place);
    if (!module.weights.emplace(spec.target, std::move(weight)).second)
      return Diag{code::kBadModel, module.locs.text(file.program_name, 0, 0),
                  fmt::format("two inputs are the weight '{}'", spec.target)};
  }
  if (!missing.empty()) return missing_weights(file, missing, module.locs);
  return copies.check(file, module.locs);
}

}  // namespace lathe
