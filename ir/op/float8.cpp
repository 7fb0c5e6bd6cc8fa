// Bytes in the place of numbers of 8 bits (see float8.h).
#include "ir/op/float8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// A format with a sign: the bits of its fraction, the bias of its exponent, its largest number as
// a code without sign, and what larger ones become.
struct Format {
  int fraction;
  int bias;
  int64_t largest;
  int64_t above;
  bool has_one_zero;  // fnuz: and the code of -0 is the one NaN
};

Format format_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::float8_e5m2:
      return {2, 15, 0x7b, 0x7c, false};
    case Encoding::float8_e4m3fnuz:
      return {3, 8, 0x7f, 0x80, true};
    case Encoding::float8_e5m2fnuz:
      return {2, 16, 0x7f, 0x80, true};
    default:
      return {3, 7, 0x7e, 0x7e, false};
  }
}

constexpr int kFraction = 23, kBias = 127;  // of f32
constexpr int64_t kNan = 0x7fc00000;
constexpr int64_t kNanByte = 0x7f;

// Arithmetic on i32, whose numbers a call on tensors alone would make i64.
struct Bits {
  const Aten& aten;
  Term operator()(const char* target, Term x, int64_t number) const {
    return aten(target, {x, number});
  }
  Term shifted_left(Term x, int64_t count) const {
    return aten("bitwise_left_shift.Tensor_Scalar", {x, count});
  }
  Term shifted_right(Term x, int64_t count) const {
    return aten("bitwise_right_shift.Tensor_Scalar", {x, count});
  }
  Term number(int64_t value) const {
    return {aten.null().builder(), aten.null().builder().integer(value, DType::i32)};
  }
  Term choose(Term condition, Term if_true, Term if_false) const {
    return aten("where.self", {condition, if_true, if_false});
  }
  Term as_float(Term x) const { return aten("view.dtype", {x, DType::f32}); }
  Term of_float(Term x) const { return aten("view.dtype", {x, DType::i32}); }
};

// 2^(code - 127), and NaN.
Term from_exponent(const Bits& bits, Term code) {
  const Term power = bits.choose(bits("eq.Scalar", code, 0), bits.number(0x00400000),
                                 bits.shifted_left(code, kFraction));
  return bits.as_float(bits.choose(bits("eq.Scalar", code, 0xff), bits.number(kNan), power));
}

// The nearest power of two of the magnitude.
Term to_exponent(const Bits& bits, Term x) {
  const Term word = bits("bitwise_and.Scalar", bits.of_float(x), 0x7fffffff);
  const Term exponent = bits.shifted_right(word, kFraction);
  const Term fraction = bits("bitwise_and.Scalar", word, 0x7fffff);
  // A half goes up, but not from the smallest of all.
  const Term half =
      bits.choose(bits("eq.Scalar", exponent, 0), bits.number(0x400001), bits.number(0x400000));
  const Term up = bits("add.Scalar", exponent, 1);
  const Term rounded = bits.choose(bits.aten("ge.Tensor", fraction, half), up, exponent);
  return bits.choose(bits("eq.Scalar", exponent, 0xff), exponent, rounded);
}

// The same call with other tensors in the place of float8: their bytes, or their numbers in f32.
class CodedCall {
 public:
  CodedCall(Builder& builder, const ImportCall& call, bool is_on_floats)
      : builder_(builder), aten_(builder, call), call_(call), is_on_floats_(is_on_floats) {}

  Result<std::vector<Value>> run() {
    LATHE_DO(find_encodings());
    ImportCall inner{
        .target = call_.target, .used = call_.used, .name = call_.name, .loc = call_.loc};
    for (const auto& [name, arg] : call_.args) inner.args.emplace_back(name, argument(arg));
    if (builder_.failed()) return builder_.error();
    LATHE_TRY(std::vector<Value> results, import_call(builder_, *call_.table, std::move(inner)));
    for (Value& result : results) result = coded(result);
    if (builder_.failed()) return builder_.error();
    return results;
  }

 private:
  // Which elements; anything else that is a tensor gives elements.
  static bool says_where(std::string_view name) {
    constexpr std::string_view kNames[] = {"condition", "mask", "index", "indices", "repeats"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
  }

  Status find_encodings() {
    for (const auto& [name, arg] : call_.args) {
      if (says_where(name)) continue;
      if (const auto* value = std::get_if<Value>(&arg)) LATHE_DO(add(*value));
      if (const auto* list = std::get_if<std::vector<Value>>(&arg))
        for (Value value : *list) LATHE_DO(add(value));
      if (const auto* attr = std::get_if<Attr>(&arg)) {
        const bool is_number =
            name == "value" || name == "fill_value" || name == "other" || name == "self";
        has_number_ = has_number_ || (is_number && !std::holds_alternative<std::monostate>(*attr) &&
                                      call_.float_attr(name, 1) != 0);
      }
    }
    given_ = operand_;
    if (const CallArg* dtype = call_.find("dtype")) {
      if (const auto* given = std::get_if<Float8DType>(dtype)) given_ = given->encoding;
      const auto* attr = std::get_if<Attr>(dtype);
      if (attr != nullptr && std::holds_alternative<DType>(*attr)) given_ = Encoding::none;
    }
    if (given_ == Encoding::none) has_number_ = false;
    return Ok{};
  }

  // Tensors whose elements are not read (`full_like`'s) may be of other numbers.
  Status add(Value value) {
    if (!value) return Ok{};
    const Encoding encoding = builder_.encoding(value);
    if (num_tensors_++ > 0 && encoding != operand_)
      return aten_.refuse(code::kDtypeMismatch,
                          fmt::format("'{}' takes float8 of one kind, got {} and {}", call_.target,
                                      name_of(operand_), name_of(encoding)));
    operand_ = encoding;
    return Ok{};
  }

  static std::string_view name_of(Encoding encoding) {
    return encoding == Encoding::none ? "other numbers" : encoding_name(encoding);
  }

  bool is_on_floats() const { return is_on_floats_ || has_number_; }

  CallArg argument(const CallArg& arg) {
    if (std::holds_alternative<Float8DType>(arg))
      return Attr{is_on_floats() ? DType::f32 : DType::u8};
    if (const auto* value = std::get_if<Value>(&arg)) return tensor(*value);
    if (const auto* list = std::get_if<std::vector<Value>>(&arg)) {
      std::vector<Value> tensors;
      for (Value value : *list) tensors.push_back(tensor(value));
      return tensors;
    }
    return arg;
  }

  Value tensor(Value value) {
    if (builder_.encoding(value) == Encoding::none) return value;
    const Term x(builder_, value);
    return is_on_floats() ? from_float8(aten_, x) : bytes_of(aten_, x);
  }

  Value coded(Value result) {
    if (!result || given_ == Encoding::none) return result;
    const Term x(builder_, result);
    if (is_on_floats()) return x.dtype() == DType::f32 ? to_float8(aten_, x, given_) : x;
    builder_.mark(result, given_);
    return result;
  }

  Builder& builder_;
  Aten aten_;
  const ImportCall& call_;
  bool is_on_floats_;
  bool has_number_ = false;  // other than 0, whose byte is 0 in every format
  int num_tensors_ = 0;
  Encoding operand_ = Encoding::none, given_ = Encoding::none;
};

}  // namespace

Built on_bytes(Builder& builder, const ImportCall& call) {
  return CodedCall(builder, call, false).run();
}

Built on_floats(Builder& builder, const ImportCall& call) {
  return CodedCall(builder, call, true).run();
}

// Nodes of their own: marks are of values.
Term bytes_of(const Aten& aten, Term x) {
  if (!x) return aten.null();
  const Value value = x;
  return {x.builder(), x.builder().call("reshape", {value}, {{"shape", value.type().shape}})};
}

Term float8_of(const Aten& aten, Term bytes, Encoding encoding) {
  if (!bytes) return bytes;
  if (bytes.dtype() != DType::u8)
    return aten.fail(code::kDtypeMismatch,
                     fmt::format("'{}' makes {} of bytes, got {}", aten.call().target,
                                 encoding_name(encoding), dtype_name(bytes.dtype())));
  const Term result = bytes_of(aten, bytes);
  result.builder().mark(result, encoding);
  return result;
}

Term from_float8(const Aten& aten, Term x) {
  const Bits bits{aten};
  const Encoding encoding = x.encoding();
  const Term byte = aten("to.dtype", {bytes_of(aten, x), DType::i32});
  if (encoding == Encoding::float8_e8m0fnu) return from_exponent(bits, byte);
  const Format format = format_of(encoding);
  const Term magnitude = bits("bitwise_and.Scalar", byte, 0x7f);
  // Subnormal numbers are multiples of the smallest: so no arithmetic here is on subnormal ones
  // of f32, which processors are slow at and GPUs may take for 0.
  const double smallest = std::ldexp(1.0, 1 - format.bias - format.fraction);
  const Term small = aten("mul.Scalar", {aten("to.dtype", {magnitude, DType::f32}), smallest});
  const Term placed = bits("add.Scalar", bits.shifted_left(magnitude, kFraction - format.fraction),
                           int64_t{kBias - format.bias} << kFraction);
  Term word = bits.choose(bits("lt.Scalar", magnitude, int64_t{1} << format.fraction),
                          bits.of_float(small), placed);
  const Term special = format.above == 0x7c
                           ? bits.choose(bits("eq.Scalar", magnitude, 0x7c),
                                         bits.number(0x7f800000), bits.number(kNan))
                           : bits.number(kNan);
  const Term is_special = format.has_one_zero ? bits("eq.Scalar", byte, 0x80)
                                              : bits("gt.Scalar", magnitude, format.largest);
  if (!format.has_one_zero) word = bits.choose(is_special, special, word);
  const Term sign = bits.shifted_left(bits("bitwise_and.Scalar", byte, 0x80), 24);
  word = aten("bitwise_or.Tensor", {word, sign});
  // The code of -0 is a NaN without sign.
  if (format.has_one_zero) word = bits.choose(is_special, special, word);
  return bits.as_float(word);
}

Term to_float8(const Aten& aten, Term x, Encoding encoding) {
  const Bits bits{aten};
  x = aten("to.dtype", {x, DType::f32});
  const auto as_bytes = [&](Term code) {
    return float8_of(aten, aten("to.dtype", {code, DType::u8}), encoding);
  };
  if (encoding == Encoding::float8_e8m0fnu) return as_bytes(to_exponent(bits, x));
  const Format format = format_of(encoding);
  const int dropped = kFraction - format.fraction;
  const Term word = bits.of_float(x), magnitude = bits("bitwise_and.Scalar", word, 0x7fffffff);
  // Ties to even: half of the last place less one, and one more where the last bit is set.
  const Term is_odd = bits("bitwise_and.Scalar", bits.shifted_right(magnitude, dropped), 1);
  const int64_t rebased = (int64_t{format.bias - kBias} << kFraction) + (1 << (dropped - 1)) - 1;
  const Term normal = bits.shifted_right(
      aten("add.Tensor", {bits("add.Scalar", magnitude, rebased), is_odd}), dropped);
  // Beside a number whose last place is that of subnormal ones the addition rounds them.
  const double beside = std::ldexp(1.0, kFraction + 1 - format.bias - format.fraction);
  const Term added = bits.of_float(aten("add.Scalar", {bits.as_float(magnitude), beside}));
  const Term small = aten("sub.Tensor", {added, bits.of_float(aten.scalar(beside, DType::f32))});
  const double least = std::ldexp(1.0, 1 - format.bias);  // that is normal
  Term code = bits.choose(aten("lt.Scalar", {aten("abs", x), least}), small, normal);
  code = bits.choose(bits("gt.Scalar", code, format.largest), bits.number(format.above), code);
  const Term is_nan = aten("isnan", x);
  Term sign = bits("bitwise_and.Scalar", bits.shifted_right(word, 24), 0x80);
  if (!format.has_one_zero) {
    code = bits.choose(is_nan, bits.number(kNanByte), code);
    return as_bytes(aten("bitwise_or.Tensor", {code, sign}));
  }
  sign = bits.choose(bits("eq.Scalar", code, 0), bits.number(0), sign);
  const Term numbers = aten("bitwise_or.Tensor", {code, sign});
  return as_bytes(bits.choose(is_nan, bits.number(format.above), numbers));
}

}  // namespace lathe
