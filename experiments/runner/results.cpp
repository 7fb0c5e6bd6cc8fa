// The results file of a study.
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/runner/study.h"

namespace lathe {

namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity: an error without bound is null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json row_json(const StudyRow& row) {
  Json json;
  json["model"] = row.model;
  json["variant"] = row.variant;
  json["target"] = row.target;
  json["threads"] = row.threads;
  json["dtype"] = row.dtype;
  json["status"] = row.status();
  json["compile_ms"] = row.compile_ms;
  if (!row.tuning.empty()) json["tuning"] = row.tuning;
  json["median_ms"] = row.samples.median();
  json["p10_ms"] = row.samples.quantile(0.1);
  json["p90_ms"] = row.samples.quantile(0.9);
  json["kernels"] = row.kernels;
  if (row.tf32_launches > 0) json["tf32_launches"] = row.tf32_launches;
  json["peak_bytes"] = row.peak_bytes();
  json["gflops"] = row.gflops();
  json["max_abs_error"] = row.agreement ? number(row.agreement->max_abs_error) : Json(nullptr);
  json["rmse"] = row.agreement ? number(row.agreement->rmse) : Json(nullptr);
  json["rounded_rmse"] = row.agreement ? number(row.agreement->rounded_rmse) : Json(nullptr);
  if (!row.passed()) json["why"] = row.agreement->why;
  json["isa"] = row.isa;
  json["init_ms"] = row.init_ms;
  json["flops"] = row.flops;
  json["traffic_bytes"] = row.traffic_bytes;
  json["memory"] = {{"persistent_bytes", row.persistent_bytes},
                    {"in_place_bytes", row.in_place_bytes},
                    {"arena_bytes", row.arena_bytes},
                    {"init_arena_bytes", row.init_arena_bytes},
                    {"io_bytes", row.io_bytes},
                    {"process_peak_bytes", row.process_peak_bytes}};
  json["samples_ms"] = row.samples.milliseconds;
  return json;
}

}  // namespace

std::string to_json(const Study& study) {
  Json json;
  json["name"] = study.config.name;
  json["environment"] = {{"cpu", study.machine.cpu},
                         {"system", study.machine.system},
                         {"cores", study.machine.cores},
                         {"memory_bytes", study.machine.memory_bytes},
                         {"started", study.started}};
  json["config"] = Json::parse(print_config(study.config), nullptr, false);
  json["rows"] = Json::array();
  for (const StudyRow& row : study.rows) json["rows"].push_back(row_json(row));
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace lathe
