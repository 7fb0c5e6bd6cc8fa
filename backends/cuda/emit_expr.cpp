// Expressions as text, and the loops over a thread's lanes.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "backends/cuda/kernel_emitter.h"

namespace lathe::cuda {
namespace {

constexpr size_t kLongText = 64;  // longer expressions get a name
constexpr int kUnary = 15, kProduct = 14, kSum = 13, kShift = 12, kCompare = 10, kEqual = 9;
constexpr int kAnd = 8, kXor = 7, kOr = 6, kLogicalAnd = 5, kLogicalOr = 4, kChoice = 3;

// Names without which the text is as short: constants, variables, registers, splats of these.
bool is_trivial(Expr e) {
  return std::holds_alternative<loop::IntConst>(e->kind) ||
         std::holds_alternative<loop::FloatConst>(e->kind) ||
         std::holds_alternative<loop::VarRead>(e->kind) ||
         std::holds_alternative<loop::RegRead>(e->kind) ||
         std::holds_alternative<loop::Splat>(e->kind) ||
         std::holds_alternative<loop::Ramp>(e->kind);
}

DType computed_in(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

struct Function {
  const char* f32;
  const char* f64;
};
Function float_function(UnaryOp op) {
  switch (op) {
    case UnaryOp::abs:
      return {"fabsf", "fabs"};
    case UnaryOp::sqrt:
      return {"sqrtf", "sqrt"};
    case UnaryOp::rsqrt:
      return {"rsqrtf", "rsqrt"};
    case UnaryOp::exp:
      return {"expf", "exp"};
    case UnaryOp::expm1:
      return {"expm1f", "expm1"};
    case UnaryOp::log:
      return {"logf", "log"};
    case UnaryOp::log1p:
      return {"log1pf", "log1p"};
    case UnaryOp::sin:
      return {"sinf", "sin"};
    case UnaryOp::cos:
      return {"cosf", "cos"};
    case UnaryOp::tanh:
      return {"tanhf", "tanh"};
    case UnaryOp::erf:
      return {"erff", "erf"};
    case UnaryOp::floor:
      return {"floorf", "floor"};
    case UnaryOp::ceil:
      return {"ceilf", "ceil"};
    case UnaryOp::trunc:
      return {"truncf", "trunc"};
    case UnaryOp::round_even:
      return {"rintf", "rint"};
    case UnaryOp::is_nan:
      return {"isnan", "isnan"};
    case UnaryOp::neg:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
      break;
  }
  return {"", ""};
}

}  // namespace

// ---- what is named, and where -------------------------------------------------------------------

// Operands before users, each once, without what has a text.
std::vector<Expr> KernelEmitter::undefined_under(const std::vector<Expr>& roots) const {
  std::vector<Expr> order;
  std::unordered_set<const loop::ExprNode*> seen;
  std::vector<std::pair<Expr, bool>> stack;
  for (size_t i = roots.size(); i-- > 0;) stack.push_back({roots[i], false});
  while (!stack.empty()) {
    auto [e, is_ready] = stack.back();
    stack.pop_back();
    if (is_ready) {
      order.push_back(e);
      continue;
    }
    if (texts_.count(e.node()) != 0 || !seen.insert(e.node()).second) continue;
    stack.push_back({e, true});
    std::vector<Expr> kids = loop::children(e);
    for (size_t i = kids.size(); i-- > 0;) stack.push_back({kids[i], false});
  }
  return order;
}

void KernelEmitter::count_uses(const std::vector<Expr>& roots) {
  for (Expr e : undefined_under(roots))
    for (Expr kid : loop::children(e)) ++uses_[kid.node()];
  for (Expr root : roots) ++uses_[root.node()];
}

void KernelEmitter::define_scalars(const std::vector<Expr>& roots) {
  for (Expr e : undefined_under(roots)) {
    if (e->lanes > 1) continue;
    if (std::holds_alternative<loop::ReduceLanes>(e->kind))
      emit_reduction(e);
    else
      define(e, nullptr);
  }
}

void KernelEmitter::define(Expr e, std::vector<const loop::ExprNode*>* made) {
  Text result = make_text(e);
  bool is_shared = uses_[e.node()] > 1 && !is_trivial(e);
  if (is_shared || (result.code.size() > kLongText && !is_trivial(e))) {
    std::string name = names_.make("t");
    line(fmt::format("const {} {} = {};", ctype(e), name, result.code));
    result = {name, Text::kPrimary, is_wide(e)};
  }
  texts_[e.node()] = std::move(result);
  if (made) made->push_back(e.node());
}

void KernelEmitter::open_lanes(const std::vector<Expr>& roots,
                               std::vector<const loop::ExprNode*>& made) {
  emit_choices(roots, true, made);
  for (Expr e : undefined_under(roots))
    if (emit_pack(e)) made.push_back(e.node());
  if (shape_.lanes_a_thread > 1) {
    line("#pragma unroll");
    line(fmt::format("for (int e = 0; e < {}; ++e) {{", shape_.lanes_a_thread));
    ++depth_;
  }
  emit_choices(roots, false, made);
  for (Expr e : undefined_under(roots)) define(e, &made);
}

void KernelEmitter::close_lanes(const std::vector<const loop::ExprNode*>& made) {
  for (const loop::ExprNode* node : made) texts_.erase(node);
  if (shape_.lanes_a_thread == 1) return;
  --depth_;
  line("}");
}

void KernelEmitter::emit_reduction(Expr e) {
  const auto& node = std::get<loop::ReduceLanes>(e->kind);
  struct Operation {
    const char* name;
    const char* step;
  };
  Operation operation{};
  switch (node.op) {
    case loop::ReduceOp::sum:
      operation = {"Sum", "{0} + {1}"};
      break;
    case loop::ReduceOp::prod:
      operation = {"Prod", "{0} * {1}"};
      break;
    case loop::ReduceOp::max:
      operation = {"Max", "most({0}, {1})"};
      break;
    case loop::ReduceOp::min:
      operation = {"Min", "least({0}, {1})"};
      break;
    case loop::ReduceOp::any:
      operation = {"Any", "{0} || {1}"};
      break;
    case loop::ReduceOp::all:
      operation = {"All", "{0} && {1}"};
      break;
    case loop::ReduceOp::argmax:
    case loop::ReduceOp::argmin:
      return fail("it reduces lanes to a position");
  }
  DType dtype = computed_in(e->dtype);
  std::string type = variable_type(dtype, true), part = names_.make("part");
  double start = loop::identity(node.op, dtype);
  line(fmt::format("{} {} = {};", type, part,
                   is_float(dtype) ? literal(start, dtype) : code(e->pool->number(start, dtype))));
  for_each_lane({node.x}, [&] {
    // The argument is a value of the reduction's type, so that templates agree.
    std::string x = fmt::format("{}({})", type, code(node.x));
    line(fmt::format("{} = {};", part, fmt::format(fmt::runtime(operation.step), part, x)));
  });
  std::string total = part;
  if (shape_.threads > 1)
    total = fmt::format("reduce_group<{}, {}>({})", operation.name, shape_.threads, part);
  if (is_half(e->dtype)) total = fmt::format("{}({})", lathe::cuda::type_name(e->dtype), total);
  std::string name = names_.make("total");
  line(fmt::format("const {} {} = {};", ctype(e), name, total));
  texts_[e.node()] = {name, Text::kPrimary, is_wide(e)};
}

// ---- text ---------------------------------------------------------------------------------------

bool KernelEmitter::fits_int(Expr e) {
  const loop::Interval range = ranges_.of(e);
  return range.min >= INT32_MIN && range.max <= INT32_MAX;
}

std::string KernelEmitter::variable_type(DType dtype, bool is_wide) {
  return dtype == DType::i64 && !is_wide ? "int" : type_name(dtype);
}

Text KernelEmitter::text(Expr e) {
  auto found = texts_.find(e.node());
  return found != texts_.end() ? found->second : make_text(e);
}

std::string KernelEmitter::code(Expr e, int at_least) {
  Text result = text(e);
  return result.precedence < at_least ? "(" + result.code + ")" : result.code;
}

// A text of the type that the expression's own has: an index that fits is an int.
Text KernelEmitter::finish(Expr e, Text computed) {
  if (e->dtype != DType::i64 || computed.is_wide == is_wide(e)) return computed;
  return {fmt::format("{}({})", is_wide(e) ? "i64" : "int", computed.code), Text::kPrimary,
          is_wide(e)};
}

Text KernelEmitter::make_text(Expr e) {
  if (auto* n = std::get_if<loop::IntConst>(&e->kind)) {
    std::string code = literal(n->value, e->dtype, is_wide(e));
    return {code, n->value < 0 ? kUnary : Text::kPrimary, is_wide(e)};
  }
  if (auto* n = std::get_if<loop::FloatConst>(&e->kind)) {
    std::string code = literal(n->value, e->dtype);
    return {code, code[0] == '-' ? kUnary : Text::kPrimary};
  }
  if (auto* n = std::get_if<loop::VarRead>(&e->kind)) {
    const std::string& name = vars_[n->var.id];
    return {e->lanes > 1 ? at_lane(name) : name, Text::kPrimary, is_wide(e)};
  }
  if (auto* n = std::get_if<loop::RegRead>(&e->kind)) {
    std::string place = regs_[n->array.id] + index_list(n->indices);
    return {e->lanes > 1 ? at_lane(place) : place, Text::kPrimary, e->dtype == DType::i64};
  }
  if (auto* n = std::get_if<loop::Unary>(&e->kind)) return finish(e, unary_text(e, *n));
  if (auto* n = std::get_if<loop::Binary>(&e->kind)) return finish(e, binary_text(e, *n));
  if (auto* n = std::get_if<loop::Fma>(&e->kind)) {
    if (!is_float(e->dtype))
      return finish(e, {fmt::format("{} * {} + {}", code(n->a, kProduct), code(n->b, kProduct + 1),
                                    code(n->c, kSum + 1)),
                        kSum, is_wide(e)});
    DType as = computed_in(e->dtype);
    std::string call = fmt::format("{}({}, {}, {})", as == DType::f64 ? "fma" : "fmaf",
                                   operand(n->a, as), operand(n->b, as), operand(n->c, as));
    return {is_half(e->dtype) ? fmt::format("{}({})", type_name(e->dtype), call) : call};
  }
  if (auto* n = std::get_if<loop::Select>(&e->kind)) {
    Text a = text(n->if_true), b = text(n->if_false);
    return finish(e, {fmt::format("{} ? {} : {}", code(n->condition, kLogicalOr),
                                  code(n->if_true, kLogicalOr), code(n->if_false, kChoice)),
                      kChoice, a.is_wide || b.is_wide});
  }
  if (auto* n = std::get_if<loop::Cast>(&e->kind)) return finish(e, cast_text(e, n->x));
  if (auto* n = std::get_if<loop::Bitcast>(&e->kind); n != nullptr && n->x->lanes == e->lanes) {
    std::string x = fmt::format("{}({})", type_name(n->x->dtype), code(n->x));
    return finish(e, {fmt::format("bits_of<{}>({})", type_name(e->dtype), x), Text::kPrimary,
                      e->dtype == DType::i64});
  }
  if (auto* n = std::get_if<loop::Load>(&e->kind)) return finish(e, load_text(e, *n));
  if (auto* n = std::get_if<loop::Splat>(&e->kind)) return text(n->x);
  if (auto* n = std::get_if<loop::Ramp>(&e->kind)) {
    std::string lane = shape_.threads > 1 ? "first" : "";
    if (shape_.lanes_a_thread > 1) {
      std::string step = is_blocked_ ? "e" : fmt::format("{} * e", shape_.threads);
      lane += (lane.empty() ? "" : " + ") + step;
    }
    if (lane.empty()) lane = "0";
    if (n->stride != 1) lane = fmt::format("({}) * {}", lane, n->stride);
    bool is_from_zero = loop::as_int(n->base) && loop::as_int(n->base)->value == 0;
    if (!is_from_zero) lane = fmt::format("{} + {}", code(n->base, kSum), lane);
    return finish(e, {lane, kSum, text(n->base).is_wide});
  }
  fail(std::holds_alternative<loop::Reduce>(e->kind)    ? "it still has a reduction"
       : std::holds_alternative<loop::PairDot>(e->kind) ? "the target has no dot of pairs"
                                                        : "its threads do not exchange lanes");
  return {"0"};
}

std::string KernelEmitter::operand(Expr e, DType as) {
  if (e->dtype == as) return code(e);
  return fmt::format("{}({})", type_name(as), code(e));
}

Text KernelEmitter::unary_text(Expr e, const loop::Unary& node) {
  const DType dtype = node.x->dtype;
  if (node.op == UnaryOp::logical_not || (node.op == UnaryOp::bit_not && dtype == DType::b8))
    return {"!" + code(node.x, kUnary), kUnary};
  if (is_float(dtype) && node.op != UnaryOp::neg) {
    const Function function = float_function(node.op);
    const char* name = dtype == DType::f64 ? function.f64 : function.f32;
    if (node.op == UnaryOp::exp && dtype != DType::f64 && makes_halves_) name = "near_exp";
    std::string call = fmt::format("{}({})", name, operand(node.x, computed_in(dtype)));
    return {is_half(e->dtype) ? fmt::format("{}({})", type_name(e->dtype), call) : call};
  }
  if (node.op == UnaryOp::neg || node.op == UnaryOp::bit_not) {
    std::string value = (node.op == UnaryOp::neg ? "-" : "~") + code(node.x, kUnary + 1);
    bool is_small = dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16;
    if (is_small || is_half(dtype)) return {fmt::format("{}({})", type_name(dtype), value)};
    return {value, kUnary, text(node.x).is_wide};
  }
  if (node.op == UnaryOp::abs)
    return {fmt::format("absolute({})", code(node.x)), Text::kPrimary, text(node.x).is_wide};
  // Rounding an integer changes nothing, and none is NaN.
  if (node.op == UnaryOp::is_nan) return {"false"};
  return text(node.x);
}

Text KernelEmitter::infix(Expr e, const loop::Binary& node, const char* mark, int precedence) {
  std::string a = code(node.a, precedence), b = code(node.b, precedence + 1);
  bool wide_operands = text(node.a).is_wide || text(node.b).is_wide;
  bool is_compare = e->dtype == DType::b8;
  // The sum of two ints that may exceed one.
  if (!is_compare && is_wide(e) && !wide_operands) a = fmt::format("i64({})", code(node.a));
  return {fmt::format("{} {} {}", a, mark, b), precedence,
          !is_compare && (wide_operands || is_wide(e))};
}

Text KernelEmitter::binary_text(Expr e, const loop::Binary& node) {
  struct Mark {
    const char* mark;
    int precedence;
  };
  Mark compare{};
  if (node.op == BinaryOp::eq) compare = {"==", kEqual};
  if (node.op == BinaryOp::ne) compare = {"!=", kEqual};
  if (node.op == BinaryOp::lt) compare = {"<", kCompare};
  if (node.op == BinaryOp::le) compare = {"<=", kCompare};
  if (compare.mark) return infix(e, node, compare.mark, compare.precedence);
  const DType dtype = e->dtype;
  if (!is_float(dtype)) return integer_binary(e, node);

  DType as = computed_in(dtype);
  auto call = [&](const char* name) {
    return Text{fmt::format("{}({}, {})", name, operand(node.a, as), operand(node.b, as))};
  };
  Text result;
  switch (node.op) {
    case BinaryOp::add:
      result = infix(e, node, "+", kSum);
      break;
    case BinaryOp::sub:
      result = infix(e, node, "-", kSum);
      break;
    case BinaryOp::mul:
      result = infix(e, node, "*", kProduct);
      break;
    case BinaryOp::div:
      result = infix(e, node, "/", kProduct);
      break;
    case BinaryOp::min:
      result = call("least");
      break;
    case BinaryOp::max:
      result = call("most");
      break;
    case BinaryOp::pow:
      result = call(as == DType::f64 ? "pow" : "powf");
      break;
    default:
      fail("it has an integer operation on floats");
  }
  if (is_half(dtype)) return {fmt::format("{}({})", type_name(dtype), result.code)};
  return result;
}

Text KernelEmitter::integer_binary(Expr e, const loop::Binary& node) {
  const DType dtype = e->dtype;
  const bool is_bool = dtype == DType::b8, is_index = dtype == DType::i64;
  bool wide = is_index && (is_wide(e) || text(node.a).is_wide || text(node.b).is_wide);
  std::string type = variable_type(dtype, wide);
  auto call = [&](const char* name) {
    return Text{fmt::format("{0}({1}({2}), {1}({3}))", name, type, code(node.a), code(node.b)),
                Text::kPrimary, wide};
  };
  // What leaves 32 bits wraps; narrower results are cut where they are made.
  auto wrapped = [&](const char* mark, int precedence) {
    if (is_index) return infix(e, node, mark, precedence);
    if (dtype == DType::i32)
      return Text{
          fmt::format("int(unsigned({}) {} unsigned({}))", code(node.a), mark, code(node.b))};
    return Text{fmt::format("{}({})", type, infix(e, node, mark, precedence).code)};
  };
  const loop::IntConst* divisor = loop::as_int(node.b);
  if (auto* splat = std::get_if<loop::Splat>(&node.b->kind)) divisor = loop::as_int(splat->x);
  bool divides_plainly = divisor && divisor->value > 0 && ranges_.of(node.a).min >= 0;
  switch (node.op) {
    case BinaryOp::add:
      return is_bool ? infix(e, node, "||", kLogicalOr) : wrapped("+", kSum);
    case BinaryOp::sub:
      return is_bool ? infix(e, node, "!=", kEqual) : wrapped("-", kSum);
    case BinaryOp::mul:
      return is_bool ? infix(e, node, "&&", kLogicalAnd) : wrapped("*", kProduct);
    case BinaryOp::div:
      return divides_plainly ? wrapped("/", kProduct) : call("quotient");
    case BinaryOp::floor_div:
      return divides_plainly && is_index ? infix(e, node, "/", kProduct) : call("floor_div");
    case BinaryOp::mod:
      return divides_plainly && is_index ? infix(e, node, "%", kProduct) : call("floor_mod");
    case BinaryOp::min:
      return is_bool ? infix(e, node, "&&", kLogicalAnd) : call("least");
    case BinaryOp::max:
      return is_bool ? infix(e, node, "||", kLogicalOr) : call("most");
    case BinaryOp::pow:
      return call("int_pow");
    case BinaryOp::bit_and:
      return is_bool ? infix(e, node, "&&", kLogicalAnd) : wrapped("&", kAnd);
    case BinaryOp::bit_or:
      return is_bool ? infix(e, node, "||", kLogicalOr) : wrapped("|", kOr);
    case BinaryOp::bit_xor:
      return is_bool ? infix(e, node, "!=", kEqual) : wrapped("^", kXor);
    case BinaryOp::shift_left:
      return wrapped("<<", kShift);
    case BinaryOp::shift_right:
      return Text{fmt::format("{}({} >> {})", type, code(node.a, kShift), code(node.b, kShift + 1)),
                  Text::kPrimary, wide};
    default:
      break;
  }
  fail("it has an operation that integers lack");
  return {"0"};
}

Text KernelEmitter::cast_text(Expr e, Expr from) {
  const DType to = e->dtype;
  if (to == from->dtype) return text(from);
  std::string x = code(from);
  if (to == DType::b8) return {fmt::format("{} != 0", code(from, kEqual + 1)), kEqual};
  const auto* node = std::get_if<loop::Binary>(&from->kind);
  if (is_half(to) && node && node->op == BinaryOp::div && from->dtype == DType::f32) {
    const bool is_shared = std::holds_alternative<loop::Splat>(node->b->kind);
    const std::string by = is_shared ? fmt::format("Divisor({})", code(node->b)) : code(node->b);
    return {fmt::format("{}(near_quotient({}, {}))", type_name(to), code(node->a), by)};
  }
  // Halves are made from floats, and become them.
  if (is_half(from->dtype) && to != DType::f32) x = fmt::format("float({})", x);
  if (is_half(to) && from->dtype != DType::f32) x = fmt::format("float({})", x);
  bool is_small = to == DType::i8 || to == DType::u8 || to == DType::i16;
  if (is_small && is_float(from->dtype)) x = fmt::format("int({})", x);
  // An integer that fits keeps being an int.
  if (to == DType::i64 && !is_float(from->dtype) && fits_int(e))
    return {fmt::format("int({})", x), Text::kPrimary, false};
  return {fmt::format("{}({})", type_name(to), x), Text::kPrimary, to == DType::i64};
}

}  // namespace lathe::cuda
