// The walk over statements and values: see cycles.h.
#include "ir/cost/cycles.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "ir/cost/trip_counts.h"
#include "ir/loop/pool.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Block;
using loop::Expr;
using loop::ExprNode;
using loop::For;
using loop::LoopKind;
using loop::UnaryOp;

constexpr double kLatency = 4;           // of a dependent sum
constexpr double kLoopCycles = 1;        // of counting and branching
constexpr double kScalar = 0.25;         // of integers: four a cycle, beside the vectors
constexpr double kDivideByConstant = 3;  // of integers: a multiplication, shifts and a sum
constexpr double kFunctionCycles = 10;   // of a function that the target has itself, a vector

// What the units of a core have to do in one iteration of a loop.
struct Units {
  double vectors = 0, scalars = 0, loads = 0, stores = 0, chain = 0;
};

struct Level {
  double times = 1;       // iterations, of all loops down to this one
  double unrolled = 1;    // copies of its body's statements
  Units units;            // of one iteration
  bool is_serial = true;  // unrolled loops are copies in the loop around them
};

class CycleCounter {
 public:
  CycleCounter(const loop::Kernel& kernel, const Target& target)
      : kernel_(kernel), target_(target), trips_(kernel) {}

  double run() {
    levels_.push_back({});
    visit(kernel_.body);
    close();
    return cycles_;
  }

 private:
  // --- statements

  void visit(const Block& block) {
    for (const loop::Stmt& stmt : block) std::visit([this](const auto& s) { visit(s); }, stmt.kind);
  }

  void visit(const For& loop) {
    cost(loop.lo);
    cost(loop.hi);
    const double trips = trips_.of(loop);
    if (trips <= 0) return;
    Level level;
    level.is_serial = loop.kind != LoopKind::unroll;
    level.times = levels_.back().times * trips;
    level.unrolled = level.is_serial ? 1 : levels_.back().unrolled * trips;
    level_of_var_[loop.var.id] = static_cast<int>(levels_.size());
    levels_.push_back(level);
    trips_of_.push_back(trips);
    visit(loop.body);
    if (level.is_serial) levels_.back().units.vectors += kLoopCycles / 2;
    close();
    trips_of_.pop_back();
  }

  void visit(const loop::If& branch) {
    cost(branch.condition);
    visit(branch.then_body);
    visit(branch.else_body);
  }

  void visit(const loop::Let& let) {
    level_of_var_[let.var.id] = cost(let.value);
    trips_.define(let);
  }
  void visit(const loop::DeclareRegs&) {}
  void visit(const loop::Prefetch&) { charge(here()).loads += 0.5; }

  void visit(const loop::SetReg& set) {
    cost(set.value);
    bool is_chain = false;
    loop::for_each(set.value, [&](Expr part) {
      const auto* read = std::get_if<loop::RegRead>(&part->kind);
      is_chain = is_chain || (read != nullptr && read->array == set.array);
    });
    if (!is_chain) return;
    // Copies that write different registers run beside each other.
    double copies = levels_.back().unrolled;
    for (Expr index : set.indices) {
      const auto* var = std::get_if<loop::VarRead>(&index->kind);
      if (var == nullptr) continue;
      const int level = level_of_var_[var->var.id];
      if (level > 0 && !levels_[static_cast<size_t>(level)].is_serial)
        copies /= std::max(1.0, trips_of_[static_cast<size_t>(level) - 1]);
    }
    Units& units = levels_[serial_level()].units;
    units.chain = std::max(units.chain, kLatency * std::max(1.0, copies));
  }

  void visit(const loop::Store& store) {
    cost(store.index);
    cost(store.value);
    if (store.mask) cost(store.mask);
    const double elements = store.index->lanes > 1 ? store.index->lanes : 0;
    charge(here()).stores += copies(here()) * (elements > 0 ? elements : registers(store.value));
  }

  void visit(const loop::Barrier&) {}
  void visit(const loop::LoadTile& load) {
    cost(load.index);
    charge(here()).loads += copies(here()) * 0.5 * tile_registers(load.tile);
  }
  void visit(const loop::StoreTile& store) {
    cost(store.index);
    charge(here()).stores += copies(here()) * tile_registers(store.tile);
  }
  // As many multiply-adds of registers as its sum takes.
  void visit(const loop::Mma& mma) {
    const loop::RegInfo& sum = kernel_.regs[mma.sum.array.id];
    charge(here()).vectors += copies(here()) * 0.5 * sum.tile.k * tile_registers(mma.sum);
  }
  double tile_registers(const loop::TileRef& tile) const {
    const loop::RegInfo& info = kernel_.regs[tile.array.id];
    const int64_t bytes = info.width() * dtype_bytes(info.dtype);
    return std::ceil(static_cast<double>(bytes) / target_.vector_bytes);
  }

  // --- values: each returns the innermost level that it moves with

  int cost(Expr e) {
    if (auto found = known_.find(e.node()); found != known_.end()) {
      const auto [level, instance] = found->second;
      if (level < static_cast<int>(levels_.size()) && instances_of(level) == instance) return level;
    }
    const int level = compute(e);
    known_[e.node()] = {level, instances_of(level)};
    return level;
  }

  int compute(Expr e) {
    int level = 0;
    const auto operand = [&](Expr part) { level = std::max(level, cost(part)); };
    const double width = registers(e);
    double vectors = 0, loads = 0;
    if (const auto* read = std::get_if<loop::VarRead>(&e->kind)) {
      const auto found = level_of_var_.find(read->var.id);
      return found == level_of_var_.end() ? 0 : found->second;
    } else if (const auto* unary = std::get_if<loop::Unary>(&e->kind)) {
      operand(unary->x);
      vectors = width * cycles(unary->op, *e.node());
    } else if (const auto* binary = std::get_if<loop::Binary>(&e->kind)) {
      operand(binary->a);
      operand(binary->b);
      vectors = width * cycles(*binary, *e.node());
    } else if (const auto* fma = std::get_if<loop::Fma>(&e->kind)) {
      for (Expr part : {fma->a, fma->b, fma->c}) operand(part);
      vectors = width * (target_.has_fma ? 0.5 : 1);
    } else if (const auto* select = std::get_if<loop::Select>(&e->kind)) {
      for (Expr part : {select->condition, select->if_true, select->if_false}) operand(part);
      vectors = width;
    } else if (const auto* cast_to = std::get_if<loop::Cast>(&e->kind)) {
      operand(cast_to->x);
      vectors = std::max(width, registers(cast_to->x));
    } else if (const auto* bits = std::get_if<loop::Bitcast>(&e->kind)) {
      operand(bits->x);
    } else if (const auto* splat = std::get_if<loop::Splat>(&e->kind)) {
      operand(splat->x);
      vectors = std::holds_alternative<loop::Load>(splat->x->kind) ? 0 : 0.5;
    } else if (const auto* ramp = std::get_if<loop::Ramp>(&e->kind)) {
      operand(ramp->base);
      vectors = 0.5 * width;
    } else if (const auto* mixed = std::get_if<loop::Shuffle>(&e->kind)) {
      operand(mixed->a);
      operand(mixed->b);
      vectors = width;
    } else if (const auto* lanes = std::get_if<loop::ReduceLanes>(&e->kind)) {
      operand(lanes->x);
      vectors = registers(lanes->x) / 2 + 2 * std::log2(std::max(1, lanes->x->lanes));
    } else if (const auto* load = std::get_if<loop::Load>(&e->kind)) {
      operand(load->index);
      if (load->mask) operand(load->mask);
      if (kernel_.buffers[load->buffer.id].is_written ||
          kernel_.buffers[load->buffer.id].space != loop::Space::global)
        level = here();
      const int gathered = load->index->lanes;
      loads = gathered > 1 ? gathered * (target_.has_gather ? 0.6 : 1) : 0.5 * width;
    } else if (std::holds_alternative<loop::RegRead>(e->kind)) {
      return here();
    }
    Units& units = charge(level);
    const bool is_scalar = e->lanes == 1 && !is_float(e->dtype);
    (is_scalar ? units.scalars : units.vectors) += vectors * copies(level);
    units.loads += loads * copies(level);
    return level;
  }

  double cycles(UnaryOp op, const ExprNode& node) const {
    switch (op) {
      case UnaryOp::neg:
      case UnaryOp::abs:
      case UnaryOp::logical_not:
      case UnaryOp::bit_not:
        return 0.5;
      case UnaryOp::floor:
      case UnaryOp::ceil:
      case UnaryOp::trunc:
      case UnaryOp::round_even:
      case UnaryOp::is_nan:
        return 1;
      case UnaryOp::sqrt:
      case UnaryOp::rsqrt:
        return divide(node);
      default:
        return kFunctionCycles;
    }
  }

  // The divider gives so many lanes a cycle, not by the register; of one number, in three.
  double divide(const ExprNode& node) const {
    return std::max(3.0, node.lanes / target_.rates.divides_a_cycle) / registers(Expr(&node));
  }

  static bool is_constant(Expr e) {
    if (const auto* splat = std::get_if<loop::Splat>(&e->kind)) e = splat->x;
    return loop::as_int(e) != nullptr;
  }

  double cycles(const loop::Binary& n, const ExprNode& node) {
    const bool is_scalar = !is_float(node.dtype) && node.lanes == 1;
    switch (n.op) {
      case BinaryOp::add:
      case BinaryOp::sub:
      case BinaryOp::mul:
        return is_scalar ? 0.0 : 0.5;  // addresses: strength reduction leaves an addition
      case BinaryOp::div:
        return is_float(node.dtype) ? divide(node) : 10.0 * node.lanes;
      case BinaryOp::floor_div:
      case BinaryOp::mod:
        if (!is_constant(n.b)) return 10.0 * node.lanes;
        return is_scalar ? kDivideByConstant * kScalar : kDivideByConstant / 2;
      case BinaryOp::pow:
        return 2 * kFunctionCycles;
      case BinaryOp::min:
      case BinaryOp::max:
        return is_float(node.dtype) ? 1.5 : 0.5;  // NaN wins
      default:
        return is_scalar ? kScalar : 0.5;
    }
  }

  double registers(Expr e) const {
    const double bytes = static_cast<double>(e->lanes) * static_cast<double>(dtype_bytes(e->dtype));
    return std::max(1.0, std::ceil(bytes / target_.vector_bytes));
  }

  // --- levels

  int here() const { return static_cast<int>(levels_.size()) - 1; }
  size_t serial_level() const { return serial_level(here()); }
  size_t serial_level(int level) const {
    while (level > 0 && !levels_[static_cast<size_t>(level)].is_serial) --level;
    return static_cast<size_t>(level);
  }
  Units& charge(int level) { return levels_[serial_level(level)].units; }
  double copies(int level) const { return levels_[static_cast<size_t>(level)].unrolled; }

  // Which of the loops of this depth it is.
  uint64_t instances_of(int level) {
    instances_.resize(std::max(instances_.size(), levels_.size()), 0);
    return instances_[static_cast<size_t>(level)];
  }

  void close() {
    const Level level = levels_.back();
    if (level.is_serial) {
      const Units& u = level.units;
      // Units are counted at two vector operations a cycle.
      const double vectors = u.vectors * 2 / target_.rates.vectors_a_cycle;
      const double longest = std::max({vectors, u.scalars, u.loads, u.stores, u.chain});
      cycles_ += level.times * longest;
    }
    instances_of(here());
    ++instances_[static_cast<size_t>(here())];
    levels_.pop_back();
  }

  const loop::Kernel& kernel_;
  const Target& target_;
  TripCounts trips_;
  std::vector<Level> levels_;     // [0] is outside of every loop
  std::vector<double> trips_of_;  // of levels_[1] and on
  std::unordered_map<uint32_t, int> level_of_var_;
  std::vector<uint64_t> instances_;  // loops closed, by depth
  std::unordered_map<const ExprNode*, std::pair<int, uint64_t>> known_;
  double cycles_ = 0;
};

}  // namespace

double count_cycles(const loop::Kernel& kernel, const Target& target) {
  return CycleCounter(kernel, target).run();
}

}  // namespace lathe
