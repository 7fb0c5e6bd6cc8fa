// Milliseconds of the graph pipeline and of its dearest pass, for graphs given by their paths; what
// a node costs shows whether a pass is linear. Not a test: run it by hand.
//
//   bazel run //tests/bench:pass_bench -- $PWD/tests/zoo/*.json.gz
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "frontend/import/import.h"
#include "ir/op/all_ops.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

Status time_passes(const std::string& path) {
  LATHE_TRY(const ImportTable table, ImportTable::create(builtin_registry()));
  ImportOptions import_options;
  import_options.allow_missing_weights = true;
  LATHE_TRY(auto imported, import_model(path, table, builtin_registry(), import_options));
  LATHE_TRY(const Pipeline pipeline, parse_pipeline("graph"));
  Unit unit{std::move(imported.module), {}};
  PassContext context{builtin_registry(), *find_target("avx2")};
  const size_t num_nodes = unit.module.main().nodes.size();
  LATHE_TRY(const PipelineReport report, run_pipeline(unit, pipeline, {}, context));
  double total = 0;
  for (const PassRecord& record : report.passes) total += record.milliseconds;
  const auto dearest = std::max_element(
      report.passes.begin(), report.passes.end(),
      [](const PassRecord& a, const PassRecord& b) { return a.milliseconds < b.milliseconds; });
  fmt::print("{:>6} nodes {:>8.1f} ms {:>6.1f} us a node, {} {:.1f} ms: {}\n", num_nodes, total,
             1e3 * total / static_cast<double>(std::max<size_t>(num_nodes, 1)), dearest->pass,
             dearest->milliseconds, path);
  return Ok{};
}

}  // namespace
}  // namespace lathe

int main(int num_arguments, char** arguments) {
  for (int i = 1; i < num_arguments; ++i) {
    const lathe::Status timed = lathe::time_passes(arguments[i]);
    if (timed.ok()) continue;
    fmt::print(stderr, "{}: {}\n", arguments[i], timed.error().message);
    return 1;
  }
}
