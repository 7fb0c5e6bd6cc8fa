// Replaces composite ops by the simpler ops that their rows say they are made of.
//
// After recognize_structured, so that what has a kernel of its own is found before its parts are
// taken apart, and before everything that reasons about few ops. Ops that a kernel or a template
// can run whole (softmax, norms, gelu, attention, convolution) stay; `all=true` takes those apart
// as well, which shows what keeping them buys. A `cat` of very many tensors becomes several.
//
// Does not choose between decompositions: a row has one.
#include <algorithm>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/wide_cat.h"
#include "passes/lowering/kernel_def.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_decompose(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_decompose() {
  return {
      .name = "decompose",
      .summary = "replace composite ops by the ops they are made of",
      .needs = Form::functional,
      .leaves = Form::core,
      .options = {{"keep", "", "ops to leave whole, separated by commas"},
                  {"all", "false", "also take apart ops that have a kernel of their own"}},
      .counters = {"replaced"},
      .example = R"(
func @main(%x: f32[2, 3], %w: f32[4, 3], %b: f32[4]) -> f32[2, 4] {
  %y = linear(%x, %w, %b)
  return %y
}
=>
func @main(%x: f32[2, 3], %w: f32[4, 3], %b: f32[4]) -> f32[2, 4] {
  %t = permute(%w) {dims = [1, 0]}
  %m = matmul(%x, %t)
  %y = add(%m, %b)
  return %y
}
)",
      .run = run_decompose,
  };
}

namespace {

// Whether some kind of kernel makes it on the target.
bool has_kind(const OpDef& op, const std::vector<KernelDef>& kinds, const Target& target) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const KernelDef& kind) {
    const bool is_root =
        std::find(kind.roots.begin(), kind.roots.end(), op.name) != kind.roots.end();
    return is_root && suits(kind, op.name, target).is_made();
  });
}

// A decomposition may use composite ops in turn; one that needs more rounds than this is circular.
constexpr int kMaxRounds = 16;

Result<std::vector<const OpDef*>> parse_keep(const std::string& text, const Registry& ops) {
  std::vector<const OpDef*> kept;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    const OpDef* op = ops.find(name);
    if (op == nullptr) {
      std::vector<std::string> names;
      for (const OpDef& row : ops.rows()) names.push_back(row.name);
      std::string near = nearest(name, names);
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("'decompose' cannot keep '{}', which is no op{}", name,
                              near.empty() ? "" : fmt::format("; did you mean '{}'?", near))};
    }
    kept.push_back(op);
  }
  return kept;
}

Result<Changed> run_decompose(Unit& unit, const PassOptions& options, PassContext& context) {
  LATHE_TRY(std::vector<const OpDef*> keep, parse_keep(options.at("keep"), context.ops));
  bool takes_all = options.at("all") == "true";
  const std::vector<KernelDef> kinds = all_kernels();
  auto is_taken = [&](const OpDef& op) {
    bool has_kernel = op.lower || has_kind(op, kinds, context.target);
    return op.decompose && (takes_all || !has_kernel) &&
           std::find(keep.begin(), keep.end(), &op) == keep.end();
  };
  auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    const bool is_wide =
        is_wide_cat(node) && std::find(keep.begin(), keep.end(), node.op) == keep.end();
    if (!is_wide && !is_taken(*node.op)) return Replacement();
    context.counters["replaced"] += 1;
    if (is_wide) return Replacement({narrow_cat(b, node)});
    return Replacement(node.op->decompose.function(b, node));
  };
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    for (int round = 0;; ++round) {
      LATHE_CHECK(round < kMaxRounds, "decompositions are circular");
      LATHE_TRY(bool replaced, rewrite(unit.module, *graph, context.ops, "decompose", visit));
      if (!replaced) break;
      changed = Changed::yes;
    }
  }
  return changed;
}

}  // namespace
}  // namespace lathe
