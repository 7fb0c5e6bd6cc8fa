// Launches beside the choices of their regions: see launches.h.
#include "frontend/driver/launches.h"

#include <map>
#include <string_view>

#include "ir/graph/text.h"
#include "nlohmann/json.hpp"

namespace lathe {

std::vector<LaunchRow> describe_launches(const Build& made, const Target& target,
                                         const std::vector<double>& seconds) {
  std::map<std::string_view, const KernelChoice*> choices;
  for (const PassRecord& record : made.lowered.report.passes)
    for (const KernelChoice& choice : record.choices) choices[choice.region] = &choice;
  const Program& program = made.program();
  const double weights = weight_bytes(program);
  std::vector<LaunchRow> rows;
  for (const Launch& launch : program.steps) {
    LaunchRow row{.launch = &launch, .price = predict(program, launch, target, weights)};
    if (rows.size() < seconds.size()) row.seconds = seconds[rows.size()];
    if (auto found = choices.find(launch.region); found != choices.end())
      row.choice = found->second;
    rows.push_back(row);
  }
  return rows;
}

std::string to_json(const std::vector<LaunchRow>& rows) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const LaunchRow& row : rows) {
    Json json = {{"label", row.launch->label},
                 {"seconds", row.seconds},
                 {"predicted", row.price.seconds},
                 {"arithmetic", row.price.arithmetic},
                 {"memory", row.price.memory},
                 {"limit", row.price.limit},
                 {"bound", bound_name(row.price.bound)},
                 {"flops", row.launch->flops},
                 {"bytes", row.launch->bytes}};
    if (row.choice != nullptr) {
      json["region"] = row.choice->region;
      json["kernel"] = print(row.choice->plan);
      json["candidates"] = Json::array();
      for (const KernelCandidate& candidate : row.choice->candidates) {
        Json one = {{"kernel", print(candidate.plan)}};
        if (candidate.why_not.empty())
          one["predicted"] = candidate.seconds;
        else
          one["why_not"] = candidate.why_not;
        json["candidates"].push_back(std::move(one));
      }
    }
    list.push_back(std::move(json));
  }
  return Json{{"launches", std::move(list)}}.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace lathe
