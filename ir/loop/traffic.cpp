// Counting the places that a kernel's indices can take.
#include "ir/loop/traffic.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ir/loop/pool.h"
#include "ir/loop/ranges.h"

namespace lathe::loop {
namespace {

int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// What tells the places of two indices apart: where a linear one begins and its strides with their
// counts, whatever its variables are called; of another one, itself and its variables' ranges.
struct Places {
  int64_t constant = 0;
  std::vector<std::pair<int64_t, int64_t>> steps = {};
  const ExprNode* index = nullptr;
  int lanes = 1;
  friend bool operator<(const Places& a, const Places& b) {
    return std::tie(a.constant, a.steps, a.index, a.lanes) <
           std::tie(b.constant, b.steps, b.index, b.lanes);
  }
};

class Counter {
 public:
  explicit Counter(const Kernel& kernel)
      : kernel_(kernel), ranges_(kernel), counts_(kernel.buffers.size()), seen_(counts_.size()) {}

  std::vector<int64_t> run() {
    visit(kernel_.body);
    std::vector<int64_t> result;
    for (size_t i = 0; i < counts_.size(); ++i)
      if (kernel_.buffers[i].space == Space::global)
        result.push_back(std::min(counts_[i], kernel_.buffers[i].size.value()));
    return result;
  }

 private:
  struct Loop {
    int64_t first, count, step;
  };
  using Vars = std::set<uint32_t>;  // of loops and reductions

  void visit(const Block& block) {
    for (const Stmt& stmt : block) std::visit([this](const auto& s) { visit(s); }, stmt.kind);
  }
  void visit(const For& loop) {
    visit(loop.lo);
    visit(loop.hi);
    bind(loop.var, loop.lo, loop.hi, loop.step);
    visit(loop.body);
  }
  void visit(const If& branch) {
    visit(branch.condition);
    visit(branch.then_body);
    visit(branch.else_body);
  }
  void visit(const Let& let) {
    visit(let.value);
    lets_[let.var.id] = vars_of(let.value);
  }
  void visit(const DeclareRegs&) {}
  void visit(const SetReg& set) { visit(set.value); }
  void visit(const Store& store) {
    visit(store.index);
    visit(store.value);
    visit(store.mask);
    touch(store.buffer, store.index, store.value->lanes);
  }
  void visit(const Prefetch&) {}
  void visit(const Barrier&) {}
  void visit(const LoadTile& load) {
    visit(load.index);
    touch_tile(load.buffer, load.index, load.tile, load.stride, load.is_transposed);
  }
  void visit(const StoreTile& store) {
    visit(store.index);
    touch_tile(store.buffer, store.index, store.tile, store.stride, false);
  }
  void visit(const Mma&) {}

  // Line by line.
  void touch_tile(BufferRef buffer, Expr index, const TileRef& tile, int64_t stride,
                  bool is_transposed) {
    const RegInfo& info = kernel_.regs[tile.array.id];
    const int lines = is_transposed ? info.columns() : info.rows();
    const int length = is_transposed ? info.rows() : info.columns();
    for (int i = 0; i < lines; ++i) touch(buffer, index + index->pool->integer(i * stride), length);
  }

  void visit(Expr e) {
    if (!e) return;
    for_each(e, [this](Expr part) {
      if (const auto* reduce = std::get_if<Reduce>(&part->kind))
        for (size_t i = 0; i < reduce->vars.size(); ++i)
          bind(reduce->vars[i], {}, reduce->extents[i], 1);
    });
    for_each(e, [this](Expr part) {
      if (const auto* load = std::get_if<Load>(&part->kind))
        touch(load->buffer, load->index, part->lanes);
    });
  }

  // A variable that runs from `lo`, or 0, to before `hi`.
  void bind(Var var, Expr lo, Expr hi, int64_t step) {
    const int64_t first = lo ? ranges_.of(lo).min : 0;
    int64_t span = 0;
    if (__builtin_sub_overflow(ranges_.of(hi).max, first, &span)) span = INT64_MAX;
    loops_[var.id] = {first, span <= 0 ? 0 : (span - 1) / step + 1, step};
  }

  Vars vars_of(Expr e) const {
    Vars vars;
    for_each(e, [&](Expr part) {
      const auto* read = std::get_if<VarRead>(&part->kind);
      if (!read) return;
      if (loops_.count(read->var.id) != 0) vars.insert(read->var.id);
      if (auto let = lets_.find(read->var.id); let != lets_.end())
        vars.insert(let->second.begin(), let->second.end());
    });
    return vars;
  }

  Places places_of(Expr index, int lanes) const {
    Places itself{0, {}, index.node(), lanes};
    for (uint32_t var : vars_of(index))
      itself.steps.push_back({loops_.at(var).first, loops_.at(var).count});
    if (index->lanes != 1) return itself;
    const Linear form = linear(index);
    Places result{form.constant, {}, nullptr, lanes};
    for (const auto& [atom, coefficient] : form.terms) {
      const auto* read = std::get_if<VarRead>(&atom->kind);
      const auto loop = read ? loops_.find(read->var.id) : loops_.end();
      if (loop == loops_.end()) return itself;
      const Loop& l = loop->second;
      result.constant = saturating_add(result.constant, saturating_mul(coefficient, l.first));
      result.steps.push_back({saturating_mul(coefficient, l.step), l.count});
    }
    std::sort(result.steps.begin(), result.steps.end());
    return result;
  }

  void touch(BufferRef buffer, Expr index, int lanes) {
    if (!seen_[buffer.id].insert(places_of(index, lanes)).second) return;
    int64_t times = lanes;
    for (uint32_t var : vars_of(index)) times = saturating_mul(times, loops_.at(var).count);
    const Interval range = ranges_.of(index);
    int64_t span = 0;
    if (__builtin_sub_overflow(range.max, range.min, &span)) span = INT64_MAX;
    span = saturating_add(span, index->lanes == 1 ? lanes : 1);
    counts_[buffer.id] = saturating_add(counts_[buffer.id], std::min(times, span));
  }

  const Kernel& kernel_;
  Ranges ranges_;
  std::vector<int64_t> counts_;         // by buffer
  std::vector<std::set<Places>> seen_;  // likewise
  std::unordered_map<uint32_t, Loop> loops_;
  std::unordered_map<uint32_t, Vars> lets_;
};

}  // namespace

std::vector<int64_t> touched_elements(const Kernel& kernel) { return Counter(kernel).run(); }

}  // namespace lathe::loop
