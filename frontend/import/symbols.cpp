// Symbolic sizes and tensor types of a file.
#include "frontend/import/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

struct ScalarTypeRow {
  pt2::ScalarType number;
  std::string_view name;
  std::optional<DType> dtype;
  Encoding encoding = Encoding::none;
};
constexpr ScalarTypeRow kScalarTypes[] = {
    {1, "uint8", DType::u8},
    {2, "int8", DType::i8},
    {3, "int16", DType::i16},
    {4, "int32", DType::i32},
    {5, "int64", DType::i64},
    {6, "float16", DType::f16},
    {7, "float32", DType::f32},
    {8, "float64", DType::f64},
    {9, "complex32", DType::f16, Encoding::complex},
    {10, "complex64", DType::f32, Encoding::complex},
    {11, "complex128", DType::f64, Encoding::complex},
    {12, "bool", DType::b8},
    {13, "bfloat16", DType::bf16},
    {28, "uint16", std::nullopt},
    {29, "float8_e4m3fn", DType::u8, Encoding::float8_e4m3fn},
    {30, "float8_e5m2", DType::u8, Encoding::float8_e5m2},
    {31, "float8_e4m3fnuz", DType::u8, Encoding::float8_e4m3fnuz},
    {32, "float8_e5m2fnuz", DType::u8, Encoding::float8_e5m2fnuz},
    {33, "float8_e8m0fnu", DType::u8, Encoding::float8_e8m0fnu},
    {34, "uint32", std::nullopt},
    {35, "uint64", std::nullopt},
};

constexpr pt2::TensorLayout kStrided = 7;

// a*symbol + b with a > 0, when an expression is that.
struct Linear {
  std::string symbol;
  int64_t a = 0;
  int64_t b = 0;
};

std::optional<Linear> as_linear(const Dim& dim) {
  std::vector<std::string> names;
  dim.collect_symbols(names);
  if (names.size() != 1) return std::nullopt;
  auto at_0 = dim.evaluate({{names[0], 0}}), at_1 = dim.evaluate({{names[0], 1}});
  Linear linear{names[0]};
  if (!at_0.ok() || !at_1.ok() || __builtin_sub_overflow(*at_1, *at_0, &linear.a))
    return std::nullopt;
  linear.b = *at_0;
  if (linear.a <= 0 || Dim(linear.a) * Dim::symbol(names[0]) + Dim(linear.b) != dim)
    return std::nullopt;
  return linear;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// The bound of s that a bound of a*s + b gives; nullopt when it is not representable.
std::optional<int64_t> solve(const Linear& linear, int64_t bound, bool is_upper) {
  int64_t shifted = 0;
  if (__builtin_sub_overflow(bound, linear.b, &shifted) || shifted == INT64_MIN)
    return std::nullopt;
  return is_upper ? floor_div(shifted, linear.a) : -floor_div(-shifted, linear.a);
}

void intersect(DimRange& range, const DimRange& other) {
  if (other.min) range.min = range.min ? std::max(*range.min, *other.min) : *other.min;
  if (other.max) range.max = range.max ? std::min(*range.max, *other.max) : *other.max;
}

}  // namespace

std::optional<DType> dtype_of(pt2::ScalarType type) {
  for (const ScalarTypeRow& row : kScalarTypes)
    if (row.number == type) return row.dtype;
  return std::nullopt;
}

Encoding encoding_of(pt2::ScalarType type) {
  for (const ScalarTypeRow& row : kScalarTypes)
    if (row.number == type) return row.encoding;
  return Encoding::none;
}

std::string_view scalar_type_name(pt2::ScalarType type) {
  for (const ScalarTypeRow& row : kScalarTypes)
    if (row.number == type) return row.name;
  return "unknown";
}

Result<Dim> Symbols::parse(const std::string& text, size_t offset) {
  auto [entry, is_new] = parsed_.try_emplace(text);
  if (!is_new) return entry->second;
  auto dim = parse_dim(text);
  if (!dim.ok()) {
    parsed_.erase(entry);
    return Diag{
        code::kBadModel, json::locate(document_, offset, module_.locs),
        fmt::format("size expression \"{}\": {}", text.substr(0, 200), dim.error().message)};
  }
  std::vector<std::string> names;
  dim->collect_symbols(names);
  for (const std::string& name : names) module_.dims.try_emplace(name);
  entry->second = *dim;
  return *std::move(dim);
}

Result<Dim> Symbols::dim(const pt2::SymInt& value) {
  if (!value.expr_str) return Dim(value.value);
  return parse(*value.expr_str, value.offset);
}

Result<TensorType> Symbols::type(const pt2::TensorMeta& meta, std::string_view name) {
  auto fail = [&](const char* code, std::string message) {
    return Diag{code, json::locate(document_, meta.offset, module_.locs), std::move(message)};
  };
  TensorType type;
  std::optional<DType> dtype = dtype_of(meta.dtype);
  if (!dtype)
    return fail(code::kUnsupported,
                fmt::format("tensor '{}' is of dtype {} ({}); supported are bool, uint8, int8 to "
                            "int64, float8, float16, bfloat16, float32, float64 and complex",
                            name, scalar_type_name(meta.dtype), meta.dtype));
  if (meta.layout != kStrided)
    return fail(code::kUnsupported,
                fmt::format("tensor '{}' is sparse or opaque (layout {})", name, meta.layout));
  type.dtype = *dtype;
  if (meta.sizes.size() > kMaxRank)
    return fail(code::kTooLarge, fmt::format("tensor '{}' has {} dims, at most {} are possible",
                                             name, meta.sizes.size(), kMaxRank));
  const bool is_complex = encoding_of(meta.dtype) == Encoding::complex;
  int64_t bytes = dtype_bytes(*dtype) * (is_complex ? 2 : 1);
  bool is_empty = false, overflows = false;
  for (const pt2::SymInt& size : meta.sizes) {
    LATHE_TRY(Dim extent, dim(size));
    if (extent.is_const() && extent.value() < 0)
      return fail(code::kBadModel,
                  fmt::format("tensor '{}' has the negative size {}", name, extent.value()));
    if (extent.is_const()) {
      is_empty = is_empty || extent.value() == 0;
      overflows = overflows || __builtin_mul_overflow(bytes, extent.value(), &bytes);
    }
    type.shape.push_back(std::move(extent));
  }
  if (overflows && !is_empty)
    return fail(code::kTooLarge,
                fmt::format("tensor '{}' of shape {} has more bytes than 63 bits count", name,
                            to_string(type.shape)));
  if (is_complex) type.shape.push_back(2);
  return type;
}

Status Symbols::add_ranges(const pt2::Table<pt2::RangeConstraint>& constraints) {
  for (const auto& [text, constraint] : constraints) {
    LATHE_TRY(Dim key, parse(text, 0));
    std::optional<Linear> linear = as_linear(key);
    if (!linear) continue;
    DimRange& known = module_.dims[linear->symbol];
    // Python's sys.maxsize and its neighbours stand for no bound, as null does.
    const int64_t low = constraint.min_val.value_or(INT64_MIN);
    const int64_t high = constraint.max_val.value_or(INT64_MAX);
    DimRange range;
    if (low > INT64_MIN + 1) range.min = solve(*linear, low, false);
    if (high < INT64_MAX - 1) range.max = solve(*linear, high, true);
    intersect(known, range);
    if (known.min && known.max && *known.min > *known.max)
      return Diag{
          code::kBadModel, json::locate(document_, 0, module_.locs),
          fmt::format("the range of '{}' is empty: [{}, {}]", text, *known.min, *known.max)};
  }
  return Ok{};
}

Status Symbols::add_input(const pt2::SymInt& value) {
  LATHE_TRY(Dim size, dim(value));
  std::vector<std::string> names;
  size.collect_symbols(names);
  inputs_.insert(names.begin(), names.end());
  std::optional<Linear> linear = as_linear(size);
  int64_t rest = 0;
  if (linear && value.hint && !__builtin_sub_overflow(*value.hint, linear->b, &rest) &&
      rest % linear->a == 0)
    module_.hints.try_emplace(linear->symbol, rest / linear->a);
  return Ok{};
}

bool Symbols::may_be_equal(const Dim& a, const Dim& b) const {
  if (a == b) return true;
  if (a.is_const() && b.is_const()) return false;
  auto value_a = a.evaluate(module_.hints), value_b = b.evaluate(module_.hints);
  // A symbol without an example value (data-dependent) leaves it open.
  return !value_a.ok() || !value_b.ok() || *value_a == *value_b;
}

}  // namespace lathe
