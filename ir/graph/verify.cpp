// The verifier of graphs.
//
// Checks, for every graph and the bodies inside:
//  1. Names are made of letters, digits and '_', and are unique in their graph.
//  2. Params are nodes of op "param" with one result, no operands and not in place; no other node
//     has that op.
//  3. Operands are as the row says (count, lists, which may be omitted), are results that exist,
//     and are defined above their use in the same graph. Bodies see nothing from outside.
//  4. Attributes are aligned with the row and of its kinds.
//  5. Result types are possible (check_type) and, layouts aside, what the row infers; the first
//     result of an in-place node has its first operand's type.
//  6. A fused node has one body, without mutations, whose params have the operands' types and whose
//     outputs have the result types.
//  7. Outputs exist. A mutation has the dtype and shape of the param or weight that it names, which
//     no other one names.
//  8. A constant has either values or a name; those of one weight, and the module's, have one type.
//  9. Locations are rows of the module's table.
// 10. A symbol that a node binds is bound once, by a node of the function itself, and nothing above
//     has it.
// 11. The form: no in-place node from `functional` on; from `core` on no op that only has a
//     decomposition (contractions excepted: they lower through templates).
//
// Does not check: that weights exist (a text has none), that symbols have ranges, that a layout is
// useful, or that the ops of a fused body can be fused.
#include "ir/graph/verify.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "ir/graph/builder.h"
#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"
#include "ir/support/lexer.h"

namespace lathe {
namespace {

bool is_same_but_layout(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

Diag fault(const Node& node, const char* code, std::string message) {
  return Diag{code, node.loc, std::move(message)};
}

class Verifier {
 public:
  // `weights` collects the types of those that constants name, in bodies too.
  using WeightTypes = std::map<std::string, TensorType>;
  Verifier(const Module& module, const Graph& graph, Form form, WeightTypes& weights)
      : module_(module), graph_(graph), form_(form), weights_(weights) {}

  Status run() {
    for (const auto& param : graph_.params) {
      LATHE_DO(check_param(*param));
      LATHE_DO(define(*param));
    }
    for (const auto& node : graph_.nodes) {
      LATHE_DO(check_node(*node));
      LATHE_DO(define(*node));
    }
    LATHE_DO(check_bound_symbols());
    for (Value output : graph_.outputs)
      if (!is_defined(output)) return undefined("an output of the function", output);
    for (const Mutation& mutation : graph_.mutations) LATHE_DO(check_mutation(mutation));
    return Ok{};
  }

 private:
  Status define(const Node& node) {
    if (node.name.empty() || as_name(node.name) != node.name)
      return fault(node, code::kBadForm, fmt::format("'{}' is no name for a node", node.name));
    if (!names_.insert(node.name).second)
      return fault(node, code::kRedefinedValue, fmt::format("two nodes are named '{}'", node.name));
    if (!defined_.insert(&node).second)
      return fault(node, code::kRedefinedValue,
                   fmt::format("node '{}' stands in the graph twice", node.name));
    if (node.loc.id >= module_.locs.size())
      return Diag{code::kBadForm, Loc::unknown(),
                  fmt::format("node '{}' has a location of another table", node.name)};
    return Ok{};
  }

  bool is_defined(Value value) const {
    return value && defined_.count(value.node) != 0 && value.index >= 0 &&
           static_cast<size_t>(value.index) < value.node->types.size();
  }

  // The node behind an undefined value may be gone, so nothing of it is printed.
  Diag undefined(const std::string& user, Value value) const {
    return Diag{code::kUndefinedValue, Loc::unknown(),
                fmt::format("{} {}", user,
                            value ? "is not defined above its use in its graph" : "is missing")};
  }

  Status check_bound_symbols() const {
    std::set<std::string> unbound;
    for (std::string& symbol : graph_.bound_symbols())
      if (!unbound.insert(symbol).second)
        return Diag{code::kRedefinedValue, Loc::unknown(),
                    fmt::format("two nodes bind the size '{}'", symbol)};
    if (unbound.empty()) return Ok{};
    const auto check = [&](const Node& node) -> Status {
      const std::string own = node.bound_symbol();
      std::vector<std::string> names;
      collect_symbols(node, names);
      for (const std::string& name : names)
        if (name != own && unbound.contains(name))
          return fault(
              node, code::kUndefinedValue,
              fmt::format("'{}' has the size '{}', which a node below binds", node.name, name));
      unbound.erase(own);
      for (const auto& body : node.bodies)
        if (!body->bound_symbols().empty())
          return fault(node, code::kBadForm, fmt::format("a body of '{}' binds a size", node.name));
      return Ok{};
    };
    for (const auto& param : graph_.params) LATHE_DO(check(*param));
    for (const auto& node : graph_.nodes) LATHE_DO(check(*node));
    return Ok{};
  }

  Status check_param(const Node& node) const {
    if (node.op == nullptr || node.op->name != kParamOp || node.in_place ||
        node.types.size() != 1 || !node.operands.empty())
      return fault(node, code::kBadForm, fmt::format("'{}' is no param", node.name));
    return check_type_of(node);
  }

  Status check_type_of(const Node& node) const {
    for (const TensorType& type : node.types) {
      Status status = check_type(type);
      if (!status.ok()) return fault(node, status.error().code.c_str(), status.error().message);
    }
    return Ok{};
  }

  Status check_node(const Node& node) const {
    LATHE_CHECK(node.op != nullptr, fmt::format("node '{}' has no row", node.name));
    if (node.op->name == kParamOp)
      return fault(node, code::kBadForm,
                   fmt::format("param '{}' stands among the nodes", node.name));
    LATHE_DO(check_operands(node));
    LATHE_DO(check_attrs(node));
    LATHE_DO(check_form(node));
    for (const auto& body : node.bodies) LATHE_DO(Verifier(module_, *body, form_, weights_).run());
    if (node.op->name == kFusedOp) LATHE_DO(check_fused(node));
    if (node.op->name == kConstantOp) LATHE_DO(check_constant(node));
    return check_results(node);
  }

  Status check_operands(const Node& node) const {
    size_t position = 0;
    size_t list = 0;
    for (const OperandSpec& spec : node.op->operands) {
      size_t count = 1;
      if (spec.is_list()) {
        if (list >= node.list_sizes.size() || node.list_sizes[list] < 0)
          return fault(node, code::kOperandCount,
                       fmt::format("'{}' has no size for its list '{}'", node.name, spec.name));
        count = static_cast<size_t>(node.list_sizes[list++]);
      }
      for (size_t i = 0; i < count; ++i, ++position) {
        if (position >= node.operands.size())
          return fault(node, code::kOperandCount,
                       fmt::format("'{}' lacks its operand '{}'", node.name, spec.name));
        const Value value = node.operands[position];
        if (!value && spec.is_optional()) continue;
        if (is_defined(value)) continue;
        Diag diag = undefined(fmt::format("operand '{}' of '{}'", spec.name, node.name), value);
        diag.loc = node.loc;
        return diag;
      }
    }
    if (position != node.operands.size() || list != node.list_sizes.size())
      return fault(node, code::kOperandCount,
                   fmt::format("'{}' has {} operands, its row takes {}", node.name,
                               node.operands.size(), position));
    return Ok{};
  }

  Status check_attrs(const Node& node) const {
    const auto& specs = node.op->attrs;
    if (node.attrs.size() != specs.size())
      return fault(node, code::kAttribute,
                   fmt::format("'{}' has {} attributes, its row has {}", node.name,
                               node.attrs.size(), specs.size()));
    for (size_t i = 0; i < specs.size(); ++i) {
      // Comparing kinds, not values: NaN differs from itself.
      const Result<Attr> wanted = convert_attr(*node.op, specs[i], node.attrs[i]);
      if (!wanted.ok() || wanted->index() != node.attrs[i].index())
        return fault(node, code::kAttribute,
                     fmt::format("attribute '{}' of '{}' is {}, which is of the wrong kind",
                                 specs[i].name, node.name, print(node.attrs[i])));
    }
    return Ok{};
  }

  Status check_form(const Node& node) const {
    if (form_ >= Form::functional && node.in_place)
      return fault(node, code::kBadForm,
                   fmt::format("'{}_' is in place, which the form '{}' does not have",
                               node.op->name, form_name(form_)));
    const bool only_decomposes =
        node.op->decompose && !node.op->lower && node.op->traits.op_class != OpClass::contraction;
    if (form_ >= Form::core && only_decomposes)
      return fault(node, code::kBadForm,
                   fmt::format("'{}' only has a decomposition, which the form '{}' does not have",
                               node.op->name, form_name(form_)));
    return Ok{};
  }

  Status check_fused(const Node& node) const {
    if (node.bodies.size() != 1)
      return fault(node, code::kBadForm,
                   fmt::format("'{}' must have one body, has {}", node.name, node.bodies.size()));
    const Graph& body = *node.bodies.front();
    if (!body.mutations.empty())
      return fault(node, code::kBadForm, fmt::format("the body of '{}' has mutations", node.name));
    bool is_same = body.params.size() == node.operands.size();
    for (size_t i = 0; is_same && i < body.params.size(); ++i)
      is_same = node.operands[i] &&
                is_same_but_layout(body.params[i]->types.front(), node.operands[i].type());
    if (!is_same)
      return fault(node, code::kTypeMismatch,
                   fmt::format("the params of the body of '{}' are not its operands", node.name));
    is_same = body.outputs.size() == node.types.size();
    for (size_t i = 0; is_same && i < node.types.size(); ++i)
      is_same = is_same_but_layout(body.outputs[i].type(), node.types[i]);
    if (!is_same)
      return fault(node, code::kTypeMismatch,
                   fmt::format("the outputs of the body of '{}' are not its results", node.name));
    return Ok{};
  }

  Status check_constant(const Node& node) const {
    if (node.is_none("name") == node.is_none("value"))
      return fault(node, code::kAttribute,
                   fmt::format("constant '{}' must have either 'name' or 'value'", node.name));
    if (node.is_none("name") || node.types.size() != 1) return Ok{};
    const std::string name = node.string_attr("name");
    if (!node.types.front().is_static())
      return fault(node, code::kTypeMismatch,
                   fmt::format("weight '{}' is {}, expected numbers for its sizes", name,
                               to_string(node.types.front())));
    const TensorType* known = weight_type(name);
    if (known == nullptr) known = &weights_.emplace(name, node.types.front()).first->second;
    if (is_same_but_layout(*known, node.types.front())) return Ok{};
    return fault(node, code::kTypeMismatch,
                 fmt::format("weight '{}' is {}, but constant '{}' says {}", name,
                             to_string(*known), node.name, to_string(node.types.front())));
  }

  Status check_results(const Node& node) const {
    if (node.op->num_results >= 0 && node.types.size() != static_cast<size_t>(node.op->num_results))
      return fault(node, code::kTypeMismatch,
                   fmt::format("'{}' has {} results, its row has {}", node.name, node.types.size(),
                               node.op->num_results));
    LATHE_DO(check_type_of(node));
    if (!node.op->infer) return Ok{};
    Result<std::vector<TensorType>> inferred = node.op->infer.function(node);
    if (!inferred.ok()) {
      Diag diag = std::move(inferred).error();
      if (diag.loc.is_unknown()) diag.loc = node.loc;
      return diag;
    }
    if (node.in_place && !inferred->empty() && !node.operands.empty() && node.operands.front())
      inferred->front().dtype = node.operands.front().type().dtype;
    bool is_same = inferred->size() == node.types.size();
    for (size_t i = 0; is_same && i < node.types.size(); ++i)
      is_same = is_same_but_layout((*inferred)[i], node.types[i]);
    if (is_same) return Ok{};
    std::string types;
    for (const TensorType& type : *inferred) types += (types.empty() ? "" : ", ") + to_string(type);
    Diag diag = fault(node, code::kTypeMismatch,
                      fmt::format("'{}' must have the type {}", node.name, types));
    diag.rows.push_back(print(node));
    return diag;
  }

  // Null when neither the module has it nor a constant so far names it.
  const TensorType* weight_type(const std::string& name) const {
    if (const auto weight = module_.weights.find(name); weight != module_.weights.end())
      return &weight->second.data.type;
    const auto named = weights_.find(name);
    return named == weights_.end() ? nullptr : &named->second;
  }

  const TensorType* param_type(const std::string& name) const {
    for (const auto& param : graph_.params)
      if (param->name == name) return &param->types.front();
    return nullptr;
  }

  Status check_mutation(const Mutation& mutation) {
    const std::string what = fmt::format("the new contents of '{}'", mutation.target);
    if (!is_defined(mutation.value)) return undefined(what, mutation.value);
    const Loc loc = mutation.value.node->loc;
    if (!written_.insert({mutation.is_input, mutation.target}).second)
      return Diag{code::kRedefinedValue, loc,
                  fmt::format("two mutations write '{}'", mutation.target)};
    const TensorType* type =
        mutation.is_input ? param_type(mutation.target) : weight_type(mutation.target);
    if (type == nullptr && mutation.is_input)
      return Diag{code::kUndefinedValue, loc,
                  fmt::format("no input is named '{}', which a mutation writes", mutation.target)};
    if (type == nullptr || is_same_but_layout(*type, mutation.value.type())) return Ok{};
    return Diag{code::kTypeMismatch, loc,
                fmt::format("{} are {}, the {} is {}", what, to_string(mutation.value.type()),
                            mutation.is_input ? "input" : "weight", to_string(*type))};
  }

  const Module& module_;
  const Graph& graph_;
  Form form_;
  WeightTypes& weights_;
  std::set<std::pair<bool, std::string>> written_;  // by mutations
  std::unordered_set<std::string> names_;
  std::unordered_set<const Node*> defined_;
};

}  // namespace

std::string_view form_name(Form form) {
  switch (form) {
    case Form::imported:
      return "imported";
    case Form::functional:
      return "functional";
    case Form::core:
      return "core";
    case Form::fused:
      return "fused";
    case Form::loops:
      return "loops";
    case Form::planned:
      return "planned";
  }
  return "unknown";
}

Status verify(const Module& module, const Graph& graph, Form form) {
  std::map<std::string, TensorType> weights;
  return Verifier(module, graph, form, weights).run();
}

}  // namespace lathe
