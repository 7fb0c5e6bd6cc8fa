// Parses expressions by precedence climbing; the grammar stands in spelling.h.
#include "ir/loop/parse_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/loop/linear.h"
#include "ir/loop/pool.h"
#include "ir/loop/spelling.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

constexpr int kMaxExprDepth = 600;
constexpr int kMaxLanes = 2048;  // threads of a GPU's block, each with a few lanes

const Infix* find_infix(const Token& token) {
  if (token.kind != TokenKind::mark) return nullptr;
  for (const Infix& infix : kInfix)
    if (infix.mark == token.text) return &infix;
  return nullptr;
}

template <size_t N>
int find_name(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i].size() > 1 && names[i] == name) return static_cast<int>(i);
  return -1;
}

bool is_integer_only(BinaryOp op) {
  return op == BinaryOp::floor_div || op == BinaryOp::mod ||
         (op >= BinaryOp::bit_and && op <= BinaryOp::shift_right);
}

}  // namespace

// --- names ---

Status ExprParser::define(const Token& name, Named meaning) {
  if (!names_.emplace(std::string(name.text), meaning).second)
    return lexer_.error(name, fmt::format("'%{}' is already defined here", name.text),
                        code::kRedefinedValue);
  scope_.emplace_back(name.text);
  return Ok{};
}

void ExprParser::leave(size_t mark) {
  for (; scope_.size() > mark; scope_.pop_back()) names_.erase(scope_.back());
}

const Named* ExprParser::find(std::string_view name) const {
  auto found = names_.find(std::string(name));
  return found == names_.end() ? nullptr : &found->second;
}

Diag ExprParser::undefined(const Token& name) const {
  std::string near = nearest(name.text, scope_);
  std::string hint = near.empty() ? "" : fmt::format("; did you mean '%{}'?", near);
  return lexer_.error(name, fmt::format("'%{}' is not defined{}", name.text, hint),
                      code::kUndefinedValue);
}

Diag ExprParser::mismatch(const Token& at, const std::string& message) const {
  return lexer_.error(at, message, code::kDtypeMismatch);
}

// --- types ---

Result<TypeName> ExprParser::type() {
  LATHE_TRY(Token token, lexer_.expect(TokenKind::name, "a type such as f32 or f32x16"));
  std::string_view text = token.text;
  size_t x = text.find_last_of('x');
  TypeName result;
  std::string_view name = text;
  if (x != std::string_view::npos && x > 0 && x + 1 < text.size() && text.size() - x <= 5) {
    int count = 0;
    for (char c : text.substr(x + 1))
      count = c >= '0' && c <= '9' ? count * 10 + (c - '0') : kMaxLanes + 1;
    if (count >= 1 && count <= kMaxLanes) {
      result.lanes = count;
      name = text.substr(0, x);
    }
  }
  std::optional<DType> found = parse_dtype(name);
  if (!found)
    return lexer_.error(token, fmt::format("expected a type such as f32 or f32x16, got '{}'", text),
                        code::kSyntax);
  result.dtype = *found;
  return result;
}

Result<DType> ExprParser::dtype() {
  const Token token = lexer_.peek();
  LATHE_TRY(TypeName name, type());
  if (name.lanes != 1) return mismatch(token, "expected a dtype without lanes");
  return name.dtype;
}

Result<int> ExprParser::lanes() {
  const Token token = lexer_.peek();
  LATHE_TRY(int64_t count, lexer_.integer());
  if (count < 1 || count > kMaxLanes)
    return lexer_.error(token, fmt::format("lanes must be 1 to {}, got {}", kMaxLanes, count),
                        code::kBadValue);
  return static_cast<int>(count);
}

// --- literals ---

Result<Expr> ExprParser::typed_as(const Operand& operand, DType dtype) const {
  if (operand.e) {
    if (operand.e->dtype == dtype) return operand.e;
    return mismatch(operand.token, fmt::format("expected {}, got {}", dtype_name(dtype),
                                               dtype_name(operand.e->dtype)));
  }
  Pool& pool = *kernel_.pool;
  if (is_float(dtype))
    return pool.number(operand.is_negative ? -operand.token.real : operand.token.real, dtype);
  if (operand.is_real || dtype == DType::b8)
    return mismatch(operand.token, fmt::format("expected {}, got the number {}", dtype_name(dtype),
                                               operand.token.text));
  uint64_t limit = (uint64_t{1} << 63) - (operand.is_negative ? 0 : 1);
  if (operand.token.magnitude > limit)
    return lexer_.error(operand.token, fmt::format("{} does not fit into i64", operand.token.text),
                        code::kTooLarge);
  uint64_t value = operand.is_negative ? 0 - operand.token.magnitude : operand.token.magnitude;
  return pool.integer(static_cast<int64_t>(value), dtype);
}

Result<Expr> ExprParser::typed(const Operand& operand) const {
  if (operand.e) return operand.e;
  return typed_as(operand, operand.is_real ? DType::f32 : DType::i64);
}

Result<std::vector<Expr>> ExprParser::unified(const Token& at,
                                              const std::vector<Operand>& operands) const {
  const Operand* leader = &operands.front();
  for (const Operand& operand : operands) {
    if (!leader->e && (operand.e || operand.is_real)) leader = &operand;
  }
  LATHE_TRY(Expr first, typed(*leader));
  std::vector<Expr> result;
  int lanes = 1;
  for (const Operand& operand : operands) {
    LATHE_TRY(Expr e, typed_as(operand, first->dtype));
    lanes = std::max(lanes, e->lanes);
    result.push_back(e);
  }
  for (Expr& e : result) {
    if (e->lanes != 1 && e->lanes != lanes)
      return mismatch(at, fmt::format("operands have {} and {} lanes", e->lanes, lanes));
    e = splat(e, lanes);
  }
  return result;
}

// --- expressions ---

Result<Expr> ExprParser::parse() {
  LATHE_TRY(Operand operand, infix(0));
  return typed(operand);
}

Result<Expr> ExprParser::parse_as(TypeName type) {
  const Token start = lexer_.peek();
  LATHE_TRY(Operand operand, infix(0));
  // true and false have their dtype, but no lanes of their own.
  bool is_literal = !operand.e || (operand.e->dtype == DType::b8 && as_int(operand.e));
  LATHE_TRY(Expr e, typed_as(operand, type.dtype));
  if (type.lanes == 0) return e;
  if (is_literal) e = splat(e, type.lanes);
  if (e->lanes == type.lanes) return e;
  return mismatch(start, fmt::format("expected {}, got {}", type_name(type.dtype, type.lanes),
                                     type_name(e->dtype, e->lanes)));
}

Result<Expr> ExprParser::parse_index() { return parse_as({DType::i64, 0}); }

Result<std::vector<Expr>> ExprParser::indices() {
  LATHE_DO(lexer_.expect("["));
  std::vector<Expr> result;
  do {
    LATHE_TRY(Expr index, parse_index());
    result.push_back(index);
  } while (lexer_.accept(","));
  LATHE_DO(lexer_.expect("]"));
  return result;
}

Result<ExprParser::Operand> ExprParser::infix(int min_precedence) {
  if (++depth_ > kMaxExprDepth)
    return lexer_.error(lexer_.peek(), "the expression nests too deeply", code::kTooLarge);
  LATHE_TRY(Operand left, prefix());
  for (const Infix* next = find_infix(lexer_.peek()); next && next->precedence >= min_precedence;
       next = find_infix(lexer_.peek())) {
    Token at = lexer_.take();
    LATHE_TRY(Operand right, infix(next->precedence + 1));
    LATHE_TRY(Operand both, combine(next->op, at, left, right));
    left = both;
  }
  --depth_;
  return left;
}

Result<ExprParser::Operand> ExprParser::combine(BinaryOp op, const Token& at, Operand a,
                                                Operand b) {
  LATHE_TRY(std::vector<Expr> both, unified(at, {a, b}));
  if (is_integer_only(op) && is_float(both[0]->dtype))
    return mismatch(
        at, fmt::format("'{}' is of integers, got {}", at.text, dtype_name(both[0]->dtype)));
  if ((at.is("&&") || at.is("||")) && both[0]->dtype != DType::b8)
    return mismatch(at,
                    fmt::format("'{}' is of bool, got {}", at.text, dtype_name(both[0]->dtype)));
  return Operand{binary(op, both[0], both[1]), at};
}

Result<ExprParser::Operand> ExprParser::prefix() {
  const Token at = lexer_.peek();
  bool is_prefix = at.is("-") || at.is("!") || at.is("~");
  if (!is_prefix) return primary();
  if (++depth_ > kMaxExprDepth)
    return lexer_.error(at, "the expression nests too deeply", code::kTooLarge);
  lexer_.take();
  LATHE_TRY(Operand operand, prefix());
  --depth_;
  if (at.is("-") && !operand.e) {
    operand.is_negative = !operand.is_negative;
    return operand;
  }
  LATHE_TRY(Expr x, typed(operand));
  if (at.is("-")) return Operand{-x, at};
  if (is_float(x->dtype) || (at.is("!") && x->dtype != DType::b8))
    return mismatch(at, fmt::format("'{}' of {}", at.text, dtype_name(x->dtype)));
  return Operand{unary(at.is("!") ? UnaryOp::logical_not : UnaryOp::bit_not, x), at};
}

Result<ExprParser::Operand> ExprParser::primary() {
  const Token token = lexer_.peek();
  if (lexer_.accept("(")) {
    LATHE_TRY(Operand inside, infix(0));
    LATHE_DO(lexer_.expect(")"));
    return inside;
  }
  switch (token.kind) {
    case TokenKind::integer:
      return Operand{{}, lexer_.take()};
    case TokenKind::real:
      return Operand{{}, lexer_.take(), true};
    case TokenKind::value:
      lexer_.take();
      return named_value(token);
    case TokenKind::name:
      return word();
    default:
      return lexer_.expected("an expression");
  }
}

Result<ExprParser::Operand> ExprParser::named_value(const Token& name) {
  const Named* meaning = find(name.text);
  if (!meaning) return undefined(name);
  Pool& pool = *kernel_.pool;
  if (const Var* var = std::get_if<Var>(meaning)) {
    const VarInfo& info = kernel_.vars[var->id];
    return Operand{pool.var(*var, info.dtype, info.lanes), name};
  }
  if (const Expr* def = std::get_if<Expr>(meaning)) return Operand{*def, name};
  if (std::holds_alternative<BufferRef>(*meaning))
    return mismatch(
        name, fmt::format("'%{}' is a buffer: read it with 'load %{}[...]'", name.text, name.text));
  RegArray array = std::get<RegArray>(*meaning);
  const RegInfo& info = kernel_.regs[array.id];
  std::vector<Expr> position;
  if (!info.shape.empty()) {
    LATHE_TRY(position, indices());
  }
  return Operand{pool.reg(array, std::move(position), info.dtype, info.lanes), name};
}

Result<ExprParser::Operand> ExprParser::word() {
  Token name = lexer_.take();
  Pool& pool = *kernel_.pool;
  if (name.is("true") || name.is("false")) return Operand{pool.boolean(name.is("true")), name};
  if (name.is("inf") || name.is("nan")) {
    name.real = name.is("inf") ? HUGE_VAL : NAN;
    return Operand{{}, name, true};
  }
  if (name.is("load")) {
    LATHE_TRY(Expr e, load());
    return Operand{e, name};
  }
  int reduce = find_name(kReduceNames, name.text);
  if (reduce >= 0 && lexer_.peek().is("[")) {
    LATHE_TRY(Expr e, reduction(static_cast<ReduceOp>(reduce)));
    return Operand{e, name};
  }
  return call(name);
}

Result<ExprParser::Operand> ExprParser::call(const Token& name) {
  if (name.is("bitcast") || name.is("splat") || name.is("ramp") || name.is("reduce_lanes"))
    return special_call(name);
  if (name.is("shuffle")) return shuffle_call(name);
  if (name.is("size")) return size_call(name);
  LATHE_DO(lexer_.expect("("));
  if (std::optional<DType> to = parse_dtype(name.text)) return cast_call(*to);
  std::vector<Operand> operands;
  do {
    LATHE_TRY(Operand operand, infix(0));
    operands.push_back(operand);
  } while (lexer_.accept(","));
  LATHE_DO(lexer_.expect(")"));
  return apply(name, std::move(operands));
}

// f64(0.1) is a literal of that dtype, not a conversion from f32.
Result<ExprParser::Operand> ExprParser::cast_call(DType to) {
  LATHE_TRY(Operand operand, infix(0));
  LATHE_DO(lexer_.expect(")"));
  bool is_own_literal = !operand.e && to != DType::b8 && (is_float(to) || !operand.is_real);
  LATHE_TRY(Expr x, is_own_literal ? typed_as(operand, to) : typed(operand));
  return Operand{cast(x, to), operand.token};
}

Result<ExprParser::Operand> ExprParser::apply(const Token& name, std::vector<Operand> operands) {
  auto expect_count = [&](size_t count) -> Status {
    if (operands.size() == count) return Ok{};
    return lexer_.error(
        name, fmt::format("'{}' takes {} operands, got {}", name.text, count, operands.size()),
        code::kOperandCount);
  };
  if (int op = find_name(kUnaryNames, name.text); op >= 0) {
    LATHE_DO(expect_count(1));
    LATHE_TRY(Expr x, typed(operands[0]));
    bool needs_float = !name.is("abs") && !name.is("is_nan");
    if (needs_float && !is_float(x->dtype))
      return mismatch(name,
                      fmt::format("'{}' is of floats, got {}", name.text, dtype_name(x->dtype)));
    return Operand{unary(static_cast<UnaryOp>(op), x), name};
  }
  for (BinaryOp op : {BinaryOp::min, BinaryOp::max, BinaryOp::pow}) {
    if (!name.is(binary_function(op))) continue;
    LATHE_DO(expect_count(2));
    return combine(op, name, operands[0], operands[1]);
  }
  if (name.is("fma")) {
    LATHE_DO(expect_count(3));
    LATHE_TRY(std::vector<Expr> x, unified(name, operands));
    if (!is_float(x[0]->dtype)) return mismatch(name, "'fma' is of floats");
    return Operand{fma(x[0], x[1], x[2]), name};
  }
  if (name.is("pair_dot")) {
    LATHE_DO(expect_count(3));
    LATHE_TRY(std::vector<Expr> pairs, unified(name, {operands[0], operands[1]}));
    LATHE_TRY(Expr sum, typed_as(operands[2], DType::f32));
    if (pairs[0]->dtype != DType::i32)
      return mismatch(
          name, fmt::format("'pair_dot' is of pairs in i32, got {}", dtype_name(pairs[0]->dtype)));
    if (sum->lanes != 1 && pairs[0]->lanes != 1 && sum->lanes != pairs[0]->lanes)
      return mismatch(name,
                      fmt::format("operands have {} and {} lanes", pairs[0]->lanes, sum->lanes));
    return Operand{pair_dot(pairs[0], pairs[1], sum), name};
  }
  if (name.is("select")) {
    LATHE_DO(expect_count(3));
    LATHE_TRY(Expr condition, typed_as(operands[0], DType::b8));
    LATHE_TRY(std::vector<Expr> x, unified(name, {operands[1], operands[2]}));
    if (condition->lanes != 1 && x[0]->lanes != 1 && condition->lanes != x[0]->lanes)
      return mismatch(name,
                      fmt::format("operands have {} and {} lanes", condition->lanes, x[0]->lanes));
    return Operand{select(condition, x[0], x[1]), name};
  }
  std::vector<std::string> known = {"min",   "max",  "pow",     "fma",      "select", "load",
                                    "splat", "ramp", "shuffle", "pair_dot", "size"};
  for (std::string_view unary_name : kUnaryNames) known.emplace_back(unary_name);
  std::string near = nearest(name.text, known);
  std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
  return lexer_.error(name, fmt::format("there is no function '{}'{}", name.text, hint),
                      code::kUnknownOp);
}

Result<ExprParser::Operand> ExprParser::size_call(const Token& name) {
  LATHE_DO(lexer_.expect("("));
  LATHE_TRY(const Dim size, parse_dim(lexer_));
  LATHE_DO(lexer_.expect(")"));
  return Operand{kernel_.pool->size(size), name};
}

// Calls whose arguments are not all expressions.
Result<ExprParser::Operand> ExprParser::special_call(const Token& name) {
  LATHE_DO(lexer_.expect("("));
  Expr result;
  if (name.is("reduce_lanes")) {
    LATHE_TRY(const ReduceOp op, reduce_op());
    LATHE_DO(lexer_.expect(","));
    LATHE_TRY(Expr x, parse());
    result = reduce_lanes(op, x);
  } else {
    LATHE_TRY(Expr x, parse());
    LATHE_DO(lexer_.expect(","));
    if (name.is("bitcast")) {
      LATHE_TRY(DType to, dtype());
      const int64_t bytes = dtype_bytes(x->dtype) * x->lanes, lanes = bytes / dtype_bytes(to);
      if (lanes * dtype_bytes(to) != bytes || lanes > kMaxLanes ||
          (to == DType::b8) != (x->dtype == DType::b8))
        return mismatch(name, fmt::format("bitcast keeps the bits, got {} to {}",
                                          type_name(x->dtype, x->lanes), dtype_name(to)));
      result = bitcast(x, to);
    } else if (x->lanes != 1) {
      return mismatch(name, fmt::format("'{}' is of a scalar, got {} lanes", name.text, x->lanes));
    } else if (name.is("splat")) {
      LATHE_TRY(int count, lanes());
      result = splat(x, count);
    } else {
      LATHE_TRY(int64_t stride, lexer_.integer());
      LATHE_DO(lexer_.expect(","));
      LATHE_TRY(int count, lanes());
      if (x->dtype != DType::i64) return mismatch(name, "a ramp is i64");
      result = kernel_.pool->ramp(x, stride, count);
    }
  }
  LATHE_DO(lexer_.expect(")"));
  return Operand{result, name};
}

Result<ExprParser::Operand> ExprParser::shuffle_call(const Token& name) {
  LATHE_DO(lexer_.expect("("));
  LATHE_TRY(Expr a, parse());
  LATHE_DO(lexer_.expect(","));
  LATHE_TRY(Expr b, parse());
  if (a->dtype != b->dtype || a->lanes != b->lanes || a->dtype == DType::b8 || a->lanes == 1)
    return mismatch(name,
                    fmt::format("'shuffle' is of two like vectors of numbers, got {} and {}",
                                type_name(a->dtype, a->lanes), type_name(b->dtype, b->lanes)));
  LATHE_DO(lexer_.expect(","));
  LATHE_DO(lexer_.expect("["));
  std::vector<int> picked;
  do {
    const Token at = lexer_.peek();
    LATHE_TRY(int64_t lane, lexer_.integer());
    if (lane < 0 || lane >= 2 * a->lanes || picked.size() == static_cast<size_t>(kMaxLanes))
      return lexer_.error(at,
                          fmt::format("expected at most {} lanes of 0 to {}, got {}", kMaxLanes,
                                      2 * a->lanes - 1, lane),
                          code::kBadValue);
    picked.push_back(static_cast<int>(lane));
  } while (lexer_.accept(","));
  LATHE_DO(lexer_.expect("]"));
  LATHE_DO(lexer_.expect(")"));
  return Operand{shuffle(a, b, std::move(picked)), name};
}

Result<Expr> ExprParser::load() {
  TypeName want;
  const Token at = lexer_.peek();
  bool has_type = at.kind == TokenKind::name;
  if (has_type) {
    LATHE_TRY(want, type());
  }
  LATHE_TRY(BufferRef buffer, reference<BufferRef>("a buffer"));
  DType stored = kernel_.buffers[buffer.id].dtype;
  if (has_type && want.dtype != stored)
    return mismatch(at, fmt::format("load of {} from a buffer of {}", dtype_name(want.dtype),
                                    dtype_name(stored)));
  LATHE_DO(lexer_.expect("["));
  LATHE_TRY(Expr index, parse_index());
  LATHE_DO(lexer_.expect("]"));
  if (index->lanes != 1 && index->lanes != want.lanes)
    return mismatch(at,
                    fmt::format("load of {} lanes at an index of {}", want.lanes, index->lanes));
  Expr mask;
  if (lexer_.accept("mask")) {
    LATHE_DO(lexer_.expect("("));
    LATHE_TRY(mask, parse_as({DType::b8, 0}));
    LATHE_DO(lexer_.expect(")"));
    if (mask->lanes != 1 && mask->lanes != want.lanes)
      return mismatch(at,
                      fmt::format("load of {} lanes with a mask of {}", want.lanes, mask->lanes));
  }
  return kernel_.pool->load(buffer, index, stored, want.lanes, mask);
}

Result<ReduceOp> ExprParser::reduce_op() {
  LATHE_TRY(Token word, lexer_.expect(TokenKind::name, "a reduction such as sum"));
  const int op = find_name(kReduceNames, word.text);
  if (op >= 0) return static_cast<ReduceOp>(op);
  return lexer_.error(word, fmt::format("there is no reduction '{}'", word.text), code::kUnknownOp);
}

Result<Expr> ExprParser::reduction(ReduceOp op) {
  std::vector<Var> vars;
  std::vector<Expr> extents;
  size_t mark = size();
  LATHE_DO(lexer_.expect("["));
  do {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a variable such as %k"));
    LATHE_DO(lexer_.expect("in"));
    const Token start = lexer_.peek();
    LATHE_TRY(int64_t low, lexer_.integer());
    if (low != 0) return lexer_.error(start, "a reduction runs from 0", code::kBadValue);
    LATHE_DO(lexer_.expect(".."));
    LATHE_TRY(Expr extent, parse_as({DType::i64, 1}));
    int64_t last = std::max<int64_t>(interval(extent, kernel_).max, 1) - 1;
    vars.push_back(
        kernel_.add_var({std::string(name.text), VarKind::loop, DType::i64, 1, 0, last}));
    extents.push_back(extent);
    LATHE_DO(define(name, vars.back()));
  } while (lexer_.accept(","));
  LATHE_DO(lexer_.expect("]"));
  LATHE_DO(lexer_.expect("("));
  LATHE_TRY(Expr body, parse());
  LATHE_DO(lexer_.expect(")"));
  leave(mark);
  return reduce(op, std::move(vars), std::move(extents), body);
}

}  // namespace lathe::loop
