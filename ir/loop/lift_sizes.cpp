// Sizes as parameters: see lift_sizes.h.
#include "ir/loop/lift_sizes.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <unordered_map>

#include "ir/loop/pool.h"
#include "ir/loop/rewrite.h"

namespace lathe::loop {
namespace {

// Divides every value of the size: a power of two, up to what memory operations ask for.
int64_t multiple_of(const Dim& size) {
  constexpr int64_t kMost = 64;
  int64_t divisor = kMost;
  for (const auto& [product, factor] : size.monomials()) divisor = std::gcd(divisor, factor);
  return divisor;
}

class Lifter {
 public:
  explicit Lifter(Kernel& kernel) : kernel_(kernel) {}

  std::vector<Dim> run() {
    rewrite(kernel_, [&](Expr e) {
      const auto* size = std::get_if<Size>(&e->kind);
      return size ? kernel_.pool->var(param(size->value)) : e;
    });
    for (Buffer& buffer : kernel_.buffers)
      if (!buffer.size.is_const())
        buffer.size = Dim::symbol(kernel_.vars[param(buffer.size).id].name);
    for (VarInfo& info : kernel_.vars) info.extent = 0;
    kernel_.symbols.clear();
    return std::move(sizes_);
  }

 private:
  Var param(const Dim& size) {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (sizes_[i] == size) return params_[i];
    const DimRange range = size.bounds(kernel_.symbols);
    VarInfo info{fmt::format("n{}", sizes_.size()), VarKind::dim};
    info.min = range.min.value_or(INT64_MIN);
    info.max = range.max.value_or(INT64_MAX);
    info.multiple = multiple_of(size);
    params_.push_back(kernel_.add_var(std::move(info)));
    sizes_.push_back(size);
    return params_.back();
  }

  Kernel& kernel_;
  std::vector<Dim> sizes_;
  std::vector<Var> params_;
};

}  // namespace

std::vector<Dim> lift_sizes(Kernel& kernel) {
  if (kernel.symbols.empty()) return {};
  return Lifter(kernel).run();
}

std::vector<Var> dims(const Kernel& kernel) {
  std::vector<Var> found;
  for (uint32_t id = 0; id < kernel.vars.size(); ++id)
    if (kernel.vars[id].kind == VarKind::dim) found.push_back({id});
  return found;
}

int64_t num_elements(const Kernel& kernel, const Buffer& buffer, std::span<const int64_t> values) {
  if (buffer.size.is_const()) return buffer.size.value();
  const std::string name = buffer.size.symbol_name();
  const std::vector<Var> all = dims(kernel);
  for (size_t i = 0; i < all.size() && i < values.size(); ++i)
    if (kernel.vars[all[i].id].name == name) return values[i];
  return 0;
}

Kernel at_sizes(Kernel kernel, std::span<const int64_t> values) {
  const std::vector<Var> all = dims(kernel);
  if (all.empty()) return kernel;
  for (Buffer& buffer : kernel.buffers) buffer.size = num_elements(kernel, buffer, values);
  std::unordered_map<uint32_t, int64_t> known;
  for (size_t i = 0; i < all.size() && i < values.size(); ++i) known[all[i].id] = values[i];
  rewrite(kernel, [&](Expr e) {
    const auto* read = std::get_if<VarRead>(&e->kind);
    const auto found = read ? known.find(read->var.id) : known.end();
    return found == known.end() ? e : kernel.pool->integer(found->second);
  });
  // As no loop or let that anything reads; the numbers of the others stay.
  for (Var var : all) kernel.vars[var.id] = {kernel.vars[var.id].name, VarKind::let};
  return kernel;
}

}  // namespace lathe::loop
