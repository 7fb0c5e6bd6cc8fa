// Reads the text form; the grammar stands at the top of print.cpp.
//
// Every node gets the location of its op's name, unless the text has a locs table. Nesting is
// bounded, sizes are checked as they are read, and every node goes through the builder, so that no
// text makes more than memory in proportion to its length.
#include <fmt/format.h>

#include <map>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/parse_parts.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/support/diag_codes.h"
#include "ir/support/lexer.h"
#include "ir/type/type_text.h"

namespace lathe {
namespace {

constexpr int kMaxNesting = 16;  // of bodies

// One function or body: what its names mean.
struct Scope {
  Graph& graph;
  Builder builder;
  std::map<std::string, Value, std::less<>> values = {};
};

// The operands of a statement as written.
struct Arg {
  Token token;
  std::vector<Value> values;
  bool is_list = false;
};

class Parser {
 public:
  Parser(std::string_view text, const Registry& ops, std::string_view file, Module& module)
      : ops_(ops), module_(module), lexer_(text, file, &module.locs) {}

  Status parse_module() {
    while (lexer_.peek().is("dim")) LATHE_DO(parse_size());
    LATHE_DO(parse_guards());
    do {
      LATHE_DO(parse_function());
    } while (lexer_.peek().is("func"));
    if (lexer_.accept("locs")) {
      LATHE_TRY(const auto rows, parse_locs(lexer_, module_.locs));
      LATHE_DO(set_locations(rows));
    }
    for (const auto& [loc, token] : numbered_)
      if (!has_locs_) return lexer_.error(token, "this text has no locs table", code::kSyntax);
    if (!lexer_.at_end()) return lexer_.expected("'func' or the end of the text");
    return Ok{};
  }

 private:
  // --- sizes and functions

  Status parse_size() {
    lexer_.take();
    const Token token = lexer_.peek();
    LATHE_TRY(const Token name_token, lexer_.expect(TokenKind::name, "the name of a size"));
    const std::string name(name_token.text);
    if (!sizes_.insert(name).second)
      return lexer_.error(token, fmt::format("size '{}' is declared twice", name),
                          code::kRedefinedValue);
    if (lexer_.accept("in")) {
      LATHE_TRY(module_.dims[name], parse_range(lexer_));
    }
    if (lexer_.accept("hint")) {
      LATHE_TRY(module_.hints[name], lexer_.integer());
    }
    return Ok{};
  }

  // Their locations are known at the end of the text: until then they must stay where they are.
  Status parse_guards() {
    std::vector<std::pair<Token, int64_t>> locs;  // by guard; the number is -1 where it has none
    while (lexer_.peek().is("guard")) {
      const Loc loc = lexer_.loc(lexer_.take());
      LATHE_TRY(Guard guard, parse_known_guard(lexer_));
      guard.loc = loc;
      const Token token = lexer_.peek();
      int64_t number = -1;
      if (token.kind == TokenKind::function) {
        LATHE_TRY(number, parse_loc_number(lexer_));
      }
      module_.guards.push_back(std::move(guard));
      locs.emplace_back(token, number);
    }
    for (size_t i = 0; i < locs.size(); ++i) {
      if (locs[i].second < 0) continue;
      numbered_.emplace_back(&module_.guards[i].loc, locs[i].first);
      numbers_.push_back(locs[i].second);
    }
    return Ok{};
  }

  Status parse_function() {
    LATHE_DO(lexer_.expect("func"));
    const Token token = lexer_.peek();
    LATHE_TRY(const Token name, lexer_.expect(TokenKind::function, "a function's name, as @main"));
    for (const auto& other : module_.graphs)
      if (other->name == name.text)
        return lexer_.error(token, fmt::format("function '@{}' is defined twice", name.text),
                            code::kRedefinedValue);
    module_.graphs.push_back(std::make_unique<Graph>());
    Graph& graph = *module_.graphs.back();
    graph.name = name.text;
    Scope scope{graph, Builder(graph, ops_, lexer_.loc(token))};
    LATHE_DO(parse_params(scope));
    const bool has_types = lexer_.accept("->");
    const Token types_token = lexer_.peek();
    std::vector<TensorType> types;
    if (has_types) {
      LATHE_TRY(types, parse_types());
    }
    LATHE_DO(lexer_.expect("{"));
    LATHE_DO(parse_code(scope));
    if (!has_types) return Ok{};
    std::vector<TensorType> found;
    for (Value output : graph.outputs) found.push_back(output.type());
    return check_types(types_token, types, found, "the function returns");
  }

  Status parse_params(Scope& scope) {
    LATHE_DO(lexer_.expect("("));
    bool is_first = true;
    while (!lexer_.accept(")")) {
      if (!is_first) LATHE_DO(lexer_.expect(","));
      is_first = false;
      LATHE_TRY(const Token token, lexer_.expect(TokenKind::value, "a parameter, as %x"));
      LATHE_DO(lexer_.expect(":"));
      LATHE_TRY(TensorType type, parse_type(lexer_));
      scope.builder.set_loc(lexer_.loc(token));
      LATHE_DO(check_new_name(scope, token));
      const Value value = scope.builder.param(std::move(type), std::string(token.text));
      if (scope.builder.failed()) return scope.builder.error();
      scope.values.emplace(token.text, value);
      LATHE_DO(parse_at(value.node));
    }
    return Ok{};
  }

  // Statements up to and including "}".
  Status parse_code(Scope& scope) {
    while (!lexer_.accept("return")) LATHE_DO(parse_statement(scope));
    if (lexer_.peek().kind == TokenKind::value) {
      do {
        LATHE_TRY(const Value value, parse_use(scope));
        scope.graph.outputs.push_back(value);
      } while (lexer_.accept(","));
    }
    while (lexer_.accept("mutates")) LATHE_DO(parse_mutation(scope));
    return lexer_.expect("}");
  }

  Status parse_mutation(Scope& scope) {
    Mutation mutation;
    const Token target = lexer_.peek();
    if (target.kind == TokenKind::value) {
      LATHE_TRY(const Value value, parse_use(scope));
      if (value.node->op->name != kParamOp)
        return lexer_.error(target, fmt::format("'%{}' is no input of the function", target.text),
                            code::kUndefinedValue);
      mutation.target = value.node->name;
      mutation.is_input = true;
    } else {
      LATHE_TRY(mutation.target, lexer_.string());
    }
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(mutation.value, parse_use(scope));
    scope.graph.mutations.push_back(std::move(mutation));
    return Ok{};
  }

  // --- statements

  Status parse_statement(Scope& scope) {
    std::vector<Token> names;
    if (lexer_.peek().kind == TokenKind::value) {
      do {
        LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a value, as %y"));
        LATHE_DO(check_new_name(scope, name));
        names.push_back(std::move(name));
      } while (lexer_.accept(","));
      LATHE_DO(lexer_.expect("="));
    }
    LATHE_TRY(const Token op_token, lexer_.expect(TokenKind::name, "a statement or 'return'"));
    bool in_place = false;
    LATHE_TRY(const OpDef* op, find_op(op_token, &in_place));
    const Loc loc = lexer_.loc(op_token);
    std::vector<Value> operands;
    std::vector<int> list_sizes;
    LATHE_DO(parse_operands(scope, *op, operands, list_sizes));
    NamedAttrs attrs;
    std::vector<std::unique_ptr<Graph>> bodies;
    LATHE_DO(parse_braces(*op, attrs, bodies));
    scope.builder.set_loc(loc);
    const std::string name = names.empty() ? "" : std::string(names.front().text);
    Node* node = scope.builder.create(*op, std::move(operands), std::move(list_sizes),
                                      std::move(attrs), name, in_place, std::move(bodies));
    if (node == nullptr) return scope.builder.error();
    LATHE_DO(define_results(scope, *node, names));
    if (lexer_.accept(":")) {
      const Token token = lexer_.peek();
      LATHE_TRY(std::vector<TensorType> types, parse_types());
      LATHE_DO(check_types(token, types, node->types, fmt::format("'{}' gives", op->name)));
      node->types = std::move(types);
    }
    if (lexer_.accept("using")) {
      LATHE_TRY(node->plan, parse_plan(lexer_));
    }
    return parse_at(node);
  }

  Result<const OpDef*> find_op(const Token& token, bool* in_place) {
    const OpDef* op = ops_.find(token.text);
    if (op == nullptr && token.text.back() == '_') {
      op = ops_.find(token.text.substr(0, token.text.size() - 1));
      *in_place = op != nullptr;
    }
    if (op != nullptr) return op;
    return lexer_.error(token, unknown_op(ops_, token.text).message, code::kUnknownOp);
  }

  // "(%a, none, [%b, %c])", put in the order and the form of the row.
  Status parse_operands(Scope& scope, const OpDef& op, std::vector<Value>& operands,
                        std::vector<int>& list_sizes) {
    LATHE_DO(lexer_.expect("("));
    size_t position = 0;
    for (; !lexer_.accept(")"); ++position) {
      if (position > 0) LATHE_DO(lexer_.expect(","));
      LATHE_TRY(Arg arg, parse_arg(scope));
      if (position >= op.operands.size())
        return lexer_.error(
            arg.token, fmt::format("'{}' takes {} operands, got more", op.name, op.operands.size()),
            code::kOperandCount);
      const OperandSpec& spec = op.operands[position];
      if (arg.is_list != spec.is_list())
        return lexer_.error(
            arg.token,
            fmt::format("operand '{}' of '{}' is {}", spec.name, op.name,
                        arg.is_list ? "one value, not a list" : "a list, written [%a, %b]"),
            code::kOperandCount);
      if (arg.is_list) list_sizes.push_back(static_cast<int>(arg.values.size()));
      operands.insert(operands.end(), arg.values.begin(), arg.values.end());
    }
    for (; position < op.operands.size(); ++position) {  // what was left out
      if (op.operands[position].is_list())
        list_sizes.push_back(0);
      else
        operands.push_back({});
    }
    return Ok{};
  }

  Result<Arg> parse_arg(Scope& scope) {
    Arg arg;
    arg.token = lexer_.peek();
    if (!lexer_.accept("[")) {
      LATHE_TRY(const Value value, parse_optional_use(scope));
      arg.values.push_back(value);
      return arg;
    }
    arg.is_list = true;
    while (!lexer_.accept("]")) {
      if (!arg.values.empty()) LATHE_DO(lexer_.expect(","));
      LATHE_TRY(const Value value, parse_optional_use(scope));
      arg.values.push_back(value);
    }
    return arg;
  }

  Result<Value> parse_optional_use(Scope& scope) {
    if (lexer_.accept("none")) return Value{};
    return parse_use(scope);
  }

  Result<Value> parse_use(Scope& scope) {
    LATHE_TRY(const Token token, lexer_.expect(TokenKind::value, "a value, as %x"));
    const auto found = scope.values.find(token.text);
    if (found != scope.values.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, value] : scope.values) names.push_back(name);
    std::string message = fmt::format("no value named '%{}' above", token.text.substr(0, 60));
    if (const std::string near = nearest(token.text, names); !near.empty())
      message += fmt::format("; did you mean '%{}'?", near);
    return lexer_.error(token, std::move(message), code::kUndefinedValue);
  }

  // Attributes and bodies, which both stand in braces; a body begins with its parameters.
  Status parse_braces(const OpDef& op, NamedAttrs& attrs,
                      std::vector<std::unique_ptr<Graph>>& bodies) {
    bool is_first = true;
    while (lexer_.accept("{")) {
      if (lexer_.peek().is("(")) {
        LATHE_TRY(std::unique_ptr<Graph> body, parse_body());
        bodies.push_back(std::move(body));
      } else if (is_first) {
        LATHE_DO(parse_attrs(op, attrs));
      } else {
        return lexer_.expected("the parameters of a body");
      }
      is_first = false;
    }
    return Ok{};
  }

  Status parse_attrs(const OpDef& op, NamedAttrs& attrs) {
    do {
      const Token token = lexer_.peek();
      LATHE_TRY(const Token name, lexer_.expect(TokenKind::name, "an attribute's name"));
      const int i = op.attr_index(name.text);
      if (i < 0) return unknown_attr(op, token);
      for (const auto& [other, value] : attrs)
        if (other == name.text)
          return lexer_.error(token, fmt::format("attribute '{}' is given twice", other),
                              code::kAttribute);
      LATHE_DO(lexer_.expect("="));
      LATHE_TRY(Attr value, parse_attr(lexer_, op, op.attrs[static_cast<size_t>(i)]));
      attrs.emplace_back(name.text, std::move(value));
    } while (lexer_.accept(","));
    return lexer_.expect("}");
  }

  Diag unknown_attr(const OpDef& op, const Token& token) const {
    std::vector<std::string> names;
    for (const AttrSpec& spec : op.attrs) names.push_back(spec.name);
    std::string message = fmt::format("'{}' has no attribute '{}'", op.name, token.text);
    if (const std::string near = nearest(token.text, names); !near.empty())
      message += fmt::format("; did you mean '{}'?", near);
    return lexer_.error(token, std::move(message), code::kAttribute);
  }

  Result<std::unique_ptr<Graph>> parse_body() {
    const Token token = lexer_.peek();
    if (++depth_ > kMaxNesting)
      return lexer_.error(token, "bodies are nested too deeply", code::kTooLarge);
    auto body = std::make_unique<Graph>();
    body->name = "body";
    Scope scope{*body, Builder(*body, ops_, lexer_.loc(token))};
    LATHE_DO(parse_params(scope));
    LATHE_DO(parse_code(scope));
    --depth_;
    return body;
  }

  // --- results and types

  Status check_new_name(const Scope& scope, const Token& name) const {
    if (scope.values.count(name.text) == 0) return Ok{};
    return lexer_.error(name, fmt::format("value '%{}' is defined twice", name.text),
                        code::kRedefinedValue);
  }

  Status define_results(Scope& scope, Node& node, const std::vector<Token>& names) {
    if (names.empty()) return Ok{};
    if (names.size() != node.types.size() && (names.size() != 1 || node.types.empty()))
      return lexer_.error(names.front(),
                          fmt::format("'{}' has {} results, but {} are named", node.op->name,
                                      node.types.size(), names.size()),
                          code::kTypeMismatch);
    if (names.front().text.find('.') != std::string_view::npos)
      return lexer_.error(names.front(), "the name of a first result has no '.'", code::kSyntax);
    for (size_t i = 0; i < node.types.size(); ++i) {
      const Value value = node.result(static_cast<int>(i));
      const std::string usual =
          i == 0 ? std::string(names[0].text) : fmt::format("{}.{}", names[0].text, i);
      const std::string name = i < names.size() ? std::string(names[i].text) : usual;
      scope.values.emplace(usual, value);
      if (!scope.values.emplace(name, value).second && name != usual)
        return lexer_.error(names[i], fmt::format("value '%{}' is defined twice", name),
                            code::kRedefinedValue);
    }
    return Ok{};
  }

  Result<std::vector<TensorType>> parse_types() {
    std::vector<TensorType> types;
    do {
      LATHE_TRY(TensorType type, parse_type(lexer_));
      types.push_back(std::move(type));
    } while (lexer_.accept(","));
    return types;
  }

  // Layouts may be written where inference has none.
  Status check_types(const Token& token, const std::vector<TensorType>& written,
                     const std::vector<TensorType>& found, const std::string& subject) const {
    bool is_same = written.size() == found.size();
    for (size_t i = 0; is_same && i < written.size(); ++i)
      is_same = written[i].dtype == found[i].dtype && written[i].shape == found[i].shape;
    if (is_same) return Ok{};
    std::string types;
    for (const TensorType& type : found) types += (types.empty() ? "" : ", ") + to_string(type);
    return lexer_.error(
        token,
        fmt::format("{} {}, not the type written here", subject, types.empty() ? "nothing" : types),
        code::kTypeMismatch);
  }

  // --- locations

  Status parse_at(Node* node) {
    if (lexer_.peek().kind != TokenKind::function) return Ok{};
    numbered_.emplace_back(&node->loc, lexer_.peek());
    LATHE_TRY(const int64_t number, parse_loc_number(lexer_));
    numbers_.push_back(number);
    return Ok{};
  }

  Status set_locations(const std::map<int64_t, Loc>& rows) {
    has_locs_ = true;
    for (size_t i = 0; i < numbered_.size(); ++i) {
      const auto found = rows.find(numbers_[i]);
      if (found == rows.end())
        return lexer_.error(numbered_[i].second,
                            fmt::format("no location @{} in the locs table", numbers_[i]),
                            code::kUndefinedValue);
      *numbered_[i].first = found->second;
    }
    return Ok{};
  }

  const Registry& ops_;
  Module& module_;
  Lexer lexer_;
  std::set<std::string> sizes_;
  std::vector<std::pair<Loc*, Token>> numbered_;  // of what has "@3" after it
  std::vector<int64_t> numbers_;                  // the 3, for each
  bool has_locs_ = false;
  int depth_ = 0;
};

Status parse_into(std::string_view text, const Registry& ops, std::string_view file,
                  Module& module) {
  LATHE_DO(Parser(text, ops, file, module).parse_module());
  for (const auto& graph : module.graphs) LATHE_DO(verify(module, *graph, Form::imported));
  return Ok{};
}

}  // namespace

Result<Module> parse(std::string_view text, const Registry& ops, std::string_view file,
                     LocTable* locs_on_error) {
  Module module;
  if (Status status = parse_into(text, ops, file, module); !status.ok()) {
    if (locs_on_error != nullptr) *locs_on_error = std::move(module.locs);
    return std::move(status).error();
  }
  return module;
}

}  // namespace lathe
