// What a run did, for programs (JSON) and people (one line per step), and the typed diff of graphs.
#include <set>

#include "fmt/format.h"
#include "ir/graph/text.h"
#include "nlohmann/json.hpp"
#include "passes/pipeline/choice_json.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

using Json = nlohmann::ordered_json;

namespace {

using NodeTable = std::map<std::string, std::pair<const Node*, std::string>>;  // name -> text

NodeTable table_of(const Module& module) {
  NodeTable table;
  for (const auto& graph : module.graphs)
    for (const auto& node : graph->nodes)
      table[graph->name + "." + node->name] = {node.get(), print(*node)};
  return table;
}

// The nodes of `graph` order in `of` that `other` lacks or prints differently.
std::vector<NodeChange> missing(const Module& of, const NodeTable& table, const NodeTable& other) {
  std::vector<NodeChange> changes;
  for (const auto& graph : of.graphs) {
    for (const auto& node : graph->nodes) {
      std::string key = graph->name + "." + node->name;
      const std::string& text = table.find(key)->second.second;
      auto twin = other.find(key);
      if (twin == other.end() || twin->second.second != text)
        changes.push_back({node->op->name, text, node->loc});
    }
  }
  return changes;
}

Json to_json(const std::vector<NodeChange>& changes) {
  Json list = Json::array();
  for (const NodeChange& change : changes)
    list.push_back({{"op", change.op}, {"text", change.text}, {"loc", change.loc.id}});
  return list;
}

Json to_json(const UnitSize& size) {
  return {{"nodes", size.nodes}, {"inside", size.inside}, {"launches", size.launches}};
}

Json to_json(const PassRecord& record) {
  Json json;
  json["pass"] = record.pass;
  json["occurrence"] = record.occurrence;
  json["options"] = record.options;
  json["skipped"] = record.skipped;
  json["changed"] = record.changed == Changed::yes;
  json["milliseconds"] = record.milliseconds;
  json["size_before"] = to_json(record.size_before);
  json["size_after"] = to_json(record.size_after);
  json["counters"] = record.counters;
  json["ops"] = record.ops_delta;
  Json refusals = Json::array();
  for (const Refusal& refusal : record.refusals)
    refusals.push_back({{"loc", refusal.loc.id}, {"message", refusal.message}});
  json["refusals"] = refusals;
  if (!record.choices.empty()) {
    json["choices"] = Json::array();
    for (const KernelChoice& choice : record.choices) {
      json["choices"].push_back(to_json(choice));
      json["choices"].back()["loc"] = choice.loc.id;
    }
  }
  json["removed"] = to_json(record.diff.removed);
  json["added"] = to_json(record.diff.added);
  if (!record.before.empty()) json["before"] = record.before;
  if (!record.after.empty()) json["after"] = record.after;
  return json;
}

}  // namespace

Json to_json(const KernelChoice& choice) {
  Json json{{"region", choice.region}, {"plan", print(choice.plan)}, {"forced", choice.is_forced}};
  json["candidates"] = Json::array();
  for (const KernelCandidate& candidate : choice.candidates) {
    const KernelPlan& plan = candidate.plan;
    Json one{{"plan", print(plan)}};
    if (!candidate.why_not.empty()) {
      one["why_not"] = candidate.why_not;
    } else {
      if (candidate.seconds > 0) one["predicted"] = candidate.seconds;
      for (const Override& line : overrides_for(choice.region, plan.kind, plan.tile))
        one["force"].push_back(line.text);
    }
    json["candidates"].push_back(std::move(one));
  }
  return json;
}

std::vector<const KernelChoice*> choices_of(const PipelineReport& report) {
  std::vector<const KernelChoice*> found;
  for (const PassRecord& record : report.passes)
    for (const KernelChoice& choice : record.choices) found.push_back(&choice);
  return found;
}

GraphDiff diff_graphs(const Module& before, const Module& after) {
  NodeTable old_table = table_of(before);
  NodeTable new_table = table_of(after);
  return {missing(before, old_table, new_table), missing(after, new_table, old_table)};
}

std::string to_json(const PipelineReport& report) {
  Json json;
  json["form"] = form_name(report.form);
  json["milliseconds"] = report.milliseconds;
  json["passes"] = Json::array();
  for (const PassRecord& record : report.passes) json["passes"].push_back(to_json(record));
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string size_change(const UnitSize& before, const UnitSize& after) {
  if (before.launches > 0) return fmt::format("{} launches", after.launches);
  if (after.launches > 0)
    return fmt::format("{} nodes -> {} launches", before.nodes, after.launches);
  std::string text = before.nodes == after.nodes
                         ? fmt::format("{} nodes", after.nodes)
                         : fmt::format("{} -> {} nodes", before.nodes, after.nodes);
  if (after.inside > 0) text += fmt::format(", {} inside", after.inside);
  return text;
}

std::string to_table(const PipelineReport& report) {
  std::string text;
  for (const PassRecord& record : report.passes) {
    std::string line = fmt::format("{:<22}", record.pass);
    if (record.skipped) {
      line += "(skipped)";
    } else if (record.changed == Changed::no) {
      line += fmt::format("{:<28} {:7.1f} ms", "(unchanged)", record.milliseconds);
    } else {
      line += fmt::format("{:<28} {:7.1f} ms", size_change(record.size_before, record.size_after),
                          record.milliseconds);
      for (const auto& [name, value] : record.counters)
        if (value != 0) line += fmt::format("  {} {}", name, value);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace lathe
