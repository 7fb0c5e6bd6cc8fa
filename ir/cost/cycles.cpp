// The walk over statements and values: see cycles.h.
#include "ir/cost/cycles.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "ir/cost/effort.h"
#include "ir/cost/trip_counts.h"
#include "ir/loop/pool.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::ExprNode;
using loop::For;
using loop::LoopKind;

constexpr double kLoopCycles = 1;  // of counting and branching
constexpr double kSumLatency = 4;  // of a sum that the next iteration reads

// What the units of a core have to do in one iteration of a loop.
struct Units {
  double vectors = 0, scalars = 0, loads = 0, stores = 0, chain = 0;
  double operations = 0;  // of vectors and loads, together
  double latency = 0;     // of the longest path through them
};

struct Level {
  double times = 1;       // iterations, of all loops down to this one
  double unrolled = 1;    // copies of its body's statements
  Units units;            // of one iteration
  bool is_serial = true;  // unrolled loops are copies in the loop around them
};

// A value.
struct Computed {
  int level = 0;    // the innermost that it moves with
  double path = 0;  // cycles of that level's iteration until it is there
};

template <class F>
void for_each_operand(const ExprNode& node, F visit) {
  if (const auto* unary = std::get_if<loop::Unary>(&node.kind)) {
    visit(unary->x);
  } else if (const auto* binary = std::get_if<loop::Binary>(&node.kind)) {
    visit(binary->a);
    visit(binary->b);
  } else if (const auto* fma = std::get_if<loop::Fma>(&node.kind)) {
    for (Expr part : {fma->a, fma->b, fma->c}) visit(part);
  } else if (const auto* dot = std::get_if<loop::PairDot>(&node.kind)) {
    for (Expr part : {dot->a, dot->b, dot->c}) visit(part);
  } else if (const auto* select = std::get_if<loop::Select>(&node.kind)) {
    for (Expr part : {select->condition, select->if_true, select->if_false}) visit(part);
  } else if (const auto* cast = std::get_if<loop::Cast>(&node.kind)) {
    visit(cast->x);
  } else if (const auto* bits = std::get_if<loop::Bitcast>(&node.kind)) {
    visit(bits->x);
  } else if (const auto* splat = std::get_if<loop::Splat>(&node.kind)) {
    visit(splat->x);
  } else if (const auto* ramp = std::get_if<loop::Ramp>(&node.kind)) {
    visit(ramp->base);
  } else if (const auto* mixed = std::get_if<loop::Shuffle>(&node.kind)) {
    visit(mixed->a);
    visit(mixed->b);
  } else if (const auto* lanes = std::get_if<loop::ReduceLanes>(&node.kind)) {
    visit(lanes->x);
  } else if (const auto* load = std::get_if<loop::Load>(&node.kind)) {
    visit(load->index);
    if (load->mask) visit(load->mask);
  }
}

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
    values_of_vars_[loop.var.id] = {static_cast<int>(levels_.size()), 0};
    levels_.push_back(level);
    trips_of_.push_back(trips);
    visit(loop.body);
    if (level.is_serial) levels_.back().units.vectors += kLoopCycles / 2;
    close();
    trips_of_.pop_back();
  }

  void visit(const loop::If& branch) {
    cost(branch.condition);
    // What a vector of data decides is what nearly never happens.
    if (!std::holds_alternative<loop::ReduceLanes>(branch.condition->kind)) visit(branch.then_body);
    visit(branch.else_body);
  }

  void visit(const loop::Let& let) {
    values_of_vars_[let.var.id] = cost(let.value);
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
      const int level = values_of_vars_[var->var.id].level;
      if (level > 0 && !levels_[static_cast<size_t>(level)].is_serial)
        copies /= std::max(1.0, trips_of_[static_cast<size_t>(level) - 1]);
    }
    Units& units = levels_[serial_level()].units;
    units.chain = std::max(units.chain, kSumLatency * std::max(1.0, copies));
  }

  void visit(const loop::Store& store) {
    cost(store.index);
    cost(store.value);
    if (store.mask) cost(store.mask);
    const double elements = store.index->lanes > 1 ? store.index->lanes : 0;
    charge(here()).stores +=
        copies(here()) * (elements > 0 ? elements : registers(store.value, target_));
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

  // --- values

  Computed cost(Expr e) {
    if (auto found = known_.find(e.node()); found != known_.end()) {
      const auto [value, instance] = found->second;
      const bool is_around = value.level < static_cast<int>(levels_.size());
      if (is_around && instances_of(value.level) == instance) return value;
    }
    const Computed value = compute(e);
    known_[e.node()] = {value, instances_of(value.level)};
    return value;
  }

  Computed compute(Expr e) {
    Computed value;
    // What a loop around has computed is there.
    const auto after = [&](const Computed& part) {
      const size_t level = serial_level(part.level), so_far = serial_level(value.level);
      if (level >= so_far)
        value.path = level > so_far ? part.path : std::max(value.path, part.path);
      value.level = std::max(value.level, part.level);
    };
    if (const auto* read = std::get_if<loop::VarRead>(&e->kind)) {
      const auto found = values_of_vars_.find(read->var.id);
      return found == values_of_vars_.end() ? Computed() : found->second;
    }
    if (std::holds_alternative<loop::RegRead>(e->kind)) return {here(), 0};
    for_each_operand(*e.node(), [&](Expr part) { after(cost(part)); });
    if (const auto* load = std::get_if<loop::Load>(&e->kind)) {
      const loop::Buffer& buffer = kernel_.buffers[load->buffer.id];
      if (buffer.is_written || buffer.space != loop::Space::global) after({here(), 0});
    }
    const Effort own = effort(*e.node(), target_);
    value.path += own.latency;
    Units& units = charge(value.level);
    (own.is_scalar ? units.scalars : units.vectors) += own.cycles * copies(value.level);
    units.loads += own.loads * copies(value.level);
    if (!own.is_scalar) units.operations += own.operations * copies(value.level);
    units.latency = std::max(units.latency, value.path);
    return value;
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
      const double waits = target_.window > 0 ? u.latency * u.operations / target_.window : 0;
      const double longest = std::max({vectors, u.scalars, u.loads, u.stores, u.chain, waits});
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
  std::unordered_map<uint32_t, Computed> values_of_vars_;
  std::vector<uint64_t> instances_;  // loops closed, by depth
  std::unordered_map<const ExprNode*, std::pair<Computed, uint64_t>> known_;
  double cycles_ = 0;
};

}  // namespace

double count_cycles(const loop::Kernel& kernel, const Target& target) {
  return CycleCounter(kernel, target).run();
}

}  // namespace lathe
