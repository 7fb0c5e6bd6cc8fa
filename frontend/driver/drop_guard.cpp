// Asks the pass that made it.
#include "frontend/driver/drop_guard.h"

#include <utility>

namespace lathe {

DroppedGuard drop_guard(const Pipeline& pipeline, const std::vector<Guard>& guards,
                        const Guard& guard) {
  if (guard.pass.empty()) return {pipeline, "the file's: the graph is right for no other sizes"};
  DroppedGuard dropped;
  bool is_dropped = false;
  for (PipelineStep step : pipeline.steps) {
    const bool may_drop = step.pass->name == guard.pass && step.pass->drop_guard != nullptr;
    const WithoutGuard without =
        may_drop ? step.pass->drop_guard(step.options, guards, guard) : WithoutGuard::impossible;
    is_dropped = is_dropped || without != WithoutGuard::impossible;
    if (without != WithoutGuard::no_step) dropped.pipeline.steps.push_back(std::move(step));
  }
  if (!is_dropped)
    dropped.stays = guard.loc.is_unknown() ? "no option of the pipeline makes it"
                                           : "the graph means nothing at other sizes";
  return dropped;
}

}  // namespace lathe
