// Rows cut short: see turned_loops.h.
#include "ir/templates/turned_loops.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "ir/loop/linear.h"
#include "ir/loop/pool.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::Var;

constexpr int64_t kLeastRow = 24, kMostRow = 64;  // results of a short row
constexpr int64_t kFew = 8;  // what is read at so many times fewer places stays in the cache

// How far the index moves with the variable where nothing clamps it.
int64_t step_along(Expr index, Var var) {
  const loop::Linear form = loop::linear(index);
  int64_t step = form.coefficient(var);
  for (const auto& [atom, coefficient] : form.terms) {
    const auto* clamp = std::get_if<loop::Binary>(&atom->kind);
    if (clamp == nullptr || !loop::depends_on(atom, var)) continue;
    if (clamp->op != loop::BinaryOp::min && clamp->op != loop::BinaryOp::max) continue;
    const int64_t a = step_along(clamp->a, var), b = step_along(clamp->b, var);
    step += coefficient * (a != 0 ? a : b);
  }
  return step;
}

class TurnedRows {
 public:
  TurnedRows(loop::Kernel& kernel, LoopVars& loops, std::vector<Expr>& values,
             std::vector<Expr>& indices, int64_t own)
      : kernel_(kernel), loops_(loops), values_(values), indices_(indices), own_(own) {}

  void run() {
    if (loops_.vars.size() < 2 || !are_numbers()) return;
    const std::optional<size_t> along = find_neighbours();
    if (!along) return;
    const Var var = loops_.vars[*along];
    const Dim extent = loops_.extents[*along];
    erase(*along);
    cut();
    loops_.vars.insert(loops_.vars.end() - 1, var);
    loops_.extents.insert(loops_.extents.end() - 1, extent);
  }

 private:
  bool are_numbers() const {
    return std::all_of(loops_.extents.begin(), loops_.extents.end(),
                       [](const Dim& extent) { return extent.is_const(); });
  }

  // The loop along which most of what is turned lies side by side.
  std::optional<size_t> find_neighbours() const {
    std::vector<int> found(loops_.vars.size() - 1, 0);
    loop::for_each(values_, [&](Expr e) {
      const auto* load = std::get_if<loop::Load>(&e->kind);
      if (load == nullptr || std::abs(step_along(load->index, loops_.vars.back())) <= 1) return;
      if (is_read_again(load->index)) return;
      for (size_t i = 0; i < found.size(); ++i)
        if (step_along(load->index, loops_.vars[i]) == 1) ++found[i];
    });
    const auto most = std::max_element(found.begin(), found.end());
    if (*most == 0) return std::nullopt;
    return static_cast<size_t>(most - found.begin());
  }

  bool is_read_again(Expr index) const {
    int64_t times = 1;
    for (size_t i = 0; i < loops_.vars.size(); ++i)
      if (!loop::depends_on(index, loops_.vars[i])) times *= loops_.extents[i].value();
    return times >= kFew;
  }

  void erase(size_t i) {
    loops_.vars.erase(loops_.vars.begin() + static_cast<ptrdiff_t>(i));
    loops_.extents.erase(loops_.extents.begin() + static_cast<ptrdiff_t>(i));
  }

  // Of the lengths that divide a row, the one that leaves the fewest lanes idle; of such the
  // longest.
  int64_t length_of(int64_t row) const {
    int64_t best = row;
    double least = row <= 2 * kMostRow ? idle(row) : 2;
    for (int64_t length = kMostRow; length >= kLeastRow; --length) {
      if (row % length != 0 || idle(length) >= least) continue;
      least = idle(length);
      best = length;
    }
    return best;
  }
  double idle(int64_t length) const {
    int64_t lanes = own_;
    while (lanes < length) lanes *= 2;
    return static_cast<double>(lanes - length) / static_cast<double>(lanes);
  }

  void cut() {
    const int64_t row = loops_.extents.back().value(), length = length_of(row);
    if (length == row) return;
    const Var whole = loops_.vars.back();
    const Var piece = kernel_.add_loop_var("piece", row / length);
    const Var place = kernel_.add_loop_var(kernel_.vars[whole.id].name, length);
    loop::Pool& pool = *kernel_.pool;
    const Expr at = pool.var(piece) * pool.integer(length) + pool.var(place);
    for (std::vector<Expr>* exprs : {&values_, &indices_})
      for (Expr& e : *exprs) e = loop::substitute(e, whole, at);
    loops_.vars.back() = piece;
    loops_.extents.back() = row / length;
    loops_.vars.push_back(place);
    loops_.extents.emplace_back(length);
  }

  loop::Kernel& kernel_;
  LoopVars& loops_;
  std::vector<Expr>& values_;
  std::vector<Expr>& indices_;
  int64_t own_;
};

}  // namespace

void cut_turned_rows(loop::Kernel& kernel, LoopVars& loops, std::vector<Expr>& values,
                     std::vector<Expr>& indices, int64_t own) {
  TurnedRows(kernel, loops, values, indices, own).run();
}

}  // namespace lathe
