#include "frontend/api/model_source.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/driver/files.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Whether the place of the last element can be counted in bytes.
bool has_reach(const TensorData& data) {
  double reach = 1;
  for (size_t d = 0; d < data.strides.size(); ++d)
    reach += static_cast<double>(data.type.shape[d].value()) * static_cast<double>(data.strides[d]);
  return reach < 0x1p60;
}

Result<GivenWeight> given_weight(const lathe_weight& from) {
  const auto refuse = [&](const char* why) {
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("weight '{}' {}", from.name == nullptr ? "" : from.name, why)};
  };
  if (from.name == nullptr) return refuse("has no name");
  int32_t dtype = 0;  // a caller's may be none of the enum
  static_assert(sizeof dtype == sizeof from.dtype);
  std::memcpy(&dtype, &from.dtype, sizeof dtype);
  if (dtype < LATHE_BOOL || dtype > LATHE_F64) return refuse("has no dtype of lathe.h");
  if (from.rank < 0 || (from.rank > 0 && (from.shape == nullptr || from.strides == nullptr)))
    return refuse("has no shape");
  GivenWeight weight{.name = from.name};
  TensorData& data = weight.data;
  data.type.dtype = static_cast<DType>(dtype);
  for (int32_t d = 0; d < from.rank; ++d) {
    if (from.shape[d] < 0 || from.strides[d] < 0) return refuse("has a negative extent or stride");
    data.type.shape.emplace_back(from.shape[d]);
    data.strides.push_back(from.strides[d]);
  }
  if (!data.type.static_elements() || !has_reach(data)) return refuse("is too large");
  if (from.data == nullptr && *data.type.static_elements() > 0) return refuse("has no memory");
  static const std::byte kEmpty[1] = {};
  data.bytes = from.data == nullptr ? kEmpty : static_cast<const std::byte*>(from.data);
  data.num_bytes = static_cast<size_t>(range_of(data, 0).end);
  return weight;
}

}  // namespace

Result<ModelSource> given_source(const char* json, uint64_t size, const lathe_weight* weights,
                                 int32_t count) {
  if (json == nullptr || count < 0 || (weights == nullptr && count > 0))
    return Diag{code::kBadValue, Loc::unknown(), "a graph or its weights are null"};
  ModelSource source;
  FileBytes bytes{reinterpret_cast<const std::byte*>(json), static_cast<size_t>(size)};
  LATHE_TRY(source.graph, pt2::open_model(bytes, "the graph"));
  for (int32_t i = 0; i < count; ++i) {
    LATHE_TRY(GivenWeight weight, given_weight(weights[i]));
    source.weights.push_back(std::move(weight));
  }
  return source;
}

std::string refusals_json(const ModelSource& source, bool is_imported, const Diag& diag,
                          const LocTable& locs) {
  std::vector<RefusedCall> refusals;
  const LocRow& row = locs[locs.origin(diag.loc)];
  if (is_imported) {
    if (!row.fx_node.empty())
      refusals.push_back({row.fx_node, row.fx_target, diag.message, diag.code});
  } else if (source.graph) {
    Result<std::vector<RefusedCall>> found = find_refused_calls(*source.graph);
    if (found.ok()) refusals = *std::move(found);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const RefusedCall& refusal : refusals)
    rows.push_back({{"node", refusal.node},
                    {"target", refusal.target},
                    {"reason", refusal.reason},
                    {"code", refusal.code}});
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Model> open_source(const ModelSource& source, const CompileRequest& request,
                          LocTable& locs) {
  if (source.graph) return load_model(*source.graph, source.weights, model_options(request), locs);
  LATHE_TRY(std::string found, find_model(request.model));
  return load_model(found, model_options(request), locs);
}

}  // namespace lathe
