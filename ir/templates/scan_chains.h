// What scans by threads that share a vector have in common: chains, each a line or a part of one,
// and totals in registers and in memory.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/templates/scan.h"

namespace lathe {

class ScanChains {
 protected:
  // `parts`: null where lines are whole.
  ScanChains(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts* parts);

  using Totals = std::vector<loop::RegArray>;  // by part of a total, a register of each
  using Combine = std::function<Total(const Total&, const Total&)>;

  Dim num_chains() const { return count_ * Dim(parts_ ? parts_->count : 1); }
  // Names the chain's line and the elements of it that are its own. `has_columns`: chains that
  // follow each other are the same part of neighbouring lines; otherwise neighbouring parts.
  void place(loop::Block& block, loop::Expr chain, bool has_columns);

  size_t num_parts() const { return spec_.total.dtypes.size(); }
  Total numbers(const std::vector<double>& values);
  Totals declare(loop::Block& block, const Total& value);
  Total read(const Totals& regs);
  void set(loop::Block& block, const Totals& regs, const Total& total);
  Total load_total(loop::Block& block, loop::Expr part);  // of the line, made by another kernel
  void store_total(loop::Block& block, const Total& total);

  loop::Var add_let(const char* name, const Dim& extent);
  loop::Expr let(loop::Block& block, const char* name, loop::Expr value, const Dim& extent);
  loop::Expr named(loop::Block& block, loop::Expr value);
  // Each part is made of all others: they get names before one is replaced.
  Total named(loop::Block& block, Total total);
  static Total select(loop::Expr condition, const Total& if_true, const Total& if_false);
  // `inside` where the condition holds; null: always.
  static void append_if(loop::Block& block, loop::Expr condition, loop::Block inside);

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ScanSpec& spec_;
  const ScanParts* parts_;
  Dim count_ = 1;                     // of lines
  std::vector<loop::Expr> line_;      // the index of the chain's line
  loop::Expr part_ = {};              // of the line
  loop::Expr first_ = {}, end_ = {};  // of the chain's elements

 private:
  loop::Expr place_of_total(loop::Expr part);

  std::vector<loop::Var> line_vars_;
  loop::Expr number_ = {};  // of the line
  bool has_columns_ = false;
};

// Chains of one thread each.
void build_thread_scan(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts* parts,
                       ScanMakes makes);

}  // namespace lathe
