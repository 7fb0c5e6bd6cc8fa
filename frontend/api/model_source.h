// Where a model of the C ABI comes from, and which of its calls are to blame when it cannot be had.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/api/lathe.h"
#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "frontend/pt2/archive.h"
#include "ir/support/result.h"

namespace lathe {

// A file, or a graph in the caller's memory, which must outlive this; its weights must outlive the
// model.
struct ModelSource {
  const char* path = nullptr;
  std::optional<pt2::ModelFile> graph = {};
  std::vector<GivenWeight> weights = {};

  // What stands for the path in requests and messages.
  const char* name() const { return graph ? "the graph" : path; }
};

// As lathe_load_memory has it; kBadValue for what is no weight.
Result<ModelSource> given_source(const char* json, uint64_t size, const lathe_weight* weights,
                                 int32_t count);

Result<Model> open_source(const ModelSource& source, const CompileRequest& request,
                          LocTable& locs_on_error);

// lathe_refusals of a failure, which refers to `locs`. A model that was not imported is imported
// again, to find all calls that it lacks.
std::string refusals_json(const ModelSource& source, bool is_imported, const Diag& diag,
                          const LocTable& locs);

}  // namespace lathe
