// Dense host tensors and their raw bytes.
#include "ir/graph/tensor.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxRepeatedElements = int64_t{1} << 26;

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void store(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

// `get(bytes)` is an element; calls `f` with the reader of the dtype, so that loops over elements
// branch on the dtype once.
template <class F>
void with_reader(DType dtype, F f) {
  switch (dtype) {
    case DType::b8:
      return f([](const std::byte* p) { return int64_t{*p != std::byte{0}}; });
    case DType::u8:
      return f([](const std::byte* p) { return int64_t{load<uint8_t>(p)}; });
    case DType::i8:
      return f([](const std::byte* p) { return int64_t{load<int8_t>(p)}; });
    case DType::i16:
      return f([](const std::byte* p) { return int64_t{load<int16_t>(p)}; });
    case DType::i32:
      return f([](const std::byte* p) { return int64_t{load<int32_t>(p)}; });
    case DType::i64:
      return f([](const std::byte* p) { return load<int64_t>(p); });
    case DType::f16:
      return f([](const std::byte* p) { return double{f16_to_f32(load<uint16_t>(p))}; });
    case DType::bf16:
      return f([](const std::byte* p) { return double{bf16_to_f32(load<uint16_t>(p))}; });
    case DType::f32:
      return f([](const std::byte* p) { return double{load<float>(p)}; });
    case DType::f64:
      return f([](const std::byte* p) { return load<double>(p); });
  }
}

void write_element(DType dtype, double real, int64_t integer, std::byte* bytes) {
  switch (dtype) {
    case DType::b8:
      return store<uint8_t>(bytes, integer != 0);
    case DType::u8:
    case DType::i8:
      return store(bytes, static_cast<uint8_t>(integer));
    case DType::i16:
      return store(bytes, static_cast<uint16_t>(integer));
    case DType::i32:
      return store(bytes, static_cast<uint32_t>(integer));
    case DType::i64:
      return store(bytes, integer);
    case DType::f16:
      return store(bytes, f32_to_f16(static_cast<float>(round_to(DType::f16, real))));
    case DType::bf16:
      return store(bytes, f32_to_bf16(static_cast<float>(round_to(DType::bf16, real))));
    case DType::f32:
      return store(bytes, static_cast<float>(real));
    case DType::f64:
      return store(bytes, real);
  }
}

// The highest element offset that the strides reach, or an error when it or the extents are not
// addressable.
Result<int64_t> last_offset(const std::vector<int64_t>& shape,
                            const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach = 0;
    if (strides[i] < 0)
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("a stored tensor has the negative stride {}", strides[i])};
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return Diag{code::kTooLarge, Loc::unknown(), "the strides of a stored tensor overflow"};
  }
  return last;
}

// Calls f(element index, byte offset) for each element in row-major order.
template <class F>
void for_each_element(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                      int64_t count, F f) {
  std::vector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    f(static_cast<size_t>(i), offset);
    for (size_t dim = shape.size(); dim-- > 0;) {
      offset += strides[dim];
      if (++index[dim] < shape[dim]) break;
      offset -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
}

}  // namespace

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  const size_t count = static_cast<size_t>(tensor.num_elements());
  if (is_float(dtype))
    tensor.floats.resize(count);
  else
    tensor.integers.resize(count);
  return tensor;
}

int64_t Tensor::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

void Tensor::set(int64_t i, double value) {
  if (is_float(dtype))
    floats[static_cast<size_t>(i)] = value;
  else
    integers[static_cast<size_t>(i)] =
        static_cast<int64_t>(round_to(dtype == DType::b8 ? DType::b8 : DType::i64, value));
}

Tensor literal_tensor(const Attr& value, DType dtype, std::vector<int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  const auto put = [&](int64_t i, auto x) {
    const bool is_exact = std::is_same_v<decltype(x), int64_t> && dtype != DType::b8;
    if (is_exact && !is_float(dtype))
      tensor.integers[static_cast<size_t>(i)] = static_cast<int64_t>(x);
    else
      tensor.set(i, static_cast<double>(x));
  };
  const auto fill = [&](const auto& values) {
    for (int64_t i = 0; i < tensor.num_elements() && !values.empty(); ++i)
      put(i, values[values.size() == 1 ? 0 : static_cast<size_t>(i)]);
  };
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) fill(*reals);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) fill(*integers);
  if (const auto* real = std::get_if<double>(&value)) fill(std::vector<double>{*real});
  if (const auto* integer = std::get_if<int64_t>(&value)) fill(std::vector<int64_t>{*integer});
  return tensor;
}

std::optional<double> misfit(const Attr& literal, DType dtype) {
  if (!is_integer(dtype)) return std::nullopt;
  const int bits = 8 * static_cast<int>(dtype_bytes(dtype)) - (dtype == DType::u8 ? 0 : 1);
  const double end = std::ldexp(1, bits);
  const auto fits = [&](double x) {
    const double whole = std::trunc(x);
    return whole < end && (dtype == DType::u8 ? whole > -end : whole >= -end);
  };
  const auto first = [&](const auto& values) -> std::optional<double> {
    for (auto value : values)
      if (!fits(static_cast<double>(value)) &&
          !(dtype == DType::i64 && std::is_same_v<decltype(value), int64_t>))
        return static_cast<double>(value);
    return std::nullopt;
  };
  if (const auto* reals = std::get_if<std::vector<double>>(&literal)) return first(*reals);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&literal)) return first(*integers);
  if (const auto* real = std::get_if<double>(&literal)) return first(std::array{*real});
  if (const auto* integer = std::get_if<int64_t>(&literal)) return first(std::array{*integer});
  return std::nullopt;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

bool is_row_major(const TensorData& data) {
  const std::vector<int64_t> shape = data.type.static_shape(), rows = row_major_strides(shape);
  if (data.strides.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && data.strides[d] != rows[d]) return false;
  return true;
}

Result<Tensor> read_tensor(const TensorData& data) {
  const std::optional<int64_t> count = data.type.static_elements();
  if (!count)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("{} is not a readable size", to_string(data.type))};
  Tensor tensor;
  tensor.dtype = data.type.dtype;
  tensor.shape = data.type.static_shape();
  if (*count == 0) return tensor;
  if (data.bytes == nullptr)
    return Diag{code::kMissingWeight, Loc::unknown(), "the file holds no values for this weight"};
  const std::vector<int64_t> strides =
      data.strides.empty() ? row_major_strides(tensor.shape) : data.strides;
  if (strides.size() != tensor.shape.size())
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("a stored tensor of rank {} has {} strides", tensor.shape.size(),
                            strides.size())};
  LATHE_TRY(const int64_t last, last_offset(tensor.shape, strides));
  const int64_t size_bytes = dtype_bytes(tensor.dtype);
  if (static_cast<uint64_t>(last) >= data.num_bytes / static_cast<uint64_t>(size_bytes))
    return Diag{code::kMissingWeight, Loc::unknown(),
                fmt::format("{} needs {} elements, the file holds {} bytes", to_string(data.type),
                            last + 1, data.num_bytes)};
  // Strides of 0 repeat elements without bound; a small file must not ask for all memory.
  if (static_cast<uint64_t>(*count) > data.num_bytes && *count > kMaxRepeatedElements)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("{} repeats its elements too often to be read", to_string(data.type))};
  tensor = Tensor::zeros(tensor.dtype, std::move(tensor.shape));
  with_reader(tensor.dtype, [&](auto read) {
    for_each_element(tensor.shape, strides, *count, [&](size_t i, int64_t offset) {
      const auto value = read(data.bytes + offset * size_bytes);
      if constexpr (std::is_same_v<decltype(value), const double>)
        tensor.floats[i] = value;
      else
        tensor.integers[i] = value;
    });
  });
  return tensor;
}

std::vector<std::byte> to_bytes(const Tensor& tensor) {
  const size_t size_bytes = static_cast<size_t>(dtype_bytes(tensor.dtype));
  const size_t count = static_cast<size_t>(tensor.num_elements());
  std::vector<std::byte> bytes(count * size_bytes);
  const bool has_floats = is_float(tensor.dtype);
  for (size_t i = 0; i < count; ++i)
    write_element(tensor.dtype, has_floats ? tensor.floats[i] : 0,
                  has_floats ? 0 : tensor.integers[i], bytes.data() + i * size_bytes);
  return bytes;
}

}  // namespace lathe
