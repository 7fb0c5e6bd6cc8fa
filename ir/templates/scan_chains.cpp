// Chains and totals: see scan_chains.h.
#include "ir/templates/scan_chains.h"

#include <iterator>
#include <utility>

#include "ir/loop/linear.h"

namespace lathe {

using loop::Block;
using loop::Expr;
using loop::Var;

ScanChains::ScanChains(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts* parts)
    : kernel_(kernel), pool_(*kernel.pool), spec_(spec), parts_(parts) {
  for (const Dim& extent : spec.lines) {
    count_ = count_ * extent;
    line_vars_.push_back(add_let("line", extent));
    line_.push_back(extent == Dim(1) ? pool_.integer(0) : pool_.var(line_vars_.back()));
  }
}

void ScanChains::place(Block& block, Expr chain, bool has_columns) {
  has_columns_ = has_columns;
  first_ = pool_.integer(0);
  end_ = pool_.size(spec_.length);
  if (parts_) {
    const Expr by = has_columns ? pool_.size(count_) : pool_.integer(parts_->count);
    const Expr high = loop::floor_div(chain, by), low = loop::mod(chain, by);
    part_ = let(block, "part", has_columns ? high : low, parts_->count);
    chain = number_ = let(block, "chain", has_columns ? low : high, count_);
    first_ = let(block, "from", part_ * pool_.integer(parts_->length), spec_.length);
    end_ = let(block, "to", loop::min(first_ + pool_.integer(parts_->length), end_),
               spec_.length + Dim(1));
  }
  for (size_t i = line_.size(); i-- > 0;) {
    if (spec_.lines[i] == Dim(1)) continue;
    const Expr extent = pool_.size(spec_.lines[i]);
    block.push_back({loop::Let{line_vars_[i], i == 0 ? chain : loop::mod(chain, extent)}});
    chain = loop::floor_div(chain, extent);
  }
}

Total ScanChains::numbers(const std::vector<double>& values) {
  Total total;
  for (size_t p = 0; p < num_parts(); ++p)
    total.push_back(pool_.number(values[p], spec_.total.dtypes[p]));
  return total;
}

ScanChains::Totals ScanChains::declare(Block& block, const Total& value) {
  Totals regs;
  for (DType dtype : spec_.total.dtypes) {
    regs.push_back(kernel_.add_regs({"total", dtype}));
    block.push_back({loop::DeclareRegs{regs.back()}});
  }
  set(block, regs, value);
  return regs;
}

Total ScanChains::read(const Totals& regs) {
  Total total;
  for (size_t p = 0; p < num_parts(); ++p)
    total.push_back(pool_.reg(regs[p], {}, spec_.total.dtypes[p]));
  return total;
}

void ScanChains::set(Block& block, const Totals& regs, const Total& total) {
  for (size_t p = 0; p < num_parts(); ++p) block.push_back({loop::SetReg{regs[p], {}, total[p]}});
}

Expr ScanChains::place_of_total(Expr part) {
  return has_columns_ ? part * pool_.size(count_) + number_
                      : number_ * pool_.integer(parts_->count) + part;
}

Total ScanChains::load_total(Block& block, Expr part) {
  Total total;
  for (size_t p = 0; p < num_parts(); ++p)
    total.push_back(pool_.load(parts_->totals[p], place_of_total(part), spec_.total.dtypes[p]));
  return named(block, total);
}

void ScanChains::store_total(Block& block, const Total& total) {
  for (size_t p = 0; p < num_parts(); ++p)
    block.push_back({loop::Store{parts_->totals[p], place_of_total(part_), total[p], {}, false}});
}

Var ScanChains::add_let(const char* name, const Dim& extent) {
  const Var var = kernel_.add_loop_var(name, extent);
  kernel_.vars[var.id].kind = loop::VarKind::let;
  return var;
}

Expr ScanChains::let(Block& block, const char* name, Expr value, const Dim& extent) {
  value = loop::simplify_index(value, kernel_);
  if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
  const Var var = add_let(name, extent);
  block.push_back({loop::Let{var, value}});
  return pool_.var(var);
}

Expr ScanChains::named(Block& block, Expr value) {
  const Var var =
      kernel_.add_var({"sum", loop::VarKind::let, value->dtype, 1, INT64_MIN, INT64_MAX});
  block.push_back({loop::Let{var, value}});
  return pool_.var(var, value->dtype);
}

Total ScanChains::named(Block& block, Total total) {
  for (Expr& part : total) part = named(block, part);
  return total;
}

Total ScanChains::select(Expr condition, const Total& if_true, const Total& if_false) {
  Total total;
  for (size_t p = 0; p < if_true.size(); ++p)
    total.push_back(loop::select(condition, if_true[p], if_false[p]));
  return total;
}

void ScanChains::append_if(Block& block, Expr condition, Block inside) {
  if (condition) {
    block.push_back({loop::If{condition, std::move(inside), {}}});
  } else {
    std::move(inside.begin(), inside.end(), std::back_inserter(block));
  }
}

}  // namespace lathe
