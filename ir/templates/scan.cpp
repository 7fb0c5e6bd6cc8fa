// The scan template: see scan.h.
#include "ir/templates/scan.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kTaskSteps = 5000;  // about 10 us of dependent operations
constexpr int64_t kMostVectors = 4;   // chains side by side

class Scan {
 public:
  Scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec) {
    if (!spec.has_lanes) return;
    const int64_t columns = spec.lines.back();
    lanes_ = target.lanes(4);
    for (int64_t vectors = 1; vectors < kMostVectors && columns >= 2 * lanes_; vectors *= 2)
      lanes_ *= 2;
    blocks_ = (columns + lanes_ - 1) / lanes_;
  }

  void build() {
    std::vector<int64_t> tasks = spec_.lines;
    if (spec_.has_lanes) tasks.back() = blocks_;
    int64_t count = 1;
    for (int64_t extent : tasks) count *= extent;
    const Var task = add_var("task", count);
    Block body;
    std::vector<Expr> line(tasks.size());
    Expr rest = pool_.var(task);
    for (size_t i = tasks.size(); i-- > 0;) {
      line[i] = let(body, i == 0 ? rest : loop::mod(rest, pool_.integer(tasks[i])), tasks[i]);
      rest = loop::floor_div(rest, pool_.integer(tasks[i]));
    }
    emit_line(body, std::move(line));
    kernel_.grain = std::max<int64_t>(1, kTaskSteps / std::max<int64_t>(1, spec_.length));
    kernel_.body.push_back({For{task, pool_.integer(0), pool_.integer(count), 1, LoopKind::parallel,
                                std::move(body)}});
  }

 private:
  Var add_var(const char* name, int64_t extent) {
    return kernel_.add_var(
        {name, loop::VarKind::loop, DType::i64, 1, 0, std::max<int64_t>(1, extent) - 1});
  }

  Expr let(Block& block, Expr value, int64_t extent) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const Var var = kernel_.add_var({"line", loop::VarKind::let, DType::i64, 1, 0, extent - 1});
    block.push_back({loop::Let{var, value}});
    return pool_.var(var);
  }

  void emit_line(Block& block, std::vector<Expr> line) {
    const int lanes = static_cast<int>(lanes_);
    Expr first, mask;
    Var column;
    if (spec_.has_lanes) {
      first = line.back() * pool_.integer(lanes_);
      column =
          kernel_.add_var({"column", loop::VarKind::let, DType::i64, 1, 0, spec_.lines.back() - 1});
      line.back() = pool_.var(column);
      if (spec_.lines.back() % lanes_ != 0)
        mask = loop::lt(pool_.ramp(pool_.var(column), 1, lanes),
                        loop::splat(pool_.integer(spec_.lines.back()), lanes));
    }
    const auto vector = [&](Expr e, const loop::Bindings& bound) {
      if (!spec_.has_lanes) return loop::bind(e, bound);
      return loop::substitute(loop::vectorize(e, {column, lanes, mask}, bound), column, first);
    };
    const auto place = [&](Expr e) {
      return spec_.has_lanes && e ? loop::substitute(e, column, first) : e;
    };
    const loop::RegArray total = kernel_.add_regs({"total", spec_.dtype, lanes, {}});
    block.push_back({loop::DeclareRegs{total}});
    const Expr start = pool_.number(loop::identity(spec_.op, spec_.dtype), spec_.dtype);
    block.push_back({loop::SetReg{total, {}, loop::splat(start, lanes)}});
    const Var at = add_var("t", spec_.length);
    Block step;
    const Expr sum = pool_.reg(total, {}, spec_.dtype, lanes);
    const Expr value = vector(loop::cast(spec_.input(line, pool_.var(at)), spec_.dtype), {});
    step.push_back({loop::SetReg{total, {}, loop::combine(spec_.op, sum, value)}});
    const Var read =
        kernel_.add_var({"sum", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    const Expr scalar = pool_.var(read, spec_.dtype);
    const ResultElement result = spec_.result(line, pool_.var(at), scalar);
    step.push_back({loop::Store{result.buffer, place(result.index),
                                vector(result.value, {{scalar.node(), sum}}), place(mask), false}});
    block.push_back({For{at, pool_.integer(0), pool_.integer(spec_.length), 1, LoopKind::serial,
                         std::move(step)}});
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ScanSpec& spec_;
  int64_t lanes_ = 1, blocks_ = 1;
};

}  // namespace

void build_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target) {
  Scan(kernel, spec, target).build();
}

}  // namespace lathe
