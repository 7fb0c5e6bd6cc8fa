// Numbers for sizes: see binding.h.
#include "ir/program/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/loop/lift_sizes.h"
#include "ir/loop/text.h"
#include "ir/program/verify_call.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

std::vector<std::string> names_of(const std::map<std::string, DimRange>& symbols) {
  std::vector<std::string> names;
  for (const auto& [name, range] : symbols) names.push_back(name);
  return names;
}

}  // namespace

Binder::Binder(const Program& program)
    : name_(program.name),
      ranges_(program.symbols),
      guards_(program.guards),
      allowed_(program.symbols, program.guards),
      plan_{.tape = DimTape(names_of(program.symbols)),
            .lives = lifetimes(program, program.steps)} {
  for (auto& [name, range] : ranges_) range.min = std::max<int64_t>(range.min.value_or(0), 0);
  for (BufferId id : program.inputs) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
    inputs_.push_back({.name = buffer.name, .expected = buffer.type.shape});
  }
  for (const ProgramBuffer& buffer : program.buffers) {
    plan_.num_bytes.push_back(plan_.tape.add(buffer.num_bytes));
    if (!buffer.num_bytes.is_const() || !buffer.type.is_static())
      plan_.type_fits.emplace_back(
          plan_.tape.add(buffer.type.num_elements() * Dim(dtype_bytes(buffer.type.dtype))),
          plan_.num_bytes.back());
  }
  for (const Launch& step : program.steps) {
    plan_.sizes.emplace_back();
    if (const auto* copy = std::get_if<CopyLaunch>(&step.kind))
      plan_.alike.emplace_back(copy->source, copy->destination);
    if (const auto* library = std::get_if<LibraryLaunch>(&step.kind)) add_call(program, *library);
    if (const auto* assertion = std::get_if<AssertLaunch>(&step.kind))
      for (const Dim& bound : {assertion->low, assertion->high})
        plan_.sizes.back().push_back(plan_.tape.add(bound));
    const auto* launch = std::get_if<KernelLaunch>(&step.kind);
    if (launch == nullptr || launch->sizes.empty()) continue;
    const loop::Kernel& kernel = program.kernels[static_cast<size_t>(launch->kernel)];
    const std::vector<loop::Var> dims = loop::dims(kernel);
    std::map<std::string, Dim> values;
    for (size_t i = 0; i < dims.size(); ++i) {
      const loop::VarInfo& info = kernel.vars[dims[i].id];
      values.emplace(info.name, launch->sizes[i]);
      plan_.sizes.back().push_back(plan_.tape.add(launch->sizes[i]));
      plan_.kernel_sizes.push_back({plan_.sizes.back().back(), info.min, info.max, info.multiple});
    }
    size_t next = 0;
    for (const loop::Buffer& formal : kernel.buffers) {
      if (formal.space != loop::Space::global) continue;
      const BufferId id = launch->buffers[next];
      plan_.fit_checks.push_back({plan_.tape.add(formal.size.substitute(values)), id,
                                  launch->offset(next++), dtype_bytes(formal.dtype)});
    }
  }
}

// Of one whose buffers alone are symbolic, too: a small one may not hold what numbers reach.
void Binder::add_call(const Program& program, const LibraryLaunch& launch) {
  for (const Dim& size : symbolic_sizes(launch.call))
    plan_.sizes.back().push_back(plan_.tape.add(size));
  bool is_sized = !plan_.sizes.back().empty();
  for (const CallOperand& operand : operands(launch.call))
    is_sized = is_sized ||
               !program.buffers[static_cast<size_t>(operand.tensor->buffer)].num_bytes.is_const();
  if (!is_sized) return;
  calls_.emplace_back(plan_.sizes.size() - 1, launch.call);
  if (!buffers_.empty()) return;
  for (const ProgramBuffer& buffer : program.buffers)
    buffers_.push_back({.name = buffer.name, .type = buffer.type, .num_bytes = buffer.num_bytes});
}

Status Binder::check_calls(const Binding& binding) const {
  for (const auto& [step, call] : calls_) {
    const LibraryCall made = at_sizes(call, binding.sizes[step]);
    if (is_of_nothing(made)) continue;
    if (const std::string wrong = find_wrong(made, buffers_, binding.num_bytes); !wrong.empty())
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("at these sizes program '{}' cannot call {}", name_, wrong)};
  }
  return Ok{};
}

Status Binder::check_allowed(std::span<const int64_t> values) const {
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < values.size(); ++i) sizes.emplace(symbols()[i], values[i]);
  return check_sizes(inputs_, {ranges_, guards_}, sizes);
}

Result<Binding> Binder::bind(std::span<const int64_t> values) const {
  LATHE_CHECK(values.size() == ranges_.size(), "a size of each symbol");
  const auto too_large = [&](std::string_view what) {
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("at these sizes {} of program '{}' is too large", what, name_)};
  };
  std::vector<int64_t> numbers;
  if (!allowed_.allows(values, numbers)) {
    LATHE_DO(check_allowed(values));
    return too_large("a guard");
  }
  if (!plan_.tape.run(values, numbers)) return too_large("a size");
  for (const BindingPlan::KernelSize& check : plan_.kernel_sizes)
    if (const int64_t size = numbers[check.at];
        size < check.min || size > check.max || size % check.multiple != 0)
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("a kernel of program '{}' cannot take the size {}", name_, size)};

  Binding binding;
  for (size_t at : plan_.num_bytes) {
    if (numbers[at] < 0 || numbers[at] > INT64_MAX / 2) return too_large("a buffer");
    binding.num_bytes.push_back(numbers[at]);
  }
  const auto bytes_of = [&](BufferId id) { return binding.num_bytes[static_cast<size_t>(id)]; };
  bool fits = true;
  for (const BindingPlan::FitCheck& check : plan_.fit_checks)
    fits =
        fits && numbers[check.needed] <= bytes_of(check.buffer) / check.bytes_each - check.offset;
  for (const auto& [needed, has] : plan_.type_fits) fits = fits && numbers[needed] <= numbers[has];
  for (const auto& [a, b] : plan_.alike) fits = fits && bytes_of(a) == bytes_of(b);
  if (!fits)
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("at these sizes a buffer of program '{}' is too small", name_)};
  for (const std::vector<size_t>& places : plan_.sizes) {
    binding.sizes.emplace_back();
    for (size_t at : places) binding.sizes.back().push_back(numbers[at]);
  }
  LATHE_DO(check_calls(binding));
  std::vector<Lifetime> lives = plan_.lives;
  int64_t sum = 0;
  for (Lifetime& life : lives) {
    life.bytes = aligned(bytes_of(life.id));
    if (__builtin_add_overflow(sum, life.bytes, &sum)) return too_large("the arena");
  }
  binding.arena_bytes = place(lives);
  binding.offsets.assign(plan_.num_bytes.size(), -1);
  for (const Lifetime& life : lives) binding.offsets[static_cast<size_t>(life.id)] = life.offset;
  return binding;
}

namespace {

// Kernels of a program at sizes, equal ones once.
class KernelsAtSizes {
 public:
  explicit KernelsAtSizes(const Program& program) : source_(program) {}

  int at(int kernel, const std::vector<int64_t>& sizes) {
    const auto [found, is_new] = made_.emplace(std::pair(kernel, sizes), 0);
    if (!is_new) return found->second;
    loop::Kernel own = source_.kernels[static_cast<size_t>(kernel)];
    if (!sizes.empty()) own = loop::at_sizes(std::move(own), sizes);
    const int copies = copies_[kernel]++;
    if (copies > 0) own.name += fmt::format("_at{}", copies);
    found->second = static_cast<int>(kernels.size());
    kernels.push_back(std::move(own));
    return found->second;
  }

  std::vector<loop::Kernel> kernels;

 private:
  const Program& source_;
  std::map<std::pair<int, std::vector<int64_t>>, int> made_;
  std::map<int, int> copies_;
};

}  // namespace

Result<std::vector<int64_t>> ordered_sizes(const Program& program,
                                           const std::map<std::string, int64_t>& values) {
  std::vector<int64_t> ordered;
  for (const auto& [symbol, range] : program.symbols) {
    const auto value = values.find(symbol);
    if (value == values.end())
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("program '{}' needs a size of '{}'", program.name, symbol)};
    ordered.push_back(value->second);
  }
  return ordered;
}

Result<Program> instantiate(const Program& program, const std::map<std::string, int64_t>& values) {
  LATHE_TRY(const std::vector<int64_t> numbers, ordered_sizes(program, values));
  LATHE_TRY(const Binding binding, Binder(program).bind(numbers));
  std::map<std::string, Dim> dims;
  for (const auto& [symbol, value] : values) dims.emplace(symbol, value);
  Program result = program;
  KernelsAtSizes kernels(program);
  for (auto* launches : {&result.init, &result.steps})
    for (size_t i = 0; i < launches->size(); ++i) {
      Launch& launch = (*launches)[i];
      const bool has_sizes = launches == &result.steps;
      launch.flops = launch.flops.substitute(dims);
      launch.bytes = launch.bytes.substitute(dims);
      if (auto* library = std::get_if<LibraryLaunch>(&launch.kind); library && has_sizes)
        library->call = at_sizes(std::move(library->call), binding.sizes[i]);
      if (auto* assertion = std::get_if<AssertLaunch>(&launch.kind))
        for (Dim* bound : {&assertion->low, &assertion->high}) *bound = bound->substitute(dims);
      auto* kernel = std::get_if<KernelLaunch>(&launch.kind);
      if (kernel == nullptr) continue;
      kernel->kernel =
          kernels.at(kernel->kernel, has_sizes ? binding.sizes[i] : std::vector<int64_t>());
      kernel->sizes.clear();
    }
  std::erase_if(result.steps, [](const Launch& launch) {
    const auto* library = std::get_if<LibraryLaunch>(&launch.kind);
    return library && is_of_nothing(library->call);
  });
  result.kernels = std::move(kernels.kernels);
  for (size_t i = 0; i < result.buffers.size(); ++i) {
    ProgramBuffer& buffer = result.buffers[i];
    for (Dim& dim : buffer.type.shape) dim = dim.substitute(dims);
    buffer.num_bytes = binding.num_bytes[i];
    if (binding.offsets[i] >= 0) buffer.offset = binding.offsets[i];
  }
  result.arena_bytes = binding.arena_bytes;
  result.symbols.clear();
  result.hints.clear();
  result.guards.clear();
  return result;
}

}  // namespace lathe
