// Reproducers, bisection, and copies of modules for both.
#include "passes/pipeline/reproduce.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

std::string step_name(const Pipeline& pipeline, size_t position) {
  int occurrence = 0;
  for (size_t i = 0; i <= position; ++i)
    occurrence += pipeline.steps[i].pass == pipeline.steps[position].pass ? 1 : 0;
  return fmt::format("{}#{}", pipeline.steps[position].pass->name, occurrence);
}

Pipeline select(const Pipeline& pipeline, const std::vector<bool>& kept) {
  Pipeline selected;
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) selected.steps.push_back(pipeline.steps[i]);
  return selected;
}

// Which steps the forms need once every other one is gone.
std::vector<bool> necessary_steps(const Pipeline& pipeline, Form start) {
  std::vector<bool> kept(pipeline.steps.size(), true);
  Result<Form> end = check_forms(pipeline, start);
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i] = false;
    Result<Form> without = check_forms(select(pipeline, kept), start);
    kept[i] = !without.ok() || *without != *end;
  }
  return kept;
}

}  // namespace

Module clone(const Module& module) {
  Module copy;
  copy.locs = module.locs;
  copy.dims = module.dims;
  copy.hints = module.hints;
  copy.guards = module.guards;
  copy.weights = module.weights;
  for (const auto& graph : module.graphs) copy.graphs.push_back(graph->clone());
  return copy;
}

std::string make_reproducer(Module module, const Pipeline& steps, size_t failing, Form start,
                            const PassContext& context, const Diag& diag) {
  // The last step that still meets a graph.
  size_t first = failing;
  Form form = start;
  for (size_t i = 0; i < failing; ++i) {
    Form next = std::max(form, steps.steps[i].pass->leaves);
    if (next >= Form::loops && form < Form::loops) first = std::min(first, i);
    form = next;
  }
  Unit unit{std::move(module), {}};
  PassContext replay{.ops = context.ops, .target = context.target};
  replay.overrides = context.overrides;
  replay.threads = context.threads;
  replay.numerics = context.numerics;
  for (size_t i = 0; i < first; ++i) {
    if (!steps.steps[i].pass->run(unit, steps.steps[i].options, replay).ok()) {
      first = i;  // not deterministic; what is there is the best that can be had
      break;
    }
  }
  Pipeline left;
  left.steps.assign(steps.steps.begin() + static_cast<ptrdiff_t>(first),
                    steps.steps.begin() + static_cast<ptrdiff_t>(failing) + 1);
  std::string message = diag.message;
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::string header = fmt::format("// test: {}\n// target: {}\n", print(left), context.target.isa);
  if (context.numerics != Numerics::standard)
    header +=
        fmt::format("// numerics: {}\n", kNumericsNames[static_cast<size_t>(context.numerics)]);
  for (const Override& decision : context.overrides)
    header += fmt::format("// force: {}\n", decision.text);
  return fmt::format("{}// {}[{}]: {}\n{}", header, diag.is_internal ? "internal error" : "error",
                     diag.code, message, print(unit.module, {.locations = true}));
}

Result<BisectResult> bisect(const Module& module, const Pipeline& pipeline,
                            const RunOptions& options, PassContext& context,
                            const std::function<Result<bool>(Unit&)>& is_good) {
  RunOptions each;
  each.start = options.start ? *options.start : form_of(module);
  each.check_honesty = options.check_honesty;
  LATHE_TRY(Form end, check_forms(pipeline, *each.start));
  (void)end;
  std::vector<bool> necessary = necessary_steps(pipeline, *each.start);
  std::vector<size_t> optional;
  for (size_t i = 0; i < necessary.size(); ++i)
    if (!necessary[i]) optional.push_back(i);

  BisectResult result;
  auto try_first = [&](size_t count) -> Result<bool> {
    std::vector<bool> kept = necessary;
    for (size_t i = 0; i < count; ++i) kept[optional[i]] = true;
    Unit unit{clone(module), {}};
    ++result.runs;
    if (!run_pipeline(unit, select(pipeline, kept), each, context).ok()) return false;
    return is_good(unit);
  };
  LATHE_TRY(bool whole, try_first(optional.size()));
  if (whole) return result;
  LATHE_TRY(bool bare, try_first(0));
  if (!bare)
    return Diag{code::kUnsupported, Loc::unknown(),
                "the result is bad with only the steps that the forms need, so none of the others "
                "is to blame"};
  size_t good = 0, bad = optional.size();  // with the first `good` fine, with the first `bad` not
  while (bad - good > 1) {
    size_t middle = good + (bad - good) / 2;
    LATHE_TRY(bool fine, try_first(middle));
    (fine ? good : bad) = middle;
  }
  result.culprit = step_name(pipeline, optional[good]);
  return result;
}

}  // namespace lathe
