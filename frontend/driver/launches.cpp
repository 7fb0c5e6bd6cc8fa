// Launches beside the choices of their regions: see launches.h.
#include "frontend/driver/launches.h"

#include <map>
#include <string_view>

#include "ir/program/formulas.h"
#include "nlohmann/json.hpp"
#include "passes/pipeline/choice_json.h"

namespace lathe {

using Json = nlohmann::ordered_json;

std::vector<LaunchRow> describe_launches(const Program& program,
                                         const std::vector<const KernelChoice*>& choices,
                                         const Target& target, const std::vector<double>& seconds) {
  std::map<std::string_view, const KernelChoice*> by_region;
  for (const KernelChoice* choice : choices) by_region[choice->region] = choice;
  const double weights = weight_bytes(program);
  std::vector<LaunchRow> rows;
  for (const Launch& launch : program.steps) {
    LaunchRow row{.launch = &launch, .price = predict(program, launch, target, weights)};
    if (rows.size() < seconds.size()) row.seconds = seconds[rows.size()];
    if (auto found = by_region.find(launch.region); found != by_region.end())
      row.choice = found->second;
    rows.push_back(row);
  }
  return rows;
}

Json to_json(const LaunchRow& row) {
  const Launch& launch = *row.launch;
  Json json{
      {"label", launch.label}, {"flops", launch.flops.value()}, {"bytes", launch.bytes.value()}};
  if (!launch.region.empty()) json["region"] = launch.region;
  if (row.seconds > 0) json["seconds"] = row.seconds;
  if (row.price.seconds > 0) {
    json["predicted"] = row.price.seconds;
    json["arithmetic"] = row.price.arithmetic;
    json["memory"] = row.price.memory;
    json["limit"] = row.price.limit;
    json["bound"] = bound_name(row.price.bound);
  }
  if (row.choice != nullptr) json.update(to_json(*row.choice));
  return json;
}

namespace {

Json formulas_json(const Program& symbolic) {
  const CostFormulas costs = cost_formulas(symbolic);
  Json alive = Json::array(), launches = Json::array();
  for (const Dim& bytes : costs.alive) alive.push_back(bytes.str());
  for (const Launch& step : symbolic.steps)
    launches.push_back({{"flops", step.flops.str()}, {"bytes", step.bytes.str()}});
  return {{"flops", costs.flops.str()},
          {"bytes", costs.bytes.str()},
          {"alive", std::move(alive)},
          {"launches", std::move(launches)}};
}

}  // namespace

std::string to_json(const std::vector<LaunchRow>& rows, const Program* symbolic) {
  Json list = Json::array();
  for (const LaunchRow& row : rows) list.push_back(to_json(row));
  Json document{{"launches", std::move(list)}};
  if (symbolic != nullptr) document["formulas"] = formulas_json(*symbolic);
  return document.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace lathe
