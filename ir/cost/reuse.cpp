// Footprints of loops: see reuse.h.
#include "ir/cost/reuse.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ir/cost/trip_counts.h"
#include "ir/loop/pool.h"

namespace lathe {
namespace {

using loop::Expr;

// Places of one buffer: those of several constants beside each other count as one.
struct Access {
  uint32_t buffer = 0;
  double bytes = 0;                  // side by side, of one execution
  std::map<size_t, double> strides;  // in bytes by loop; 0: anywhere, by data
  friend bool operator<(const Access& a, const Access& b) {
    return std::tie(a.buffer, a.strides, a.bytes) < std::tie(b.buffer, b.strides, b.bytes);
  }
};

struct LoopNode {
  double trips = 1;
  std::vector<size_t> inner;
  std::set<Access> accesses;  // directly in its body
  std::vector<double> bytes;  // by capacity: what it brings each time that it is reached
  double footprint = 0;       // of all its iterations
};

class ReuseCounter {
 public:
  ReuseCounter(const loop::Kernel& kernel, std::span<const int64_t> capacities, int64_t line_bytes)
      : kernel_(kernel),
        capacities_(capacities),
        line_(static_cast<double>(line_bytes)),
        trips_(kernel) {}

  Traffic run() {
    nodes_.emplace_back();
    path_.push_back(0);
    visit(kernel_.body);
    std::vector<double> touched(kernel_.buffers.size());
    for (const auto& [access, around] : settle(0)) touched[access.buffer] += places(access, around);
    Traffic traffic{nodes_[0].bytes, {}};
    for (size_t i = 0; i < touched.size(); ++i) {
      const loop::Buffer& buffer = kernel_.buffers[i];
      const double whole = static_cast<double>(buffer.size.value() * dtype_bytes(buffer.dtype));
      if (buffer.space == loop::Space::global) traffic.once.push_back(std::min(touched[i], whole));
    }
    return traffic;
  }

 private:
  void visit(const loop::Block& block) {
    for (const loop::Stmt& stmt : block) std::visit([this](const auto& s) { visit(s); }, stmt.kind);
  }
  void visit(const loop::For& loop) {
    visit(loop.lo);
    visit(loop.hi);
    const size_t node = nodes_.size();
    nodes_.emplace_back();
    nodes_[node].trips = trips_.of(loop);
    nodes_[path_.back()].inner.push_back(node);
    loops_[loop.var.id] = {node, loop.step, loop.lo};
    path_.push_back(node);
    const bool is_split = split(loop);
    visit(loop.body);
    if (is_split) path_.pop_back();
    path_.pop_back();
  }

  // A loop over t whose body begins by taking t // n and t % n apart is two loops.
  bool split(const loop::For& loop) {
    const size_t outer = path_.back();
    for (const loop::Stmt& stmt : loop.body) {
      const auto* let = std::get_if<loop::Let>(&stmt.kind);
      if (let == nullptr) break;
      const std::optional<Division> division = division_in(let->value);
      if (!division || division->var != loop.var || division->op != loop::BinaryOp::mod ||
          static_cast<double>(division->divisor) > nodes_[outer].trips)
        continue;
      const size_t inner = nodes_.size();
      nodes_.emplace_back();
      nodes_[inner].trips = static_cast<double>(division->divisor);
      nodes_[outer].trips /= nodes_[inner].trips;
      nodes_[outer].inner.push_back(inner);
      path_.push_back(inner);
      halves_[loop.var.id] = {division->divisor, outer, inner};
      return true;
    }
    return false;
  }

  // var // divisor or var % divisor.
  struct Division {
    loop::Var var;
    loop::BinaryOp op;
    int64_t divisor;
  };
  static std::optional<Division> division_of(Expr e) {
    const auto* binary = std::get_if<loop::Binary>(&e->kind);
    if (binary == nullptr ||
        (binary->op != loop::BinaryOp::floor_div && binary->op != loop::BinaryOp::mod))
      return std::nullopt;
    const auto* read = std::get_if<loop::VarRead>(&binary->a->kind);
    const loop::IntConst* divisor = loop::as_int(binary->b);
    if (read == nullptr || divisor == nullptr || divisor->value <= 0) return std::nullopt;
    return Division{read->var, binary->op, divisor->value};
  }
  // The one that a value is a multiple of.
  static std::optional<Division> division_in(Expr value) {
    const loop::Linear form = loop::linear(value);
    return form.terms.size() == 1 ? division_of(form.terms[0].first) : std::nullopt;
  }
  // The loop that a half of a split one counts.
  std::optional<size_t> half_of(Expr e) const {
    const std::optional<Division> division = division_of(e);
    if (!division) return std::nullopt;
    const auto found = halves_.find(division->var.id);
    if (found == halves_.end() || found->second.extent != division->divisor) return std::nullopt;
    return division->op == loop::BinaryOp::mod ? found->second.inner : found->second.outer;
  }

  void visit(const loop::If& branch) {
    visit(branch.condition);
    if (!std::holds_alternative<loop::ReduceLanes>(branch.condition->kind)) visit(branch.then_body);
    visit(branch.else_body);
  }
  void visit(const loop::Let& let) {
    visit(let.value);
    lets_[let.var.id] = let.value;
    if (const std::optional<size_t> half = half_of(let.value)) loops_[let.var.id] = {*half, 1, {}};
    trips_.define(let);
  }
  void visit(const loop::DeclareRegs&) {}
  void visit(const loop::SetReg& set) { visit(set.value); }
  void visit(const loop::Store& store) {
    visit(store.index);
    visit(store.value);
    touch(store.buffer, store.index, store.value->lanes);
  }
  void visit(const loop::Prefetch&) {}
  void visit(const loop::Barrier&) {}
  void visit(const loop::LoadTile& load) {
    visit(load.index);
    touch_tile(load.buffer, load.index, load.tile, load.stride, load.is_transposed);
  }
  void visit(const loop::StoreTile& store) {
    visit(store.index);
    touch_tile(store.buffer, store.index, store.tile, store.stride, false);
  }
  void visit(const loop::Mma&) {}
  void touch_tile(loop::BufferRef buffer, Expr index, const loop::TileRef& tile, int64_t stride,
                  bool is_transposed) {
    const loop::RegInfo& info = kernel_.regs[tile.array.id];
    const int lines = is_transposed ? info.columns() : info.rows();
    const int length = is_transposed ? info.rows() : info.columns();
    for (int i = 0; i < lines; ++i) touch(buffer, index + index->pool->integer(i * stride), length);
  }
  void visit(Expr e) {
    if (!e) return;
    loop::for_each(e, [this](Expr part) {
      if (const auto* load = std::get_if<loop::Load>(&part->kind))
        touch(load->buffer, load->index, part->lanes);
    });
  }

  // The loops that an index moves with, through lets; what is not linear (a clamp, a division) is
  // taken to move by an element.
  void add_strides(Expr index, double factor, double element, Access& access) {
    if (index->lanes > 1) {
      add_loops(index, element, access);
      return;
    }
    const loop::Linear form = loop::linear(index);
    for (const auto& [atom, count] : form.terms) {
      const auto coefficient = static_cast<double>(count);
      const auto* read = std::get_if<loop::VarRead>(&atom->kind);
      const auto* binary = std::get_if<loop::Binary>(&atom->kind);
      const bool is_clamp = binary != nullptr && (binary->op == loop::BinaryOp::min ||
                                                  binary->op == loop::BinaryOp::max);
      if (is_clamp) {
        add_strides(loop::as_int(binary->a) ? binary->b : binary->a, factor * coefficient, element,
                    access);
      } else if (const std::optional<size_t> half = half_of(atom)) {
        access.strides[*half] += factor * coefficient;
      } else if (read == nullptr) {
        add_loops(atom, element, access);
      } else if (auto found = loops_.find(read->var.id); found != loops_.end()) {
        const Loop& inner = found->second;
        access.strides[inner.node] += factor * coefficient * static_cast<double>(inner.step);
        if (inner.lo) add_strides(inner.lo, factor * coefficient, element, access);
      } else if (auto let = lets_.find(read->var.id); let != lets_.end()) {
        add_strides(let->second, factor * coefficient, element, access);
      }
    }
  }

  void add_loops(Expr e, double element, Access& access) {
    bool is_data = false;
    loop::for_each(
        e, [&](Expr part) { is_data = is_data || std::holds_alternative<loop::Load>(part->kind); });
    loop::for_each(e, [&](Expr part) {
      const auto* read = std::get_if<loop::VarRead>(&part->kind);
      if (read == nullptr) return;
      if (auto found = loops_.find(read->var.id); found != loops_.end())
        access.strides.emplace(found->second.node, is_data ? 0.0 : element);
      else if (auto let = lets_.find(read->var.id); let != lets_.end())
        add_loops(let->second, element, access);
    });
  }

  void touch(loop::BufferRef buffer, Expr index, int lanes) {
    const int64_t size = dtype_bytes(kernel_.buffers[buffer.id].dtype);
    Access access{buffer.id, static_cast<double>(size * lanes), {}};
    if (index->lanes > 1) access.bytes = line_ * index->lanes;
    add_strides(index, static_cast<double>(size), static_cast<double>(size), access);
    nodes_[path_.back()].accesses.insert(std::move(access));
  }

  // Bytes of the places that an access takes while the loops of `around` run.
  double places(const Access& access, const std::vector<size_t>& around) const {
    double count = 1, least = 0;
    for (size_t node : around) {
      auto stride = access.strides.find(node);
      if (stride == access.strides.end()) continue;
      count *= nodes_[node].trips;
      const double step = std::abs(stride->second);
      if (nodes_[node].trips > 1) least = least == 0 ? step : std::min(least, step);
    }
    // Neighbours share lines; what overlaps is counted once.
    const double each = least == 0 ? std::max(access.bytes, count > 1 ? line_ : 0.0)
                                   : std::min(std::max(access.bytes, line_), least);
    const loop::Buffer& buffer = kernel_.buffers[access.buffer];
    const double whole = static_cast<double>(buffer.size.value() * dtype_bytes(buffer.dtype));
    return std::min(count * std::max(each, 1.0), whole);
  }

  // Accesses of the loop and of those inside it, with the loops that they run in.
  using Inside = std::map<Access, std::vector<size_t>>;

  Inside settle(size_t id) {
    if (nodes_[id].trips == 0) {  // at these sizes there is no such tile: nothing of it is touched
      nodes_[id].bytes.assign(capacities_.size(), 0);
      return {};
    }
    Inside inside;
    for (const Access& access : nodes_[id].accesses) inside[access] = {};
    std::vector<double> below(capacities_.size(), 0);  // of one iteration
    for (size_t child : nodes_[id].inner) {
      for (auto& [access, around] : settle(child)) inside.emplace(access, std::move(around));
      for (size_t c = 0; c < below.size(); ++c) below[c] += nodes_[child].bytes[c];
    }
    LoopNode& node = nodes_[id];
    double own = 0;        // of accesses beside inner loops
    double iteration = 0;  // places of one iteration, inner loops and all
    for (auto& [access, around] : inside) {
      iteration += places(access, around);
      around.push_back(id);
      const double bytes = places(access, around);
      node.footprint += bytes;
      if (node.accesses.count(access) != 0) own += bytes;
    }
    for (size_t c = 0; c < below.size(); ++c) {
      const bool fits = iteration <= static_cast<double>(capacities_[c]);
      node.bytes.push_back(fits ? node.footprint : own + node.trips * below[c]);
    }
    return inside;
  }

  const loop::Kernel& kernel_;
  std::span<const int64_t> capacities_;
  double line_;  // of a cache, in bytes
  TripCounts trips_;
  std::vector<LoopNode> nodes_;  // [0] is outside of every loop
  std::vector<size_t> path_;
  struct Loop {
    size_t node;
    int64_t step;
    Expr lo;
  };
  std::unordered_map<uint32_t, Loop> loops_;  // by variable
  // The two that a loop was split into.
  struct Halves {
    int64_t extent;  // of the inner one
    size_t outer, inner;
  };
  std::unordered_map<uint32_t, Halves> halves_;  // by variable
  std::unordered_map<uint32_t, Expr> lets_;
};

}  // namespace

Traffic count_traffic(const loop::Kernel& kernel, std::span<const int64_t> capacities,
                      int64_t line_bytes) {
  return ReuseCounter(kernel, capacities, line_bytes).run();
}

}  // namespace lathe
