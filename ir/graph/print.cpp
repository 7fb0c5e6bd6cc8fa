// The text form of modules, canonical. parse.cpp reads exactly this grammar; lexer.h has the
// tokens.
//
//   module   = { size } { guard } { func } [ locs ]
//   size     = "dim" NAME [ "in" "[" bound "," bound "]" ] [ "hint" INT ]
//   bound    = INT | "inf" | "-" "inf"
//   guard    = "guard" size expression ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) size expression
//              [ "because" STRING ] [ "by" NAME ] [ at ]
//   func     = "func" "@" NAME "(" params ")" [ "->" types ] "{" code "}"
//   params   = [ VALUE ":" type [ at ] { "," VALUE ":" type [ at ] } ]
//   code     = { stmt } "return" [ VALUE { "," VALUE } ] { "mutates" ( STRING | VALUE ) "=" VALUE }
//   stmt     = [ VALUE { "," VALUE } "=" ] op "(" [ arg { "," arg } ] ")" [ attrs ] { body }
//              [ ":" types ] [ "using" plan ] [ at ]
//   plan     = NAME [ "{" "tile" "=" "[" INT "," INT "]" "}" ]  // a kind of kernel
//   op       = NAME                        // a row's name, with "_" after it when in place
//   arg      = VALUE | "none" | "[" [ arg { "," arg } ] "]"
//   attrs    = "{" NAME "=" attr { "," NAME "=" attr } "}"
//   attr     = "none" | "true" | "false" | number | STRING | dtype | size expression | layout
//            | "[" [ attr { "," attr } ] "]"
//   body     = "{" "(" params ")" code "}"
//   types    = type { "," type }
//   type     = dtype "[" [ size expression { "," size expression } ] "]" [ layout ]
//   layout   = "layout" "(" INT { "," INT } ")"
//   at       = "@" INT                     // a row of the locs table
//   locs     = "locs" "{" { "@" INT "=" location } "}"
//   location = "python" STRING STRING STRING STRING {
//              ( "at" | "from" ) STRING ":" INT STRING STRING }
//            | "text" STRING ":" INT ":" INT STRING
//            | "derived" STRING "[" [ "@" INT { "," "@" INT } ] "]"
//
// The strings of a python location are FX node, target, module path and module class; its frames,
// innermost first, have file, line, function and code. Result i > 0 of node %n is %n.i. Attributes
// that have their default and trailing omitted operands are not printed.
#include <fmt/format.h>

#include <optional>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/text.h"
#include "ir/support/lexer.h"

namespace lathe {
namespace {

constexpr size_t kMaxColumns = 100;

template <class List, class F>
std::string join(const List& list, F spell) {
  std::string text;
  for (const auto& element : list) {
    if (!text.empty()) text += ", ";
    text += spell(element);
  }
  return text;
}

// Locations of a module, numbered from 1 in the order of their ids, so that derived rows follow
// the rows they come from.
class LocNumbers {
 public:
  explicit LocNumbers(const Module& module) : locs_(module.locs) {
    std::set<Loc> reachable;
    for (const Guard& guard : module.guards) collect({guard.loc}, reachable);
    for (const auto& graph : module.graphs) collect(*graph, reachable);
    for (Loc loc : reachable) numbers_.emplace(loc, numbers_.size() + 1);
  }

  std::string at(Loc loc) const {
    return loc.is_unknown() ? "" : fmt::format(" @{}", numbers_.at(loc));
  }

  std::string table() const {
    std::string out = "\nlocs {\n";
    for (const auto& [loc, number] : numbers_)
      out += fmt::format("  @{} = {}\n", number, spell(locs_[loc]));
    return out + "}\n";
  }

 private:
  void collect(const Graph& graph, std::set<Loc>& reachable) {
    std::vector<Loc> pending;
    for (const auto& param : graph.params) pending.push_back(param->loc);
    for (const auto& node : graph.nodes) {
      pending.push_back(node->loc);
      for (const auto& body : node->bodies) collect(*body, reachable);
    }
    collect(std::move(pending), reachable);
  }

  // With what they are derived from.
  void collect(std::vector<Loc> pending, std::set<Loc>& reachable) {
    while (!pending.empty()) {
      const Loc loc = pending.back();
      pending.pop_back();
      if (loc.is_unknown() || !reachable.insert(loc).second) continue;
      const LocRow& row = locs_[loc];
      pending.insert(pending.end(), row.from.begin(), row.from.end());
    }
  }

  std::string spell(const LocRow& row) const {
    if (row.kind == LocRow::Kind::text)
      return fmt::format("text {}:{}:{} {}{}", quote(row.file), row.line, row.column,
                         quote(row.source_line),
                         row.source_begin > 0 ? fmt::format(" behind {}", row.source_begin) : "");
    if (row.kind == LocRow::Kind::derived) {
      std::vector<std::string> numbers;
      for (Loc from : row.from)
        if (!from.is_unknown()) numbers.push_back(at(from).substr(1));
      return fmt::format("derived {} [{}]", quote(row.by), fmt::join(numbers, ", "));
    }
    std::string text = fmt::format("python {} {} {} {}", quote(row.fx_node), quote(row.fx_target),
                                   quote(row.module_path), quote(row.module_class));
    const char* word = "at";
    for (int32_t i = row.frame; i >= 0; i = locs_.frame_parent(i)) {
      const Frame& frame = locs_.frame(i);
      text += fmt::format(" {} {}:{} {} {}", word, quote(frame.file), frame.line,
                          quote(frame.function), quote(frame.code));
      word = "from";
    }
    return text;
  }

  const LocTable& locs_;
  std::map<Loc, size_t> numbers_;
};

std::string spell(Value value) {
  if (!value) return "none";
  std::string text = "%" + value.node->name;
  if (value.index > 0) text += fmt::format(".{}", value.index);
  return text;
}

std::string spell_types(const std::vector<TensorType>& types) {
  return join(types, [](const TensorType& type) { return to_string(type); });
}

std::string spell_values(std::span<const Value> values) {
  return join(values, [](Value value) { return spell(value); });
}

std::string spell_operands(const Node& node) {
  const auto& specs = node.op->operands;
  std::vector<std::string> args;
  for (size_t i = 0; i < specs.size(); ++i) {
    const int position = static_cast<int>(i);
    if (specs[i].is_list())
      args.push_back("[" + spell_values(node.operand_list(position)) + "]");
    else
      args.push_back(spell(node.operand(position)));
  }
  while (!args.empty() && args.back() == "none") args.pop_back();
  return join(args, [](const std::string& arg) { return arg; });
}

// " {dim = -1}", or "" when every attribute has its default.
std::string spell_attrs(const Node& node) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < node.op->attrs.size() && i < node.attrs.size(); ++i) {
    const AttrSpec& spec = node.op->attrs[i];
    const Result<Attr> usual = convert_attr(*node.op, spec, spec.default_value);
    if (usual.ok() && *usual == node.attrs[i]) continue;
    parts.push_back(fmt::format("{} = {}", spec.name, print(node.attrs[i])));
  }
  if (parts.empty()) return "";
  return " {" + join(parts, [](const std::string& part) { return part; }) + "}";
}

class Printer {
 public:
  explicit Printer(const LocNumbers* locs = nullptr) : locs_(locs) {}

  std::string function(const Graph& graph) const {
    std::vector<TensorType> types;
    for (Value output : graph.outputs) types.push_back(output.type());
    const std::string results = types.empty() ? "" : " -> " + spell_types(types);
    const std::string head = fmt::format("func @{}(", as_name(graph.name));
    return head + params(graph, head.size() + results.size() + 4, "") + ")" + results + " {\n" +
           code(graph, "  ") + "}\n";
  }

  std::string statement(const Node& node, const std::string& indent, bool with_bodies) const {
    std::string text;
    for (size_t i = 0; i < node.types.size(); ++i)
      text += (i == 0 ? "" : ", ") + spell(Value{const_cast<Node*>(&node), static_cast<int>(i)});
    if (!text.empty()) text += " = ";
    text += node.op->name;
    if (node.in_place) text += '_';
    text += "(" + spell_operands(node) + ")" + spell_attrs(node);
    for (const auto& body : node.bodies) text += with_bodies ? block(*body, indent) : " {...}";
    if (!node.types.empty()) text += " : " + spell_types(node.types);
    if (node.plan) text += " using " + print(*node.plan);
    return text + at(node.loc);
  }

 private:
  std::string at(Loc loc) const { return locs_ == nullptr ? "" : locs_->at(loc); }

  // On one line, or one line each when that line would be too long beside `others` characters.
  std::string params(const Graph& graph, size_t others, const std::string& indent) const {
    std::vector<std::string> parts;
    size_t width = others;
    for (const auto& param : graph.params) {
      parts.push_back(fmt::format("{}: {}{}", spell(param->result()),
                                  to_string(param->types.front()), at(param->loc)));
      width += parts.back().size() + 2;
    }
    if (width <= kMaxColumns || parts.size() < 2)
      return join(parts, [](const std::string& part) { return part; });
    std::string text;
    for (const std::string& part : parts)
      text += fmt::format("{}\n{}    {}", text.empty() ? "" : ",", indent, part);
    return text;
  }

  std::string code(const Graph& graph, const std::string& indent) const {
    std::string text;
    for (const auto& node : graph.nodes) text += indent + statement(*node, indent, true) + "\n";
    text += indent + "return";
    if (!graph.outputs.empty()) text += " " + spell_values(graph.outputs);
    text += "\n";
    for (const Mutation& mutation : graph.mutations)
      text += fmt::format("{}mutates {} = {}\n", indent,
                          mutation.is_input ? "%" + mutation.target : quote(mutation.target),
                          spell(mutation.value));
    return text;
  }

  std::string block(const Graph& body, const std::string& indent) const {
    const std::string inner = indent + "  ";
    return " {\n" + inner + "(" + params(body, inner.size() + 2, inner) + ")\n" +
           code(body, inner) + indent + "}";
  }

  const LocNumbers* locs_;
};

struct AttrSpeller {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return spell_real(value); }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(DType value) const { return std::string(dtype_name(value)); }
  std::string operator()(const Dim& value) const { return value.str(); }
  std::string operator()(const Layout& value) const {
    return fmt::format("layout({})", fmt::join(value, ", "));
  }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return "[" + join(list, [&](const auto& element) { return (*this)(T(element)); }) + "]";
  }
};

}  // namespace

std::string print(const KernelPlan& plan) {
  if (plan.tile.empty()) return as_name(plan.kind);
  return fmt::format("{} {{tile = [{}]}}", as_name(plan.kind), fmt::join(plan.tile, ", "));
}

std::string print(const Attr& attr) { return std::visit(AttrSpeller(), attr); }

std::string print(const Node& node) { return Printer().statement(node, "", false); }

std::string print(const Graph& graph) { return Printer().function(graph); }

std::string print(const Module& module, const PrintOptions& options) {
  std::map<std::string, std::string> sizes;
  for (const auto& [name, range] : module.dims) sizes[name] = " in " + to_string(range);
  for (const auto& [name, hint] : module.hints) sizes[name] += fmt::format(" hint {}", hint);
  std::string text;
  for (const auto& [name, rest] : sizes) text += fmt::format("dim {}{}\n", name, rest);
  std::optional<LocNumbers> locs;
  if (options.locations) locs.emplace(module);
  for (const Guard& guard : module.guards)
    text += fmt::format("guard {}{}\n", spell_known(guard), locs ? locs->at(guard.loc) : "");
  const Printer printer(locs ? &*locs : nullptr);
  for (const auto& graph : module.graphs)
    text += (text.empty() ? "" : "\n") + printer.function(*graph);
  if (locs) text += locs->table();
  return text;
}

}  // namespace lathe
