// Prints kernels and expressions; the grammar stands in spelling.h.
//
// Expressions are graphs with shared parts. A part that a statement uses more than once, or that
// nests deeply, gets a `def` line in front of the statement, so that text grows with the graph and
// not with the tree it stands for.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/loop/pool.h"
#include "ir/loop/spelling.h"
#include "ir/loop/text.h"
#include "ir/support/lexer.h"

namespace lathe::loop {
namespace {

constexpr int kSharedSize = 3;      // nodes from which a shared part gets a def
constexpr int kSharedAccess = 6;    // the same for indices and loads, which read well in place
constexpr int kMaxHeight = 48;      // nesting from which any part gets one
constexpr int kMaxNodes = 1 << 16;  // of one statement, where defs cannot help (in reduce bodies)
constexpr int kMaxPrintedDepth = 500;  // likewise
constexpr size_t kLineWidth = 100;

// The shortest decimal that gives this value of the dtype.
std::string spell_float(double value, DType dtype) {
  if (dtype == DType::f64) return spell_real(value);
  std::string text = fmt::format("{}", static_cast<float>(value));
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// Constants and splats of them.
Expr constant_inside(Expr e) {
  if (const auto* same = std::get_if<Splat>(&e->kind)) e = same->x;
  return as_int(e) || as_float(e) ? e : Expr();
}

const Infix* find_infix(const Binary& n) {
  bool is_bool = n.a->dtype == DType::b8;
  for (const Infix& infix : kInfix)
    if (infix.op == n.op && (!infix.for_bools || is_bool)) return &infix;
  return nullptr;
}

// Which parts of one statement get a def, operands before users.
class Sharing {
 public:
  std::vector<Expr> find(const std::vector<Expr>& roots) {
    std::vector<Expr> order;
    std::set<const ExprNode*> seen;
    for (Expr root : roots) {
      ++uses_[root.node()];
      for_each(root, [&](Expr e) {
        if (seen.insert(e.node()).second) order.push_back(e);
      });
    }
    for (Expr e : order) {
      for (Expr kid : children(e)) ++uses_[kid.node()];
      if (const auto* reduce = std::get_if<Reduce>(&e->kind))
        for (Var var : reduce->vars) bound_.insert(var.id);
    }
    std::vector<Expr> defs;
    for (Expr e : order) {
      if (!wants_def(e)) continue;
      defs.push_back(e);
      size_[e.node()] = 1;
      height_[e.node()] = 1;
    }
    return defs;
  }

 private:
  bool wants_def(Expr e) {
    int size = 1;
    int height = 0;
    for (Expr kid : children(e)) {
      size = std::min(size + size_[kid.node()], kMaxNodes);
      height = std::max(height, height_[kid.node()]);
    }
    size_[e.node()] = size;
    height_[e.node()] = height + 1;
    if (!bound_.empty() && has_bound_vars(e)) return false;
    bool is_access = e->dtype == DType::i64 || std::holds_alternative<Load>(e->kind);
    int shared_size = is_access ? kSharedAccess : kSharedSize;
    return height >= kMaxHeight || (uses_[e.node()] > 1 && size >= shared_size);
  }

  // Variables of a reduce that are free in `e`: a def outside the reduce could not name them.
  bool has_bound_vars(Expr e) {
    std::set<uint32_t>& free = free_[e.node()];
    for (Expr kid : children(e)) free.insert(free_[kid.node()].begin(), free_[kid.node()].end());
    if (const auto* read = std::get_if<VarRead>(&e->kind); read && bound_.count(read->var.id))
      free.insert(read->var.id);
    if (const auto* reduce = std::get_if<Reduce>(&e->kind))
      for (Var var : reduce->vars) free.erase(var.id);
    return !free.empty();
  }

  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, int> size_;
  std::unordered_map<const ExprNode*, int> height_;
  std::unordered_map<const ExprNode*, std::set<uint32_t>> free_;
  std::set<uint32_t> bound_;
};

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {
    for (const VarInfo& var : kernel.vars) vars_.push_back(clean(var.name));
    // Dims first: sizes of buffers name them.
    for (uint32_t id = 0; id < kernel.vars.size(); ++id)
      if (kernel.vars[id].kind == VarKind::dim) name_var({id});
    for (const Buffer& buffer : kernel.buffers) buffers_.push_back(claim(buffer.name));
    for (const RegInfo& array : kernel.regs) regs_.push_back(clean(array.name));
  }

  std::string kernel() {
    header();
    indent_ = 1;
    for (uint32_t id = 0; id < kernel_.vars.size(); ++id) {
      const VarInfo& var = kernel_.vars[id];
      if (var.kind != VarKind::dim) continue;
      const std::string multiple =
          var.multiple == 1 ? "" : fmt::format(" multiple {}", var.multiple);
      line(fmt::format("dim %{} in [{}, {}]{}", vars_[id], var.min, var.max, multiple));
    }
    for (const auto& [name, range] : kernel_.symbols)
      line(fmt::format("size {} in {}", name, to_string(range)));
    block(kernel_.body);
    return out_ + "}\n";
  }

  std::string expression(Expr e) {
    expr(e, 0);
    return std::move(out_);
  }

 private:
  // --- names ---

  // Letters, digits and underscores, as the lexer wants them.
  static std::string clean(const std::string& name) {
    std::string result = name.empty() ? "v" : name;
    for (char& c : result)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    bool starts_with_digit = std::isdigit(static_cast<unsigned char>(result[0])) != 0;
    return starts_with_digit ? "v" + result : result;
  }
  // The name, or name_1, name_2, ...: the first that nothing in scope has.
  std::string claim(const std::string& hint) {
    std::string base = clean(hint);
    std::string name = base;
    for (int i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    scope_.push_back(name);
    return name;
  }
  const std::string& name_var(Var var) {
    vars_[var.id] = claim(kernel_.vars[var.id].name);
    return vars_[var.id];
  }
  void leave_scope(size_t mark) {
    for (; scope_.size() > mark; scope_.pop_back()) names_.erase(scope_.back());
  }
  std::string var_name(Var var) const { return var.id < vars_.size() ? vars_[var.id] : "?"; }

  // --- statements ---

  void line(const std::string& text) {
    out_.append(static_cast<size_t>(2 * indent_), ' ');
    out_ += text;
    out_ += '\n';
  }

  void header() {
    std::vector<std::string> params;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer& buffer = kernel_.buffers[i];
      std::string text =
          fmt::format("%{}: {}[{}]", buffers_[i], dtype_name(buffer.dtype), buffer.size.str());
      if (buffer.space == Space::scratch) text += " scratch";
      if (buffer.space == Space::stack) text += " stack";
      if (buffer.space == Space::shared) text += " shared";
      if (buffer.space == Space::global && buffer.is_written) text += " out";
      params.push_back(std::move(text));
    }
    std::string start = fmt::format("kernel @{}(", clean(kernel_.name));
    std::string end = kernel_.grain == 1 ? ") {" : fmt::format(") grain {} {{", kernel_.grain);
    std::string joined = fmt::format("{}", fmt::join(params, ", "));
    bool fits = start.size() + joined.size() + end.size() <= kLineWidth;
    out_ += start;
    out_ += fits ? joined : fmt::format("\n    {}", fmt::join(params, ",\n    "));
    out_ += end + "\n";
  }

  void block(const Block& statements) {
    size_t mark = scope_.size();
    for (const Stmt& stmt : statements)
      std::visit([this](const auto& node) { statement(node); }, stmt.kind);
    leave_scope(mark);
  }
  void nested(const Block& statements) {
    ++indent_;
    block(statements);
    --indent_;
  }

  // Lines that name the shared parts of a statement; they stay in scope for that statement only.
  void defs(const std::vector<Expr>& roots) {
    defs_.clear();
    budget_ = kMaxNodes;
    std::vector<Expr> present;
    for (Expr root : roots)
      if (root) present.push_back(root);
    for (Expr e : Sharing().find(present)) {
      std::string value = text(e);
      std::string name = std::to_string(num_defs_++);
      line(fmt::format("def %{} = {}", name, value));
      defs_[e.node()] = name;
    }
  }
  std::string text(Expr e, int precedence = 0) {
    std::string outer = std::move(out_);
    out_.clear();
    expr(e, precedence);
    std::swap(outer, out_);
    return outer;
  }
  // A value whose destination says its dtype and lanes.
  std::string value_text(Expr e) {
    if (Expr constant = constant_inside(e)) return literal(constant);
    return text(e);
  }
  std::string list(const std::vector<Expr>& items) {
    std::vector<std::string> texts;
    for (Expr item : items) texts.push_back(text(item));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  void statement(const For& loop) {
    defs({loop.lo, loop.hi});
    const std::string_view word = kLoopNames[static_cast<size_t>(loop.kind)];
    std::string range = fmt::format("{}..{}", text(loop.lo), text(loop.hi));
    size_t mark = scope_.size();
    std::string step = loop.step == 1 ? "" : fmt::format(" step {}", loop.step);
    line(fmt::format("{} %{} in {}{} {{", word, name_var(loop.var), range, step));
    nested(loop.body);
    leave_scope(mark);
    line("}");
  }
  void statement(const If& branch) {
    defs({branch.condition});
    line(fmt::format("if {} {{", text(branch.condition)));
    nested(branch.then_body);
    if (!branch.else_body.empty()) {
      line("} else {");
      nested(branch.else_body);
    }
    line("}");
  }
  void statement(const Let& let) {
    defs({let.value});
    std::string value = value_text(let.value);
    line(fmt::format("let %{}: {} = {}", name_var(let.var),
                     type_name(let.value->dtype, let.value->lanes), value));
  }
  void statement(const DeclareRegs& declare) {
    const RegInfo& info = kernel_.regs[declare.array.id];
    regs_[declare.array.id] = claim(info.name);
    std::string shape = info.shape.empty() ? "" : fmt::format("[{}]", fmt::join(info.shape, ", "));
    if (info.role != TileRole::none)
      return line(fmt::format("tiles %{}: {}({}, {}, {}, {}){}", regs_[declare.array.id],
                              kTileNames[static_cast<size_t>(info.role)], dtype_name(info.dtype),
                              info.tile.m, info.tile.n, info.tile.k, shape));
    line(fmt::format("regs %{}: {}{}", regs_[declare.array.id], type_name(info.dtype, info.lanes),
                     shape));
  }
  void statement(const SetReg& set) {
    std::vector<Expr> roots = set.indices;
    roots.push_back(set.value);
    defs(roots);
    line(fmt::format("{} = {}", element(set.array, set.indices), value_text(set.value)));
  }
  void statement(const Store& store) {
    defs({store.index, store.mask, store.value});
    std::string mask = store.mask ? fmt::format(" mask({})", text(store.mask)) : "";
    std::string how = store.nontemporal ? "nontemporal " : "";
    if (store.atomic)
      how += fmt::format("atomic {} ", kReduceNames[static_cast<size_t>(*store.atomic)]);
    line(fmt::format("store {}%{}[{}]{} = {}", how, buffers_[store.buffer.id], text(store.index),
                     mask, text(store.value)));
  }
  void statement(const Prefetch& prefetch) {
    defs({prefetch.index});
    std::string locality =
        prefetch.locality == 3 ? "" : fmt::format(" locality {}", prefetch.locality);
    line(fmt::format("prefetch %{}[{}]{}", buffers_[prefetch.buffer.id], text(prefetch.index),
                     locality));
  }
  void statement(const Barrier&) { line("barrier"); }
  void statement(const LoadTile& load) {
    std::vector<Expr> roots = load.tile.indices;
    roots.push_back(load.index);
    defs(roots);
    line(fmt::format("load_tile {}, %{}[{}] stride {}{}", tile(load.tile), buffers_[load.buffer.id],
                     text(load.index), load.stride, load.is_transposed ? " transposed" : ""));
  }
  void statement(const StoreTile& store) {
    std::vector<Expr> roots = store.tile.indices;
    roots.push_back(store.index);
    defs(roots);
    line(fmt::format("store_tile %{}[{}] stride {}, {}", buffers_[store.buffer.id],
                     text(store.index), store.stride, tile(store.tile)));
  }
  void statement(const Mma& mma) {
    std::vector<Expr> roots;
    for (const TileRef* part : {&mma.sum, &mma.left, &mma.right})
      roots.insert(roots.end(), part->indices.begin(), part->indices.end());
    defs(roots);
    line(fmt::format("mma {}, {}, {}", tile(mma.sum), tile(mma.left), tile(mma.right)));
  }
  std::string tile(const TileRef& tile) { return element(tile.array, tile.indices); }
  std::string element(RegArray array, const std::vector<Expr>& indices) {
    std::string shape = indices.empty() ? "" : fmt::format("[{}]", list(indices));
    return fmt::format("%{}{}", array.id < regs_.size() ? regs_[array.id] : "?", shape);
  }

  // --- expressions ---

  void expr(Expr e, int precedence) {
    if (auto found = defs_.find(e.node()); found != defs_.end()) {
      out_ += "%" + found->second;
    } else if (--budget_ < 0 || depth_ >= kMaxPrintedDepth) {
      out_ += "...";
    } else {
      ++depth_;
      std::visit([&](const auto& node) { write(e, node, precedence); }, e->kind);
      --depth_;
    }
  }
  // Constants beside an operand of known type need no type of their own.
  void operand(Expr e, int precedence, bool is_type_known) {
    Expr constant = is_type_known ? constant_inside(e) : Expr();
    if (constant) {
      out_ += literal(constant);
    } else {
      expr(e, precedence);
    }
  }
  void call(std::string_view name, const std::vector<Expr>& operands) {
    out_ += name;
    out_ += '(';
    bool is_type_known =
        std::any_of(operands.begin(), operands.end(), [](Expr e) { return !constant_inside(e); });
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i > 0) out_ += ", ";
      // With constants alone the first says the type.
      operand(operands[i], 0, is_type_known || i > 0);
    }
    out_ += ')';
  }
  static std::string literal(Expr constant) {
    if (const FloatConst* c = as_float(constant)) return spell_float(c->value, constant->dtype);
    int64_t value = as_int(constant)->value;
    if (constant->dtype == DType::b8) return value ? "true" : "false";
    return std::to_string(value);
  }

  void write(Expr e, const IntConst&, int) {
    bool is_plain = e->dtype == DType::i64 || e->dtype == DType::b8;
    out_ += is_plain ? literal(e) : fmt::format("{}({})", dtype_name(e->dtype), literal(e));
  }
  void write(Expr e, const FloatConst&, int) {
    bool is_plain = e->dtype == DType::f32;
    out_ += is_plain ? literal(e) : fmt::format("{}({})", dtype_name(e->dtype), literal(e));
  }
  void write(Expr, const VarRead& n, int) { out_ += "%" + var_name(n.var); }
  void write(Expr, const Unary& n, int precedence) {
    std::string_view name = kUnaryNames[static_cast<size_t>(n.op)];
    bool is_prefix = name.size() == 1;
    if (!is_prefix) return call(name, {n.x});
    bool needs_parens = precedence > kPrefixPrecedence;
    if (needs_parens) out_ += '(';
    out_ += name;
    expr(n.x, kPrefixPrecedence + 1);
    if (needs_parens) out_ += ')';
  }
  void write(Expr e, const Binary& n, int precedence) {
    // 4 <= x reads as x >= 4, and parses to the same node.
    bool is_order = n.op == BinaryOp::lt || n.op == BinaryOp::le;
    if (is_order && constant_inside(n.a) && !constant_inside(n.b))
      return write(e, Binary{n.op == BinaryOp::lt ? BinaryOp::gt : BinaryOp::ge, n.b, n.a},
                   precedence);
    const Infix* infix = find_infix(n);
    if (!infix) return call(binary_function(n.op), {n.a, n.b});
    bool needs_parens = infix->precedence < precedence;
    if (needs_parens) out_ += '(';
    bool is_compare = infix->precedence == kComparePrecedence;
    operand(n.a, infix->precedence + (is_compare ? 1 : 0), !constant_inside(n.b));
    // x + -3 reads as x - 3; both build the same node, for integers.
    const IntConst* c = as_int(constant_inside(n.b) ? constant_inside(n.b) : n.b);
    if (n.op == BinaryOp::add && c && c->value < 0 && c->value != INT64_MIN) {
      out_ += fmt::format(" - {}", -c->value);
    } else {
      bool is_tight =
          n.a->dtype == DType::i64 && (n.op == BinaryOp::mul || n.op == BinaryOp::floor_div);
      if (!is_tight && n.op != BinaryOp::floor_div) out_ += ' ';
      out_ += infix->mark;
      if (!is_tight) out_ += ' ';
      operand(n.b, infix->precedence + 1, true);
    }
    if (needs_parens) out_ += ')';
  }
  void write(Expr, const Fma& n, int) { call("fma", {n.a, n.b, n.c}); }
  void write(Expr, const PairDot& n, int) { call("pair_dot", {n.a, n.b, n.c}); }
  void write(Expr, const Select& n, int) {
    out_ += "select(";
    expr(n.condition, 0);
    out_ += ", ";
    operand(n.if_true, 0, !constant_inside(n.if_false));
    out_ += ", ";
    operand(n.if_false, 0, true);
    out_ += ')';
  }
  void write(Expr e, const Cast& n, int) {
    out_ += dtype_name(e->dtype);
    out_ += '(';
    expr(n.x, 0);
    out_ += ')';
  }
  void write(Expr e, const Bitcast& n, int) {
    out_ += "bitcast(";
    expr(n.x, 0);
    out_ += fmt::format(", {})", dtype_name(e->dtype));
  }
  void write(Expr e, const Load& n, int) {
    out_ += "load ";
    if (e->lanes > 1) out_ += type_name(e->dtype, e->lanes) + " ";
    out_ += fmt::format("%{}[", n.buffer.id < buffers_.size() ? buffers_[n.buffer.id] : "?");
    expr(n.index, 0);
    out_ += ']';
    if (!n.mask) return;
    out_ += " mask(";
    expr(n.mask, 0);
    out_ += ')';
  }
  void write(Expr, const RegRead& n, int) { out_ += element(n.array, n.indices); }
  void write(Expr e, const Splat& n, int) {
    out_ += "splat(";
    expr(n.x, 0);
    out_ += fmt::format(", {})", e->lanes);
  }
  void write(Expr e, const Ramp& n, int) {
    out_ += "ramp(";
    expr(n.base, 0);
    out_ += fmt::format(", {}, {})", n.stride, e->lanes);
  }
  void write(Expr, const Shuffle& n, int) {
    out_ += "shuffle(";
    expr(n.a, 0);
    out_ += ", ";
    expr(n.b, 0);
    out_ += fmt::format(", [{}])", fmt::join(n.lanes, ", "));
  }
  void write(Expr, const ReduceLanes& n, int) {
    out_ += fmt::format("reduce_lanes({}, ", kReduceNames[static_cast<size_t>(n.op)]);
    expr(n.x, 0);
    out_ += ')';
  }
  void write(Expr, const Reduce& n, int) {
    size_t mark = scope_.size();
    std::vector<std::string> ranges;
    for (size_t i = 0; i < n.vars.size(); ++i) {
      std::string extent = text(n.extents[i]);
      ranges.push_back(fmt::format("%{} in 0..{}", name_var(n.vars[i]), extent));
    }
    out_ +=
        fmt::format("{}[{}](", kReduceNames[static_cast<size_t>(n.op)], fmt::join(ranges, ", "));
    expr(n.body, 0);
    out_ += ')';
    leave_scope(mark);
  }

  void write(Expr, const Size& n, int) { out_ += fmt::format("size({})", n.value.str()); }

  const Kernel& kernel_;
  std::string out_;
  int indent_ = 0;
  int budget_ = kMaxNodes;
  int depth_ = 0;
  int num_defs_ = 0;
  std::vector<std::string> vars_;  // by id, as last bound
  std::vector<std::string> buffers_;
  std::vector<std::string> regs_;
  std::set<std::string> names_;     // taken in the current scope
  std::vector<std::string> scope_;  // the same, in order
  std::unordered_map<const ExprNode*, std::string> defs_;
};

}  // namespace

std::string type_name(DType dtype, int lanes) {
  std::string name(dtype_name(dtype));
  return lanes == 1 ? name : fmt::format("{}x{}", name, lanes);
}

std::string print(const Kernel& kernel) { return Printer(kernel).kernel(); }

std::string print(Expr e, const Kernel& kernel) {
  return e ? Printer(kernel).expression(e) : "none";
}

}  // namespace lathe::loop
