// Counter-based random tensors.
#include "frontend/weights/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{32} << 30;

// Blocks that are computed side by side, so that the compiler uses vector registers.
constexpr int kLanes = 16;
struct Words {
  uint32_t w[4][kLanes];
};

void philox(Words& words, uint64_t first_block, uint64_t name_hash, uint64_t seed) {
  auto& [c0, c1, c2, c3] = words.w;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t block = first_block + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(block);
    c1[i] = static_cast<uint32_t>(block >> 32);
    c2[i] = static_cast<uint32_t>(name_hash);
    c3[i] = static_cast<uint32_t>(name_hash >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t p0 = uint64_t{0xd2511f53} * c0[i], p1 = uint64_t{0xcd9e8d57} * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<uint32_t>(p1);
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string_view last_part(std::string_view name) {
  size_t dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(dot + 1);
}

// Whether one of the dotted name's parts is `part`.
bool has_part(std::string_view name, std::string_view part) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (name.substr(begin, end - begin) == part) return true;
    begin = end + 1;
  }
  return false;
}

// `centre` in units of the half-width's steps is rounded to an integer, so that one conversion and
// one product make the value and no compiler can fuse them differently.
FillRule uniform(double centre, double half_width) {
  constexpr double kSteps = 8388608;  // 2^23
  FillRule rule;
  rule.step = static_cast<float>(half_width / kSteps);
  rule.centre = static_cast<int32_t>(std::nearbyint(centre / half_width * kSteps));
  return rule;
}

FillRule constant(int64_t value) {
  FillRule rule;
  rule.kind = FillRule::Kind::constant;
  rule.low = value;
  return rule;
}

FillRule of_kind(FillRule::Kind kind) {
  FillRule rule;
  rule.kind = kind;
  return rule;
}

static_assert(kRandomBlock == 4 * kLanes);

// Elements of a tensor: `count` from `first` on, a multiple of the block.
struct Range {
  int64_t first = 0;
  int64_t count = 0;
};

// Calls store(i, word) for every element; `i` counts from the range's first.
template <class Store>
void for_words(Range range, uint64_t name_hash, uint64_t seed, Store store) {
  Words words;
  for (int64_t i = 0; i < range.count; i += kRandomBlock) {
    philox(words, static_cast<uint64_t>(range.first + i) / 4, name_hash, seed);
    const int64_t here = std::min<int64_t>(kRandomBlock, range.count - i);
    for (int64_t k = 0; k < here; ++k) store(i + k, words.w[k % 4][k / 4]);
  }
}

template <class T>
void put(std::byte* bytes, int64_t i, T value) {
  std::memcpy(bytes + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

void put_float(std::byte* bytes, DType dtype, int64_t i, float value) {
  if (dtype == DType::f32) return put(bytes, i, value);
  if (dtype == DType::f64) return put(bytes, i, static_cast<double>(value));
  put(bytes, i, dtype == DType::bf16 ? f32_to_bf16(value) : f32_to_f16(value));
}

void put_integer(std::byte* bytes, DType dtype, int64_t i, int64_t value) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return put(bytes, i, static_cast<int8_t>(value));
    case 2:
      return put(bytes, i, static_cast<int16_t>(value));
    case 4:
      return put(bytes, i, static_cast<int32_t>(value));
    default:
      return put(bytes, i, value);
  }
}

void put_number(std::byte* bytes, DType dtype, int64_t i, int64_t value) {
  if (is_float(dtype)) return put_float(bytes, dtype, i, static_cast<float>(value));
  put_integer(bytes, dtype, i, value);
}

void fill(std::byte* bytes, const TensorType& type, Range range, const FillRule& rule,
          uint64_t hash, uint64_t seed) {
  const DType dtype = type.dtype;
  const std::vector<int64_t> shape = type.static_shape();
  const int64_t columns = shape.empty() || shape.back() == 0 ? 1 : shape.back();
  auto put_each = [&](auto value_at) {
    for (int64_t i = 0; i < range.count; ++i)
      put_number(bytes, dtype, i, value_at(range.first + i));
  };
  switch (rule.kind) {
    case FillRule::Kind::uniform: {
      auto value = [&](uint32_t word) {
        return static_cast<float>(static_cast<int32_t>(word >> 8) - 8388608 + rule.centre) *
               rule.step;
      };
      if (dtype == DType::f32)
        for_words(range, hash, seed, [&](int64_t i, uint32_t w) { put(bytes, i, value(w)); });
      else
        for_words(range, hash, seed,
                  [&](int64_t i, uint32_t w) { put_float(bytes, dtype, i, value(w)); });
      return;
    }
    case FillRule::Kind::integers: {
      const uint64_t span = static_cast<uint64_t>(rule.high - rule.low);
      for_words(range, hash, seed, [&](int64_t i, uint32_t w) {
        put_number(bytes, dtype, i, rule.low + static_cast<int64_t>((w * span) >> 32));
      });
      return;
    }
    case FillRule::Kind::arange:
      put_each([&](int64_t i) { return i % columns; });
      return;
    case FillRule::Kind::constant:
      put_each([&](int64_t) { return rule.low; });
      return;
    case FillRule::Kind::lower_triangle:
      put_each([&](int64_t i) { return int64_t{i % columns <= i / columns % columns}; });
      return;
  }
}

}  // namespace

FillRule weight_rule(std::string_view name, const TensorType& type) {
  const std::string_view last = last_part(name);
  const int rank = type.rank();
  if (type.dtype == DType::b8) {
    bool is_square = rank >= 2 && type.shape[static_cast<size_t>(rank) - 1] ==
                                      type.shape[static_cast<size_t>(rank) - 2];
    return is_square ? of_kind(FillRule::Kind::lower_triangle) : constant(1);
  }
  if (!is_float(type.dtype))
    return contains(last, "position_ids") ? of_kind(FillRule::Kind::arange) : constant(0);
  if (contains(last, "running_var")) return uniform(1, 0.5);
  if (contains(last, "running_mean") || contains(last, "bias") || contains(last, "beta"))
    return uniform(0, 0.05);
  if (rank < 2) return uniform(1, 0.1);
  if (contains(name, "embed") || has_part(name, "wte") || has_part(name, "wpe"))
    return uniform(0, 0.035);
  double fan_in = 1;
  for (size_t i = 1; i < type.shape.size(); ++i)
    fan_in *= static_cast<double>(type.shape[i].value());
  return uniform(0, std::sqrt(3 / (fan_in > 1 ? fan_in : 1)));
}

FillRule input_rule(std::string_view name, const TensorType& type, IntegerRange range) {
  if (is_float(type.dtype)) return uniform(0, std::sqrt(3.0));
  if (type.dtype == DType::b8 || contains(name, "mask")) return constant(1);
  if (contains(name, "token_type")) return constant(0);
  if (contains(name, "position_ids")) return of_kind(FillRule::Kind::arange);
  FillRule rule = of_kind(FillRule::Kind::integers);
  rule.low = range.low;
  rule.high = range.high;
  return rule;
}

Result<FileBytes> random_tensor(std::string_view name, const TensorType& type, const FillRule& rule,
                                uint64_t seed) {
  const int64_t width = dtype_bytes(type.dtype);
  std::optional<int64_t> count = type.static_elements();
  auto too_large = [&] {
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("cannot make '{}' of type {}: too large", name, to_string(type))};
  };
  if (!count || *count > kMaxTensorBytes / width) return too_large();
  const size_t size = static_cast<size_t>(*count * width);
  constexpr size_t kAlignment = 64;  // so that kernels can read it in place
  std::shared_ptr<std::byte[]> block(new (std::nothrow) std::byte[size + kAlignment]);
  if (!block) return too_large();
  const size_t past = reinterpret_cast<uintptr_t>(block.get()) % kAlignment;
  std::byte* bytes = block.get() + (kAlignment - past) % kAlignment;
  fill(bytes, type, {0, *count}, rule, fnv1a(name), seed);
  return FileBytes{bytes, size, block};
}

void random_elements(std::string_view name, const TensorType& type, const FillRule& rule,
                     uint64_t seed, int64_t first, int64_t count, std::byte* bytes) {
  fill(bytes, type, {first, count}, rule, fnv1a(name), seed);
}

Status random_weights(Module& module, uint64_t seed, bool only_missing) {
  for (auto& [name, weight] : module.weights) {
    TensorData& data = weight.data;
    if (only_missing && data.bytes) continue;
    LATHE_TRY(FileBytes bytes, random_tensor(name, data.type, weight_rule(name, data.type), seed));
    data.strides = row_major_strides(data.type.static_shape());
    data.bytes = bytes.data;
    data.num_bytes = bytes.size;
    data.owner = std::move(bytes.owner);
  }
  return Ok{};
}

}  // namespace lathe
