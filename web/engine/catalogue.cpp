// "about" and "catalogue": what the engine knows, from the rows themselves.
#include <fmt/format.h>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "web/engine/engine.h"
#include "web/engine/op_class.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

Json attrs_json(const OpDef& op) {
  Json list = Json::array();
  for (const AttrSpec& attr : op.attrs) {
    Json one{{"name", attr.name}, {"optional", attr.is_optional}};
    if (attr.default_value.index() != 0) one["default"] = print(attr.default_value);
    if (!attr.doc.empty()) one["doc"] = attr.doc;
    list.push_back(std::move(one));
  }
  return list;
}

template <class Function>
void put_slot(Json& slots, const char* name, const Slot<Function>& slot) {
  slots[name] = slot ? Json(true) : Json(std::string(slot.why));
}

Json op_json(const OpDef& op) {
  Json json{{"name", op.name}, {"summary", op.summary}};
  if (!op.doc.empty()) json["doc"] = op.doc;
  json["class"] = op_class_name(op.traits.op_class);
  json["operands"] = Json::array();
  for (const OperandSpec& operand : op.operands)
    json["operands"].push_back(
        {{"name", operand.name}, {"list", operand.is_list()}, {"optional", operand.is_optional()}});
  json["attrs"] = attrs_json(op);
  // True, or the sentence that says why there is none.
  Json slots;
  put_slot(slots, "reference", op.reference);
  put_slot(slots, "decompose", op.decompose);
  put_slot(slots, "lower", op.lower);
  put_slot(slots, "derivative", op.derivative);
  json["slots"] = std::move(slots);
  json["imports"] = Json::array();
  for (const Import& import : op.imports) json["imports"].push_back(import.schema);
  return json;
}

Json pass_json(const PassDef& pass) {
  Json json{{"name", pass.name},
            {"summary", pass.summary},
            {"needs", form_name(pass.needs)},
            {"leaves", form_name(pass.leaves)},
            {"counters", pass.counters},
            {"example", pass.example}};
  json["options"] = Json::array();
  for (const PassOption& option : pass.options)
    json["options"].push_back(
        {{"name", option.name}, {"default", option.default_value}, {"doc", option.doc}});
  return json;
}

Json pipeline_json(const NamedPipeline& pipeline) {
  Json json{{"name", pipeline.name}, {"summary", pipeline.summary}};
  json["steps"] = Json::array();
  for (const StepReason& step : pipeline.steps)
    json["steps"].push_back({{"step", step.step}, {"why", step.why}});
  return json;
}

}  // namespace

Result<Answer> handle_about(Workspace&, const Request&) {
  Answer answer;
  answer.json["version"] = static_cast<int>(kLatheEngineVersion);
  answer.json["targets"] = target_names();
  answer.json["ops"] = builtin_registry().rows().size();
  answer.json["passes"] = builtin_passes().size();
  return answer;
}

Result<Answer> handle_catalogue(Workspace&, const Request&) {
  Answer answer;
  Json& json = answer.json;
  json["ops"] = Json::array();
  for (const OpDef& op : builtin_registry().rows()) json["ops"].push_back(op_json(op));
  json["passes"] = Json::array();
  for (const PassDef& pass : builtin_passes()) json["passes"].push_back(pass_json(pass));
  json["pipelines"] = Json::array();
  for (const NamedPipeline& pipeline : pipelines())
    json["pipelines"].push_back(pipeline_json(pipeline));
  return answer;
}

}  // namespace lathe
