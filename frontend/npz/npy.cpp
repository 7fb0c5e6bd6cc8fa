// One array: the header is a Python dict literal, then raw elements (NumPy's format versions 1 to
// 3).
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "frontend/npz/npz.h"
#include "ir/support/diag_codes.h"
#include "ir/type/tensor_type.h"

namespace lathe {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 65536;

struct Descr {
  std::string_view text;
  DType dtype;
};
// The first row of a dtype is the one written.
constexpr Descr kDescrs[] = {
    {"|b1", DType::b8},  {"|u1", DType::u8},  {"|i1", DType::i8},   {"<i2", DType::i16},
    {"<i4", DType::i32}, {"<i8", DType::i64}, {"<f2", DType::f16},  {"<u2", DType::bf16},
    {"<f4", DType::f32}, {"<f8", DType::f64}, {"|V2", DType::bf16}, {"<V2", DType::bf16},
};

struct Header {
  std::string descr;
  bool is_fortran = false;
  std::vector<int64_t> shape;
};

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    int seen = 0;
    if (!take("{")) return std::nullopt;
    while (!take("}")) {
      std::optional<std::string> key = string();
      if (!key || !take(":")) return std::nullopt;
      bool ok = false;
      if (*key == "descr") {
        std::optional<std::string> descr = string();
        ok = descr.has_value();
        if (ok) header.descr = *descr;
      } else if (*key == "fortran_order") {
        header.is_fortran = take("True");
        ok = header.is_fortran || take("False");
      } else if (*key == "shape") {
        ok = shape(header.shape);
      }
      if (!ok) return std::nullopt;
      ++seen;
      if (!take(",") && text_.substr(0, 1) != "}") return std::nullopt;
      skip();
    }
    return seen == 3 ? std::optional(std::move(header)) : std::nullopt;
  }

 private:
  void skip() {
    size_t first = text_.find_first_not_of(" \n");
    text_.remove_prefix(first == text_.npos ? text_.size() : first);
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(0, token.size()) != token) return false;
    text_.remove_prefix(token.size());
    skip();
    return true;
  }
  std::optional<std::string> string() {
    if (!take("'")) return std::nullopt;
    size_t end = text_.find('\'');
    if (end == text_.npos) return std::nullopt;
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    skip();
    return value;
  }
  bool shape(std::vector<int64_t>& out) {
    if (!take("(")) return false;
    while (!take(")")) {
      int64_t value = 0;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0 || out.size() == kMaxRank) return false;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      take("L");  // written by Python 2
      out.push_back(value);
      if (!take(",") && text_.substr(0, 1) != ")") return false;
    }
    return true;
  }

  std::string_view text_;
};

std::optional<int64_t> bytes_of(const std::vector<int64_t>& shape, DType dtype) {
  int64_t bytes = dtype_bytes(dtype);
  bool overflows = false;
  for (int64_t size : shape) {
    if (size == 0) return 0;
    overflows = overflows || __builtin_mul_overflow(bytes, size, &bytes);
  }
  return overflows ? std::nullopt : std::optional(bytes);
}

// Row-major order from column-major.
std::string transposed(std::string_view from, const std::vector<int64_t>& shape, size_t width) {
  std::string to(from.size(), '\0');
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t at = 0; at < to.size(); at += width) {
    size_t source = 0, stride = width;
    for (size_t i = 0; i < shape.size(); ++i) {
      source += static_cast<size_t>(index[i]) * stride;
      stride *= static_cast<size_t>(shape[i]);
    }
    std::memcpy(to.data() + at, from.data() + source, width);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
  return to;
}

Diag fail(const char* code, std::string_view name, std::string message) {
  return {code, Loc::unknown(), fmt::format("array '{}': {}", name, message)};
}

// The header, and in `data_begin` where the elements start.
Result<Header> read_header(const FileBytes& file, std::string_view name, size_t& data_begin) {
  std::string_view text = file.text();
  constexpr size_t kFixed = 8;  // magic and version
  if (text.size() < kFixed + 4 || text.substr(0, kMagic.size()) != kMagic)
    return fail(code::kBadArchive, name, "not in NumPy's .npy format");
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(file.data[i]); };
  const size_t major = byte(6);
  if (major < 1 || major > 3)
    return fail(code::kBadArchive, name, fmt::format(".npy version {} is not read", major));
  size_t length = byte(8) | byte(9) << 8, begin = kFixed + 2;
  if (major >= 2) {
    length |= byte(10) << 16 | byte(11) << 24;
    begin = kFixed + 4;
  }
  if (length > kMaxHeader || length > text.size() - begin)
    return fail(code::kBadArchive, name, "the .npy header is cut short");
  std::optional<Header> header = HeaderParser(text.substr(begin, length)).parse();
  if (!header)
    return fail(code::kBadArchive, name,
                "the .npy header is broken, or of a structured dtype, which is not read");
  data_begin = begin + length;
  return *std::move(header);
}

}  // namespace

Result<NpyArray> parse_npy(FileBytes file, std::string_view name) {
  size_t begin = 0;
  LATHE_TRY(Header header, read_header(file, name, begin));
  NpyArray array;
  bool is_known = false;
  for (const Descr& descr : kDescrs)
    if (!is_known && descr.text == header.descr) {
      array.dtype = descr.dtype;
      is_known = true;
    }
  if (!is_known)
    return fail(code::kUnsupported, name,
                fmt::format("NumPy dtype '{}' is not read; bool, uint8, int8 to int64, float16 to "
                            "float64 in little-endian order are, and uint16 as raw bfloat16",
                            header.descr.substr(0, 40)));
  array.shape = std::move(header.shape);
  const size_t width = static_cast<size_t>(dtype_bytes(array.dtype));
  std::optional<int64_t> needed = bytes_of(array.shape, array.dtype);
  if (!needed || static_cast<uint64_t>(*needed) != file.size - begin)
    return fail(
        needed ? code::kBadArchive : code::kTooLarge, name,
        fmt::format("its shape needs {} bytes, the file holds {}",
                    needed ? std::to_string(*needed) : "more than 2^63", file.size - begin));
  array.bytes = file.slice(begin, file.size - begin);
  if (header.is_fortran && array.shape.size() > 1)
    array.bytes = own_bytes(transposed(array.bytes.text(), array.shape, width));
  if (reinterpret_cast<uintptr_t>(array.bytes.data) % width != 0)
    array.bytes = own_bytes(std::string(array.bytes.text()));
  if (array.dtype == DType::b8)
    for (char c : array.bytes.text())
      if (c != 0 && c != 1) return fail(code::kBadArchive, name, "a bool is neither 0 nor 1");
  return array;
}

Result<std::string> npy_bytes(const NpyArray& array) {
  std::optional<int64_t> needed = bytes_of(array.shape, array.dtype);
  LATHE_CHECK(needed && static_cast<uint64_t>(*needed) == array.bytes.size,
              "an array to be written has not the bytes of its shape");
  std::string_view descr;
  for (const Descr& row : kDescrs)
    if (row.dtype == array.dtype && descr.empty()) descr = row.text;
  std::string shape;
  for (int64_t size : array.shape) shape += fmt::format("{}, ", size);
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // Elements start at a multiple of 64, as NumPy writes it.
  constexpr size_t kFixed = 10, kAlignment = 64;
  header.append((kAlignment - (kFixed + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out += array.bytes.text();
  return out;
}

}  // namespace lathe
