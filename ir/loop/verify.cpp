// The verifier. What it checks:
//
// Tables
// - symbols and dims that sizes name exist; a dim's multiple is a power of two
// - buffers have a size that fits the address space, variables and registers 1 to 2048 lanes, a
//   power of two; register arrays have positive extents and at most 2^16 elements; the grain is
//   positive; matrix tiles have a lane, dims of up to 256, and sums that are f32
// Expressions
// - belong to the kernel's pool; ids name existing variables, buffers and register arrays
// - operands have the dtype and lanes of their node: arithmetic and select keep both, comparisons
//   and is_nan give bool, conditions and masks are bool, bit operations are of integers, functions
//   of floats, floor_div and mod of integers; bitcast keeps the bits; pair_dot is of i32 and f32
// - loads have their buffer's dtype; an index is i64, scalar or with the lanes of what it moves
// - variables are read where they are in scope, with the dtype and lanes of the table; register
//   arrays likewise, with as many scalar i64 indices as they have dims
// Statements
// - loops have scalar i64 bounds, a positive step and a variable that no loop around them binds;
//   when the bounds are constants the variable's range in the table covers them
// - a parallel loop stands in no other loop, a thread loop last in a parallel one, behind lets; a
//   barrier where all threads go; shared buffers where threads are, scratch and stack ones
//   elsewhere
// - matrix tiles are read and written by their own statements, but for scalars that fill them;
//   those of one mma are of one shape, left and right of one dtype
// - stores go to scratch, stack or written buffers and have their dtype; atomic ones combine
//   scalars of 32 or 64 bits in buffers of the caller, by sum, prod, max or min
// - let variables have the dtype and lanes of their value
// Only when scheduled
// - the body is one parallel loop; no reduce expressions, no sizes but dims; unroll bounds are
//   constants; register indices use no variables but those of unroll loops
// Not checked: that indices are within bounds (the evaluator does), that parallel iterations are
// independent.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/loop/pool.h"
#include "ir/loop/scalar.h"
#include "ir/loop/spelling.h"
#include "ir/loop/text.h"
#include "ir/loop/threads.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

constexpr int kMaxLanes = 2048;  // threads of a GPU's block, each with a few lanes
constexpr int64_t kMaxRegElements = 1 << 16;
constexpr int kMaxTileDim = 256;
constexpr int64_t kMaxTileStride = INT32_MAX;
constexpr int kMaxVerifiedDepth = 200;
constexpr size_t kMaxQuoted = 160;

std::string type_of(Expr e) { return type_name(e->dtype, e->lanes); }

class Verifier {
 public:
  Verifier(const Kernel& kernel, bool is_scheduled)
      : kernel_(kernel), is_scheduled_(is_scheduled) {}

  Status run() {
    LATHE_DO(tables());
    var_uses_.resize(kernel_.vars.size(), Use::none);
    reg_in_scope_.resize(kernel_.regs.size());
    for (size_t i = 0; i < kernel_.vars.size(); ++i)
      if (kernel_.vars[i].kind == VarKind::dim) var_uses_[i] = Use::outer;
    if (is_scheduled_) {
      const For* loop =
          kernel_.body.size() == 1 ? std::get_if<For>(&kernel_.body[0].kind) : nullptr;
      if (!loop || loop->kind != LoopKind::parallel)
        return error(code::kBadForm, "expected one parallel loop as its body");
    }
    LATHE_DO(block(kernel_.body));
    return verify_threads(kernel_);
  }

 private:
  // How a variable is bound where we are.
  enum class Use : uint8_t { none, outer, unroll };

  Diag error(const char* code, std::string message, Expr in = {}) const {
    if (in) {
      std::string text = print(in, kernel_);
      if (text.size() > kMaxQuoted) text = text.substr(0, kMaxQuoted) + "...";
      message += fmt::format(", in '{}'", text);
    }
    Loc loc = kernel_.origins.empty() ? Loc::unknown() : kernel_.origins.front();
    return Diag{code, loc, fmt::format("kernel '{}': {}", kernel_.name, message)};
  }

  // --- tables ---

  static bool is_lane_count(int lanes) {
    return lanes >= 1 && lanes <= kMaxLanes && (lanes & (lanes - 1)) == 0;
  }

  Status tables() const {
    if (!kernel_.pool) return error(code::kBadForm, "it has no expression pool");
    if (kernel_.grain < 1)
      return error(code::kBadValue, fmt::format("grain must be positive, got {}", kernel_.grain));
    for (const Buffer& buffer : kernel_.buffers) LATHE_DO(size(buffer));
    for (const VarInfo& var : kernel_.vars)
      if (var.multiple < 1 || (var.multiple & (var.multiple - 1)) != 0 ||
          (var.multiple > 1 && var.kind != VarKind::dim))
        return error(code::kBadValue, fmt::format("'{}' cannot be a multiple of {}: expected a "
                                                  "power of two, of a dim",
                                                  var.name, var.multiple));
    for (const VarInfo& var : kernel_.vars)
      if (!is_lane_count(var.lanes))
        return error(code::kBadValue, fmt::format("'{}' cannot have {} lanes: expected a power "
                                                  "of two up to {}",
                                                  var.name, var.lanes, kMaxLanes));
    for (const RegInfo& info : kernel_.regs) LATHE_DO(registers(info));
    return Ok{};
  }

  Status size(const Buffer& buffer) const {
    const Dim& size = buffer.size;
    if (size.is_const() &&
        (size.value() < 0 || size.value() > INT64_MAX / dtype_bytes(buffer.dtype)))
      return error(code::kTooLarge,
                   fmt::format("buffer '{}' cannot have {} elements", buffer.name, size.value()));
    LATHE_DO(symbols(size, fmt::format("the size of buffer '{}'", buffer.name)));
    const bool is_dim = size.is_const() || !size.symbol_name().empty();
    if (is_dim || !is_scheduled_) return Ok{};
    return error(code::kBadForm,
                 fmt::format("the size of buffer '{}' is no dim: {}", buffer.name, size.str()));
  }

  // Every symbol is one of the kernel's, or names a dim.
  Status symbols(const Dim& size, const std::string& what) const {
    std::vector<std::string> names;
    size.collect_symbols(names);
    for (const std::string& name : names) {
      const bool is_dim = std::any_of(
          kernel_.vars.begin(), kernel_.vars.end(),
          [&](const VarInfo& info) { return info.kind == VarKind::dim && info.name == name; });
      if (!is_dim && kernel_.symbols.count(name) == 0)
        return error(code::kUndefinedValue,
                     fmt::format("{} is {}, and the kernel has no '{}'", what, size.str(), name));
    }
    return Ok{};
  }

  Status registers(const RegInfo& info) const {
    if (!is_lane_count(info.lanes))
      return error(code::kBadValue, fmt::format("registers '{}' cannot have {} lanes: expected a "
                                                "power of two up to {}",
                                                info.name, info.lanes, kMaxLanes));
    int64_t elements = 1;
    if (info.role != TileRole::none) {
      LATHE_DO(tile(info));
      elements = info.width();
    }
    for (int64_t extent : info.shape) {
      if (extent < 1 || extent > kMaxRegElements || elements * extent > kMaxRegElements)
        return error(code::kTooLarge,
                     fmt::format("registers '{}' of shape [{}] must have positive extents and at "
                                 "most {} elements",
                                 info.name, fmt::join(info.shape, ", "), kMaxRegElements));
      elements *= extent;
    }
    return Ok{};
  }

  Status tile(const RegInfo& info) const {
    const auto is_dim = [](int dim) { return dim >= 1 && dim <= kMaxTileDim; };
    const TileShape& shape = info.tile;
    if (!is_dim(shape.m) || !is_dim(shape.n) || !is_dim(shape.k))
      return error(code::kBadValue,
                   fmt::format("tiles '{}' of a product {} x {} x {} must have dims from 1 to {}",
                               info.name, shape.m, shape.n, shape.k, kMaxTileDim));
    if (info.lanes != 1 || !is_float(info.dtype) ||
        (info.role == TileRole::sum && info.dtype != DType::f32))
      return error(code::kDtypeMismatch,
                   fmt::format("tiles '{}' cannot be of {}: expected a float, and f32 for sums",
                               info.name, type_name(info.dtype, info.lanes)));
    return Ok{};
  }

  // --- expressions ---

  // Every part: its own rule once, its scope at every use.
  Status expression(Expr root) {
    if (!root) return error(code::kBadForm, "an expression is missing");
    std::vector<Expr> parts;
    for_each(root, [&](Expr e) { parts.push_back(e); });
    std::unordered_set<uint32_t> bound;
    for (Expr e : parts)
      if (const auto* reduce = std::get_if<Reduce>(&e->kind))
        for (Var var : reduce->vars) bound.insert(var.id);
    for (Expr e : parts) {
      if (checked_.insert(e.node()).second) LATHE_DO(node(e));
      if (const auto* read = std::get_if<VarRead>(&e->kind)) {
        bool is_known = var_uses_[read->var.id] != Use::none || bound.count(read->var.id) != 0;
        if (!is_known)
          return error(code::kUndefinedValue,
                       fmt::format("'%{}' is not in scope", kernel_.vars[read->var.id].name), root);
      }
      if (const auto* read = std::get_if<RegRead>(&e->kind))
        LATHE_DO(reg_element(read->array, read->indices));
    }
    return Ok{};
  }

  Status node(Expr e) const {
    if (e->pool != kernel_.pool.get())
      return error(code::kBadForm, "an expression belongs to another kernel's pool");
    if (!is_lane_count(e->lanes))
      return error(code::kBadValue,
                   fmt::format("{} lanes are not a power of two up to {}", e->lanes, kMaxLanes), e);
    return std::visit([&](const auto& n) { return rule(e, n); }, e->kind);
  }

  Status same_type(Expr e, Expr operand, DType dtype, int lanes) const {
    if (operand->dtype == dtype && operand->lanes == lanes) return Ok{};
    return error(code::kDtypeMismatch,
                 fmt::format("expected {}, got {}", type_name(dtype, lanes), type_of(operand)), e);
  }
  Status expect(bool condition, Expr e, const char* message) const {
    if (condition) return Ok{};
    return error(code::kDtypeMismatch, message, e);
  }
  Status index_of(Expr e, Expr index, int lanes) const {
    return expect(index->dtype == DType::i64 && (index->lanes == 1 || index->lanes == lanes), e,
                  "an index is i64, scalar or with one lane per element");
  }

  Status rule(Expr e, const IntConst&) const {
    return expect(!is_float(e->dtype), e, "an integer constant has an integer dtype");
  }
  Status rule(Expr e, const FloatConst&) const {
    return expect(is_float(e->dtype), e, "a float constant has a float dtype");
  }
  Status rule(Expr e, const VarRead& n) const {
    if (n.var.id >= kernel_.vars.size())
      return error(code::kUndefinedValue, fmt::format("variable {} does not exist", n.var.id));
    const VarInfo& info = kernel_.vars[n.var.id];
    return same_type(e, e, info.dtype, info.lanes);
  }
  Status rule(Expr e, const Unary& n) const {
    bool gives_bool = n.op == UnaryOp::logical_not || n.op == UnaryOp::is_nan;
    LATHE_DO(same_type(e, e, gives_bool ? DType::b8 : n.x->dtype, n.x->lanes));
    bool needs_float = n.op >= UnaryOp::sqrt && n.op <= UnaryOp::round_even;
    LATHE_DO(expect(!needs_float || is_float(n.x->dtype), e, "this function is of floats"));
    bool is_bitwise = n.op == UnaryOp::bit_not;
    return expect(!is_bitwise || !is_float(n.x->dtype), e, "~ is of integers");
  }
  Status rule(Expr e, const Binary& n) const {
    LATHE_DO(same_type(e, n.b, n.a->dtype, n.a->lanes));
    LATHE_DO(same_type(e, e, is_compare(n.op) ? DType::b8 : n.a->dtype, n.a->lanes));
    bool needs_integers = (n.op >= BinaryOp::bit_and && n.op <= BinaryOp::shift_right) ||
                          n.op == BinaryOp::floor_div || n.op == BinaryOp::mod;
    return expect(!needs_integers || !is_float(n.a->dtype), e, "this operation is of integers");
  }
  Status rule(Expr e, const Fma& n) const {
    LATHE_DO(expect(is_float(e->dtype), e, "fma is of floats"));
    for (Expr operand : {n.a, n.b, n.c}) LATHE_DO(same_type(e, operand, e->dtype, e->lanes));
    return Ok{};
  }
  Status rule(Expr e, const PairDot& n) const {
    for (Expr pairs : {n.a, n.b}) LATHE_DO(same_type(e, pairs, DType::i32, e->lanes));
    LATHE_DO(same_type(e, n.c, DType::f32, e->lanes));
    return same_type(e, e, DType::f32, e->lanes);
  }
  Status rule(Expr e, const Select& n) const {
    LATHE_DO(same_type(e, n.condition, DType::b8, e->lanes));
    LATHE_DO(same_type(e, n.if_true, e->dtype, e->lanes));
    return same_type(e, n.if_false, e->dtype, e->lanes);
  }
  Status rule(Expr e, const Cast& n) const { return same_type(e, n.x, n.x->dtype, e->lanes); }
  Status rule(Expr e, const Bitcast& n) const {
    const bool is_kept = n.x->lanes * dtype_bits(n.x->dtype) == e->lanes * dtype_bits(e->dtype) &&
                         (n.x->dtype == DType::b8) == (e->dtype == DType::b8);
    return expect(is_kept, e, "bitcast keeps the bits");
  }
  Status rule(Expr e, const Load& n) const {
    if (n.buffer.id >= kernel_.buffers.size())
      return error(code::kUndefinedValue, fmt::format("buffer {} does not exist", n.buffer.id));
    LATHE_DO(same_type(e, e, kernel_.buffers[n.buffer.id].dtype, e->lanes));
    LATHE_DO(index_of(e, n.index, e->lanes));
    if (n.mask) LATHE_DO(same_type(e, n.mask, DType::b8, e->lanes));
    return Ok{};
  }
  Status rule(Expr e, const RegRead& n) const {
    if (n.array.id >= kernel_.regs.size())
      return error(code::kUndefinedValue, fmt::format("registers {} do not exist", n.array.id));
    const RegInfo& info = kernel_.regs[n.array.id];
    if (info.role != TileRole::none)
      return error(code::kBadForm, fmt::format("tile '{}' is read as a register", info.name));
    return same_type(e, e, info.dtype, info.lanes);
  }
  Status rule(Expr e, const Splat& n) const { return same_type(e, n.x, e->dtype, 1); }
  Status rule(Expr e, const Ramp& n) const {
    LATHE_DO(same_type(e, n.base, DType::i64, 1));
    return expect(e->dtype == DType::i64, e, "a ramp is i64");
  }
  Status rule(Expr e, const Shuffle& n) const {
    LATHE_DO(expect(e->dtype != DType::b8, e, "a shuffle is not of bools"));
    LATHE_DO(expect(n.a->lanes > 1 && e->lanes > 1, e, "a shuffle is of vectors"));
    LATHE_DO(same_type(e, n.a, e->dtype, n.a->lanes));
    LATHE_DO(same_type(e, n.b, e->dtype, n.a->lanes));
    const int last = 2 * n.a->lanes - 1;
    for (int lane : n.lanes)
      if (lane < 0 || lane > last)
        return error(code::kBadValue,
                     fmt::format("a shuffle takes lanes 0 to {}, got {}", last, lane), e);
    return Ok{};
  }
  static bool gives_position(ReduceOp op) {
    return op == ReduceOp::argmax || op == ReduceOp::argmin;
  }
  static bool is_logical(ReduceOp op) { return op == ReduceOp::any || op == ReduceOp::all; }
  Status rule(Expr e, const ReduceLanes& n) const {
    if (is_logical(n.op)) LATHE_DO(same_type(e, n.x, DType::b8, n.x->lanes));
    return same_type(e, e, gives_position(n.op) ? DType::i64 : n.x->dtype, 1);
  }
  Status rule(Expr e, const Reduce& n) const {
    if (is_scheduled_)
      return error(code::kBadForm, "a scheduled kernel has no reduce expressions", e);
    if (n.vars.size() != n.extents.size())
      return error(code::kBadForm, "a reduce has one extent per variable", e);
    for (Var var : n.vars)
      if (var.id >= kernel_.vars.size() || kernel_.vars[var.id].lanes != 1 ||
          kernel_.vars[var.id].dtype != DType::i64)
        return error(code::kBadForm, "a reduce variable is a scalar i64 of the kernel");
    for (Expr extent : n.extents) LATHE_DO(same_type(e, extent, DType::i64, 1));
    if (is_logical(n.op)) LATHE_DO(same_type(e, n.body, DType::b8, e->lanes));
    return same_type(e, e, gives_position(n.op) ? DType::i64 : n.body->dtype, n.body->lanes);
  }

  Status rule(Expr e, const Size& n) const {
    if (is_scheduled_) return error(code::kBadForm, "a scheduled kernel has dims, and no sizes", e);
    LATHE_DO(same_type(e, e, DType::i64, 1));
    return symbols(n.value, "a size");
  }

  // --- statements ---

  Status block(const Block& statements) {
    if (++depth_ > kMaxVerifiedDepth)
      return error(code::kTooLarge, "its statements nest too deeply");
    std::vector<Var> vars;
    std::vector<RegArray> arrays;
    for (const Stmt& stmt : statements) {
      LATHE_DO(std::visit([this](const auto& n) { return statement(n); }, stmt.kind));
      if (const auto* let = std::get_if<Let>(&stmt.kind)) vars.push_back(let->var);
      if (const auto* regs = std::get_if<DeclareRegs>(&stmt.kind)) arrays.push_back(regs->array);
    }
    for (Var var : vars) var_uses_[var.id] = Use::none;
    for (RegArray array : arrays) reg_in_scope_[array.id] = false;
    --depth_;
    return Ok{};
  }

  Status bind(Var var, Use use) {
    if (var.id >= kernel_.vars.size())
      return error(code::kUndefinedValue, fmt::format("variable {} does not exist", var.id));
    if (var_uses_[var.id] != Use::none)
      return error(code::kRedefinedValue,
                   fmt::format("'%{}' is bound again within its scope", kernel_.vars[var.id].name));
    var_uses_[var.id] = use;
    return Ok{};
  }

  Status scalar_index(Expr e) {
    LATHE_DO(expression(e));
    return same_type(e, e, DType::i64, 1);
  }

  Status statement(const For& loop) {
    LATHE_DO(scalar_index(loop.lo));
    LATHE_DO(scalar_index(loop.hi));
    if (loop.step < 1)
      return error(code::kBadValue, fmt::format("a loop step must be positive, got {}", loop.step));
    LATHE_DO(bind(loop.var, loop.kind == LoopKind::unroll ? Use::unroll : Use::outer));
    const VarInfo& info = kernel_.vars[loop.var.id];
    if (info.kind != VarKind::loop || info.dtype != DType::i64 || info.lanes != 1)
      return error(code::kBadForm, fmt::format("'%{}' is not a loop variable", info.name));
    const IntConst* lo = as_int(loop.lo);
    const IntConst* hi = as_int(loop.hi);
    if (lo && hi && lo->value < hi->value && (lo->value < info.min || hi->value - 1 > info.max))
      return error(code::kBadForm,
                   fmt::format("'%{}' runs over {}..{}, outside its range [{}, {}]", info.name,
                               lo->value, hi->value, info.min, info.max));
    if (loop.kind == LoopKind::parallel && loops_ > 0)
      return error(code::kBadForm, "a parallel loop stands in another loop");
    if (loop.kind == LoopKind::unroll && is_scheduled_ && (!lo || !hi))
      return error(code::kBadForm,
                   fmt::format("the bounds of unroll loop '%{}' are no constants", info.name));
    ++loops_;
    LATHE_DO(block(loop.body));
    --loops_;
    var_uses_[loop.var.id] = Use::none;
    return Ok{};
  }
  Status statement(const If& branch) {
    LATHE_DO(expression(branch.condition));
    LATHE_DO(same_type(branch.condition, branch.condition, DType::b8, 1));
    LATHE_DO(block(branch.then_body));
    return block(branch.else_body);
  }
  Status statement(const Let& let) {
    LATHE_DO(expression(let.value));
    LATHE_DO(bind(let.var, Use::outer));
    const VarInfo& info = kernel_.vars[let.var.id];
    if (info.kind != VarKind::let)
      return error(code::kBadForm, fmt::format("'%{}' is not a let variable", info.name));
    return same_type(let.value, let.value, info.dtype, info.lanes);
  }
  Status statement(const DeclareRegs& declare) {
    if (declare.array.id >= kernel_.regs.size())
      return error(code::kUndefinedValue,
                   fmt::format("registers {} do not exist", declare.array.id));
    if (reg_in_scope_[declare.array.id])
      return error(code::kRedefinedValue, fmt::format("registers '{}' are declared again",
                                                      kernel_.regs[declare.array.id].name));
    reg_in_scope_[declare.array.id] = true;
    return Ok{};
  }
  Status reg_element(RegArray array, const std::vector<Expr>& indices) {
    if (array.id >= kernel_.regs.size() || !reg_in_scope_[array.id])
      return error(code::kUndefinedValue,
                   array.id < kernel_.regs.size()
                       ? fmt::format("registers '{}' are not in scope", kernel_.regs[array.id].name)
                       : fmt::format("registers {} do not exist", array.id));
    const RegInfo& info = kernel_.regs[array.id];
    if (indices.size() != info.shape.size())
      return error(code::kBadForm, fmt::format("registers '{}' have {} dims, got {} indices",
                                               info.name, info.shape.size(), indices.size()));
    for (Expr index : indices) {
      LATHE_DO(scalar_index(index));
      if (is_scheduled_) LATHE_DO(unrolled_index(index, info));
    }
    return Ok{};
  }
  Status unrolled_index(Expr index, const RegInfo& info) const {
    bool is_constant = true;
    for_each(index, [&](Expr e) {
      const auto* read = std::get_if<VarRead>(&e->kind);
      if (read) is_constant &= var_uses_[read->var.id] == Use::unroll;
      is_constant &=
          !std::holds_alternative<Load>(e->kind) && !std::holds_alternative<RegRead>(e->kind);
    });
    if (is_constant) return Ok{};
    return error(
        code::kBadForm,
        fmt::format("an index of registers '{}' is no constant after unrolling", info.name), index);
  }
  Status statement(const SetReg& set) {
    LATHE_DO(reg_element(set.array, set.indices));
    LATHE_DO(expression(set.value));
    const RegInfo& info = kernel_.regs[set.array.id];
    return same_type(set.value, set.value, info.dtype, info.lanes);
  }
  Status statement(const Store& store) {
    if (store.buffer.id >= kernel_.buffers.size())
      return error(code::kUndefinedValue, fmt::format("buffer {} does not exist", store.buffer.id));
    const Buffer& buffer = kernel_.buffers[store.buffer.id];
    LATHE_DO(expression(store.index));
    LATHE_DO(expression(store.value));
    if (buffer.space == Space::global && !buffer.is_written)
      return error(
          code::kBadForm,
          fmt::format("buffer '{}' is stored to, but is not marked as written", buffer.name));
    LATHE_DO(same_type(store.value, store.value, buffer.dtype, store.value->lanes));
    LATHE_DO(index_of(store.index, store.index, store.value->lanes));
    if (store.atomic) LATHE_DO(atomic(store, buffer));
    if (!store.mask) return Ok{};
    LATHE_DO(expression(store.mask));
    return same_type(store.mask, store.mask, DType::b8, store.value->lanes);
  }
  Status atomic(const Store& store, const Buffer& buffer) const {
    const bool combines = *store.atomic == ReduceOp::sum || *store.atomic == ReduceOp::prod ||
                          *store.atomic == ReduceOp::max || *store.atomic == ReduceOp::min;
    if (!combines)
      return error(code::kBadForm, "an atomic store combines by sum, prod, max or min");
    if (store.value->lanes == 1 && store.index->lanes == 1 && dtype_bytes(buffer.dtype) >= 4 &&
        buffer.space == Space::global)
      return Ok{};
    return error(code::kBadForm,
                 fmt::format("an atomic store to '{}' is no scalar of 32 or 64 bits in a buffer of "
                             "the caller",
                             buffer.name));
  }
  Status statement(const Prefetch& prefetch) {
    if (prefetch.buffer.id >= kernel_.buffers.size())
      return error(code::kUndefinedValue,
                   fmt::format("buffer {} does not exist", prefetch.buffer.id));
    if (prefetch.locality < 1 || prefetch.locality > 3)
      return error(code::kBadValue,
                   fmt::format("a prefetch's locality is 1, 2 or 3, got {}", prefetch.locality));
    return scalar_index(prefetch.index);
  }
  Status statement(const Barrier&) const { return Ok{}; }

  // --- matrix tiles ---

  Status statement(const LoadTile& load) {
    LATHE_DO(tile_access(load.tile, load.buffer, load.index, load.stride));
    if (kernel_.regs[load.tile.array.id].role == TileRole::none) return no_tile(load.tile);
    return Ok{};
  }
  Status statement(const StoreTile& store) {
    LATHE_DO(tile_access(store.tile, store.buffer, store.index, store.stride));
    const Buffer& buffer = kernel_.buffers[store.buffer.id];
    if (buffer.space == Space::global && !buffer.is_written)
      return error(
          code::kBadForm,
          fmt::format("buffer '{}' is stored to, but is not marked as written", buffer.name));
    return tile_of(store.tile, TileRole::sum);
  }
  Status statement(const Mma& mma) {
    LATHE_DO(tile_of(mma.sum, TileRole::sum));
    LATHE_DO(tile_of(mma.left, TileRole::left));
    LATHE_DO(tile_of(mma.right, TileRole::right));
    const RegInfo &sum = kernel_.regs[mma.sum.array.id], &left = kernel_.regs[mma.left.array.id],
                  &right = kernel_.regs[mma.right.array.id];
    if (!(sum.tile == left.tile) || !(sum.tile == right.tile))
      return error(code::kBadForm, fmt::format("the tiles '{}', '{}' and '{}' of an mma are of "
                                               "different products",
                                               sum.name, left.name, right.name));
    if (left.dtype == right.dtype) return Ok{};
    return error(code::kDtypeMismatch, fmt::format("the tiles '{}' and '{}' of an mma are of "
                                                   "different dtypes",
                                                   left.name, right.name));
  }
  Diag no_tile(const TileRef& tile) const {
    return error(code::kBadForm, fmt::format("registers '{}' are not a tile that may stand here",
                                             kernel_.regs[tile.array.id].name));
  }
  Status tile_of(const TileRef& tile, TileRole role) {
    LATHE_DO(reg_element(tile.array, tile.indices));
    if (kernel_.regs[tile.array.id].role != role) return no_tile(tile);
    return Ok{};
  }
  Status tile_access(const TileRef& tile, BufferRef buffer, Expr index, int64_t stride) {
    LATHE_DO(reg_element(tile.array, tile.indices));
    LATHE_DO(scalar_index(index));
    if (buffer.id >= kernel_.buffers.size())
      return error(code::kUndefinedValue, fmt::format("buffer {} does not exist", buffer.id));
    const RegInfo& info = kernel_.regs[tile.array.id];
    if (stride < 0 || stride > kMaxTileStride)
      return error(code::kBadValue, fmt::format("the stride of a tile must be from 0 to {}, got {}",
                                                kMaxTileStride, stride));
    if (kernel_.buffers[buffer.id].dtype == info.dtype) return Ok{};
    return error(
        code::kDtypeMismatch,
        fmt::format("tile '{}' is of {}, buffer '{}' of {}", info.name, dtype_name(info.dtype),
                    kernel_.buffers[buffer.id].name, dtype_name(kernel_.buffers[buffer.id].dtype)));
  }

  const Kernel& kernel_;
  bool is_scheduled_;
  int depth_ = 0;
  int loops_ = 0;
  std::vector<Use> var_uses_;
  std::vector<bool> reg_in_scope_;
  std::unordered_set<const ExprNode*> checked_;
};

}  // namespace

Status verify(const Kernel& kernel, bool is_scheduled) {
  return Verifier(kernel, is_scheduled).run();
}

}  // namespace lathe::loop
