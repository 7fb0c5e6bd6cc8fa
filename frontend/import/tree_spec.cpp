// Reads pytree specs.
#include <fmt/format.h>

#include <utility>

#include "frontend/file/json.h"
#include "frontend/import/signature.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using json::Kind;
using json::MaybeValue;

struct TypeName {
  std::string_view name;
  TreeSpec::Kind kind;
};
constexpr TypeName kTypes[] = {
    {"builtins.tuple", TreeSpec::Kind::tuple},
    {"builtins.list", TreeSpec::Kind::list},
    {"builtins.dict", TreeSpec::Kind::dict},
    {"collections.OrderedDict", TreeSpec::Kind::ordered_dict},
    {"collections.defaultdict", TreeSpec::Kind::default_dict},
    {"collections.namedtuple", TreeSpec::Kind::named_tuple},
    {"collections.deque", TreeSpec::Kind::deque},
};

class Parser {
 public:
  Parser(LocTable& locs, const std::vector<NamedTupleFields>& fields)
      : locs_(locs), fields_(fields) {}

  // Recursion is as deep as the JSON, whose depth its parser bounds.
  Result<TreeSpec> spec(json::Value value) {
    MaybeValue type = value.member("type"), children = value.member("children_spec");
    if (!type || !children || (*children).kind() != Kind::array)
      return fail(value, "expected an object with \"type\" and \"children_spec\"");
    TreeSpec spec;
    if ((*type).is_null()) {
      if ((*children).size() != 0) return fail(value, "a leaf has no children");
      return spec;
    }
    if ((*type).kind() != Kind::string) return fail(*type, "a type is a string or null");
    spec.type = (*type).string();
    spec.kind = TreeSpec::Kind::other;
    for (const TypeName& known : kTypes)
      if (spec.type == known.name) spec.kind = known.kind;
    for (json::Value child : (*children).elements()) {
      auto read = this->spec(child);
      if (!read.ok()) return read.error();
      spec.children.push_back(*std::move(read));
    }
    if (MaybeValue context = value.member("context")) read_context(*context, spec);
    bool needs_keys = spec.kind == TreeSpec::Kind::dict ||
                      spec.kind == TreeSpec::Kind::ordered_dict ||
                      spec.kind == TreeSpec::Kind::default_dict;
    if (!spec.keys.empty() || needs_keys) {
      if (spec.keys.size() != spec.children.size())
        return fail(value,
                    fmt::format("{} keys for {} children", spec.keys.size(), spec.children.size()));
    }
    return spec;
  }

  Diag fail(json::Value at, std::string message) {
    return json::error_at(at, locs_, code::kBadModel, std::move(message));
  }

 private:
  // A context is JSON text (keys), a bare type name (named tuples) or an object (defaultdict).
  void read_context(json::Value context, TreeSpec& spec) {
    if (context.kind() == Kind::string) {
      std::string text(context.string());
      for (const NamedTupleFields& fields : fields_)
        if (spec.kind == TreeSpec::Kind::named_tuple && fields.type == text) {
          spec.type = text;
          spec.keys = fields.names;
          return;
        }
      LocTable unused;
      auto inner = json::parse(text, "context", unused);
      if (inner.ok()) read_keys((*inner)->root(), spec);
      return;
    }
    read_keys(context, spec);
  }

  static void read_keys(json::Value value, TreeSpec& spec) {
    if (MaybeValue inner = value.member("dict_context")) value = *inner;
    if (value.kind() != Kind::array) return;
    // A dataclass keeps two lists: fields with a value, which are its children, and those that were
    // None.
    if (spec.kind == TreeSpec::Kind::other && value.size() == 2 &&
        (*value.elements().begin()).kind() == Kind::array)
      value = *value.elements().begin();
    std::vector<std::string> keys;
    for (json::Value key : value.elements()) {
      if (key.kind() == Kind::string)
        keys.emplace_back(key.string());
      else if (key.kind() == Kind::integer)
        keys.push_back(std::to_string(key.integer()));
      else
        return;
    }
    // A class may keep other things than its fields' names in its context.
    if (keys.size() == spec.children.size()) spec.keys = std::move(keys);
  }

  LocTable& locs_;
  const std::vector<NamedTupleFields>& fields_;
};

}  // namespace

size_t TreeSpec::num_leaves() const {
  if (kind == Kind::leaf) return 1;
  size_t count = 0;
  for (const TreeSpec& child : children) count += child.num_leaves();
  return count;
}

Result<TreeSpec> parse_tree_spec(std::string_view text, std::string name, LocTable& locs,
                                 const std::vector<NamedTupleFields>& field_names) {
  LATHE_TRY(auto document, json::parse(text, std::move(name), locs));
  Parser parser(locs, field_names);
  json::Value root = document->root();
  if (root.kind() != Kind::array || root.size() != 2)
    return parser.fail(root, "expected [version, spec]");
  auto part = root.elements().begin();
  if ((*part).kind() != Kind::integer || (*part).integer() != 1)
    return parser.fail(*part, "only version 1 of pytree specs is read");
  ++part;
  return parser.spec(*part);
}

TreeSpec flat_tuple(size_t count) {
  TreeSpec spec;
  spec.kind = TreeSpec::Kind::tuple;
  spec.type = "builtins.tuple";
  spec.children.resize(count);
  return spec;
}

}  // namespace lathe
