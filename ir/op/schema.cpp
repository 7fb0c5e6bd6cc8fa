// Parses ATen schema strings (see schema.h).
#include "ir/op/schema.h"

#include <limits>
#include <utility>

#include "ir/support/diag_codes.h"
#include "ir/support/lexer.h"

namespace lathe {
namespace {

constexpr std::pair<std::string_view, SchemaType> kTypes[] = {
    {"Tensor", SchemaType::tensor},       {"Scalar", SchemaType::scalar},
    {"int", SchemaType::integer},         {"SymInt", SchemaType::integer},
    {"float", SchemaType::number},        {"bool", SchemaType::boolean},
    {"str", SchemaType::string},          {"ScalarType", SchemaType::dtype},
    {"Layout", SchemaType::layout},       {"Device", SchemaType::device},
    {"Generator", SchemaType::generator}, {"MemoryFormat", SchemaType::memory_format},
};

// c10::ScalarType, which the defaults of schemas use; files use another numbering.
std::optional<DType> c10_dtype(int64_t number) {
  switch (number) {
    case 0:
      return DType::u8;
    case 1:
      return DType::i8;
    case 2:
      return DType::i16;
    case 3:
      return DType::i32;
    case 4:
      return DType::i64;
    case 5:
      return DType::f16;
    case 6:
      return DType::f32;
    case 7:
      return DType::f64;
    case 11:
      return DType::b8;
    case 15:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : lexer_(text, "<schema>", nullptr) {}

  Result<Schema> parse() {
    Schema schema;
    LATHE_TRY(Token name, lexer_.expect(TokenKind::name, "an operator name"));
    schema.name = name.text;
    if (lexer_.accept(".")) {
      LATHE_TRY(Token overload, lexer_.expect(TokenKind::name, "an overload name"));
      schema.name += "." + std::string(overload.text);
    }
    LATHE_DO(parse_args(schema));
    LATHE_DO(lexer_.expect("->"));
    LATHE_DO(parse_returns(schema));
    if (!lexer_.at_end()) return lexer_.expected("the end of the schema");
    schema.is_in_place = !schema.args.empty() && schema.args.front().is_written &&
                         schema.returns.size() == 1 && returns_written_;
    return schema;
  }

 private:
  Status parse_args(Schema& schema) {
    LATHE_DO(lexer_.expect("("));
    bool is_keyword_only = false;
    while (!lexer_.accept(")")) {
      if (!schema.args.empty() || is_keyword_only) LATHE_DO(lexer_.expect(","));
      if (lexer_.accept("*")) {
        is_keyword_only = true;
        continue;
      }
      SchemaArg arg;
      arg.is_keyword_only = is_keyword_only;
      LATHE_DO(parse_type(arg));
      LATHE_TRY(Token name, lexer_.expect(TokenKind::name, "an argument name"));
      arg.name = name.text;
      if (lexer_.accept("=")) {
        LATHE_TRY(arg.default_value, parse_default(arg));
      }
      schema.args.push_back(std::move(arg));
    }
    return Ok{};
  }

  Status parse_returns(Schema& schema) {
    const bool is_tuple = lexer_.accept("(");
    if (is_tuple && lexer_.accept(")")) return Ok{};
    do {
      SchemaArg result;
      LATHE_DO(parse_type(result));
      returns_written_ = returns_written_ || result.is_written;
      schema.returns.push_back({result.type, result.is_list});
      if (is_tuple && lexer_.peek().kind == TokenKind::name) lexer_.take();  // named return
    } while (is_tuple && lexer_.accept(","));
    if (is_tuple) LATHE_DO(lexer_.expect(")"));
    return Ok{};
  }

  // base [ "(" alias ")" ] { "?" | "[" [size] "]" }
  Status parse_type(SchemaArg& arg) {
    LATHE_TRY(Token base, lexer_.expect(TokenKind::name, "a type"));
    bool is_known = false;
    for (const auto& [name, type] : kTypes) {
      if (base.text != name) continue;
      arg.type = type;
      is_known = true;
    }
    if (!is_known) return lexer_.error(base, "unknown type", code::kSyntax);
    if (lexer_.accept("(")) {
      while (!lexer_.at_end() && !lexer_.peek().is(")")) {
        arg.is_written = lexer_.take().is("!") || arg.is_written;
      }
      LATHE_DO(lexer_.expect(")"));
    }
    while (true) {
      if (lexer_.accept("?")) {
        arg.is_optional = true;
      } else if (lexer_.accept("[")) {
        arg.has_optional_elements = std::exchange(arg.is_optional, false);
        arg.is_list = true;
        if (!lexer_.peek().is("]")) {
          LATHE_TRY(int64_t size, lexer_.integer());
          if (size < 1 || size > 64) return lexer_.expected("a list size from 1 to 64");
          arg.list_size = static_cast<int>(size);
        }
        LATHE_DO(lexer_.expect("]"));
      } else {
        return Ok{};
      }
    }
  }

  Result<Attr> parse_default(const SchemaArg& arg) {
    if (lexer_.accept("None")) return Attr{};
    if (!arg.is_list) return parse_element(arg);
    std::vector<Attr> elements;
    if (lexer_.accept("[")) {
      while (!lexer_.accept("]")) {
        if (!elements.empty()) LATHE_DO(lexer_.expect(","));
        LATHE_TRY(Attr element, parse_element(arg));
        elements.push_back(std::move(element));
      }
    } else {
      LATHE_TRY(Attr element, parse_element(arg));
      elements.assign(static_cast<size_t>(arg.list_size == 0 ? 1 : arg.list_size), element);
    }
    return join(arg, elements);
  }

  static Attr join(const SchemaArg& arg, const std::vector<Attr>& elements) {
    std::vector<int64_t> ints;
    std::vector<double> numbers;
    std::vector<bool> bools;
    for (const Attr& element : elements) {
      if (const auto* value = std::get_if<int64_t>(&element)) ints.push_back(*value);
      if (const auto* value = std::get_if<double>(&element)) numbers.push_back(*value);
      if (const auto* value = std::get_if<bool>(&element)) bools.push_back(*value);
    }
    if (arg.type == SchemaType::number) return numbers;
    if (arg.type == SchemaType::boolean) return bools;
    return ints;
  }

  Result<Attr> parse_element(const SchemaArg& arg) {
    switch (arg.type) {
      case SchemaType::boolean: {
        if (lexer_.accept("True")) return Attr{true};
        if (lexer_.accept("False")) return Attr{false};
        return lexer_.expected("True or False");
      }
      case SchemaType::string: {
        LATHE_TRY(std::string text, lexer_.string());
        return Attr{std::move(text)};
      }
      case SchemaType::number: {
        LATHE_TRY(double value, lexer_.number());
        return Attr{value};
      }
      case SchemaType::dtype: {
        if (lexer_.accept("long")) return Attr{DType::i64};
        LATHE_TRY(int64_t number, lexer_.integer());
        if (auto dtype = c10_dtype(number)) return Attr{*dtype};
        return lexer_.expected("the number of a supported element type before this");
      }
      case SchemaType::scalar: {
        if (lexer_.accept("True")) return Attr{true};
        if (lexer_.accept("False")) return Attr{false};
        const bool is_negative = lexer_.accept("-");
        const Token number = lexer_.take();
        const double sign = is_negative ? -1 : 1;
        if (number.kind == TokenKind::real) return Attr{sign * number.real};
        if (number.kind == TokenKind::integer &&
            number.magnitude <= uint64_t{std::numeric_limits<int64_t>::max()}) {
          const auto value = static_cast<int64_t>(number.magnitude);
          return Attr{is_negative ? -value : value};
        }
        return lexer_.error(number, "expected a number", code::kSyntax);
      }
      default: {  // a symbolic constant such as contiguous_format, or a c10 number: never read
        if (lexer_.peek().kind == TokenKind::name) {
          return Attr{std::string(lexer_.take().text)};
        }
        LATHE_TRY(int64_t value, lexer_.integer());
        return Attr{value};
      }
    }
  }

  Lexer lexer_;
  bool returns_written_ = false;
};

}  // namespace

const SchemaArg* Schema::find(std::string_view arg) const {
  for (const SchemaArg& candidate : args) {
    if (candidate.name == arg) return &candidate;
  }
  return nullptr;
}

Result<Schema> parse_schema(std::string_view text) { return SchemaParser(text).parse(); }

}  // namespace lathe
