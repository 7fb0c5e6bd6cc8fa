// Parses library calls; the grammar stands in text.h.
#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "ir/program/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Result<std::vector<int64_t>> parse_ints(Lexer& lexer) {
  std::vector<int64_t> list;
  LATHE_DO(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!list.empty()) LATHE_DO(lexer.expect(","));
    LATHE_TRY(const int64_t value, lexer.integer());
    list.push_back(value);
  }
  return list;
}

Result<Shape> parse_sizes(Lexer& lexer) {
  Shape list;
  LATHE_DO(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!list.empty()) LATHE_DO(lexer.expect(","));
    LATHE_TRY(Dim size, parse_dim(lexer));
    list.push_back(std::move(size));
  }
  return list;
}

// Without the name and "=".
Result<CallTensor> parse_tensor(Lexer& lexer) {
  CallTensor tensor;
  LATHE_TRY(tensor.buffer, parse_buffer_id(lexer));
  LATHE_TRY(tensor.shape, parse_sizes(lexer));
  if (lexer.accept("at")) {
    LATHE_TRY(tensor.offset, parse_dim(lexer));
  }
  LATHE_DO(lexer.expect("by"));
  LATHE_TRY(tensor.strides, parse_sizes(lexer));
  return tensor;
}

// A place for the operand of that name.
struct Place {
  std::string_view name;
  CallTensor* tensor;
};
struct OptionalPlace {
  std::string_view name;
  std::optional<CallTensor>* tensor;
};
using OptionalPlaces = std::vector<OptionalPlace>;

OptionalPlaces of(CallEpilogue& epilogue) {
  return {{"bias", &epilogue.bias}, {"residual", &epilogue.residual}};
}

// The operands of a call as they stand in the text, taken one after the other.
class OperandList {
 public:
  explicit OperandList(Lexer& lexer) : lexer_(lexer) {}

  // "(a = ..., b = ..., bias = ...) -> d = ...": all of `read` in order, then what there is of the
  // optional ones.
  Status parse_into(std::initializer_list<Place> read, const OptionalPlaces& optional,
                    Place written) {
    LATHE_DO(parse());
    for (const Place& place : read) LATHE_DO(take(place));
    for (const OptionalPlace& place : optional) *place.tensor = take_if(place.name);
    if (next_ + 1 < found_.size()) {
      const Token& at = found_[next_].name;
      return lexer_.error(at, fmt::format("the call has no operand '{}' here", at.text),
                          code::kSyntax);
    }
    return take(written);
  }

 private:
  struct Named {
    Token name;
    CallTensor tensor;
  };

  Status parse() {
    LATHE_DO(lexer_.expect("("));
    do LATHE_DO(parse_one());
    while (lexer_.accept(","));
    LATHE_DO(lexer_.expect(")"));
    LATHE_DO(lexer_.expect("->"));
    return parse_one();
  }

  Status parse_one() {
    Named operand;
    LATHE_TRY(operand.name, lexer_.expect(TokenKind::name, "the name of an operand"));
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(operand.tensor, parse_tensor(lexer_));
    found_.push_back(std::move(operand));
    return Ok{};
  }

  Status take(const Place& place) {
    if (std::optional<CallTensor> found = take_if(place.name)) {
      *place.tensor = *std::move(found);
      return Ok{};
    }
    const Token& at = next_ < found_.size() ? found_[next_].name : found_.back().name;
    return lexer_.error(at, fmt::format("expected operand '{}', got '{}'", place.name, at.text),
                        code::kSyntax);
  }
  // Nothing when another one comes next; the written one is last and no optional one.
  std::optional<CallTensor> take_if(std::string_view name) {
    if (next_ == found_.size() || found_[next_].name.text != name) return std::nullopt;
    return std::move(found_[next_++].tensor);
  }

  Lexer& lexer_;
  std::vector<Named> found_;
  size_t next_ = 0;
};

Activation parse_activation(Lexer& lexer) {
  for (const ActivationRow& row : activations())
    if (row.id != Activation::none && lexer.accept(row.name)) return row.id;
  return Activation::none;
}

Result<LibraryCall> parse_matmul(Lexer& lexer) {
  MatmulCall call;
  LATHE_DO(OperandList(lexer).parse_into({{"a", &call.a}, {"b", &call.b}}, of(call.epilogue),
                                         {"d", &call.d}));
  call.epilogue.activation = parse_activation(lexer);
  return LibraryCall(std::move(call));
}

Result<LibraryCall> parse_convolution(Lexer& lexer) {
  ConvolutionCall call;
  LATHE_DO(OperandList(lexer).parse_into({{"x", &call.x}, {"w", &call.w}}, of(call.epilogue),
                                         {"y", &call.y}));
  for (const auto& [word, sizes] :
       {std::pair("padding", &call.padding), std::pair("stride", &call.stride),
        std::pair("dilation", &call.dilation)}) {
    LATHE_DO(lexer.expect(word));
    LATHE_TRY(*sizes, parse_ints(lexer));
  }
  call.is_transposed = lexer.accept("transposed");
  call.may_use_tf32 = lexer.accept("tf32");
  call.epilogue.activation = parse_activation(lexer);
  return LibraryCall(std::move(call));
}

Result<LibraryCall> parse_attention(Lexer& lexer) {
  AttentionCall call;
  LATHE_DO(OperandList(lexer).parse_into({{"q", &call.q}, {"k", &call.k}, {"v", &call.v}},
                                         {{"bias", &call.bias}}, {"o", &call.o}));
  LATHE_DO(lexer.expect("scale"));
  LATHE_TRY(call.scale, lexer.number());
  call.is_causal = lexer.accept("causal");
  return LibraryCall(std::move(call));
}

}  // namespace

Result<BufferId> parse_buffer_id(Lexer& lexer) {
  LATHE_TRY(const Token token, lexer.expect(TokenKind::value, "a buffer such as %3"));
  BufferId id = 0;
  for (char c : token.text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || __builtin_mul_overflow(id, 10, &id) ||
        __builtin_add_overflow(id, c - '0', &id))
      return lexer.error(
          token, fmt::format("buffers have numbers, '%{}' is none", token.text.substr(0, 40)),
          code::kUndefinedValue);
  }
  return id;
}

Result<LibraryCall> parse_call(Lexer& lexer) {
  if (lexer.accept("matmul")) return parse_matmul(lexer);
  if (lexer.accept("convolution")) return parse_convolution(lexer);
  if (lexer.accept("attention")) return parse_attention(lexer);
  return lexer.expected("matmul, convolution or attention");
}

}  // namespace lathe
