// How a model is called: Python's nesting of arguments and results, and what each leaf is.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/support/result.h"
#include "ir/type/dim.h"
#include "ir/type/encoding.h"

namespace lathe {

// A pytree. None is a leaf.
struct TreeSpec {
  enum class Kind : uint8_t {
    leaf,
    tuple,
    list,
    dict,
    ordered_dict,
    default_dict,
    named_tuple,
    deque,
    other,  // a class of the user's or a library's; keys are its fields when they are known
  };
  Kind kind = Kind::leaf;
  std::string type = {};               // Python's name: "builtins.dict", "m.Output"
  std::vector<std::string> keys = {};  // one a child, of dicts and classes; else empty
  std::vector<TreeSpec> children = {};

  size_t num_leaves() const;
};

// A Python constant; monostate is None.
using PyConstant = std::variant<std::monostate, bool, int64_t, double, std::string>;

struct InputLeaf {
  enum class Kind : uint8_t {
    tensor,    // graph.params[param]
    size,      // an int that binds a symbol: solve `size` for it
    constant,  // baked in at export: only this value is valid
  };
  Kind kind = Kind::tensor;
  std::string name = {};  // of the placeholder: "x", "args_0", "flag"
  int param = -1;
  Encoding encoding = Encoding::none;  // what the caller has where the tensor is coded
  Dim size = {};
  PyConstant constant = {};
};

struct OutputLeaf {
  enum class Kind : uint8_t {
    tensor,  // graph.outputs[output]
    size,    // an int, computed from the symbols
    constant,
  };
  Kind kind = Kind::tensor;
  int output = -1;
  Encoding encoding = Encoding::none;
  Dim size = {};
  PyConstant constant = {};
};

struct Signature {
  TreeSpec in_spec;   // (args tuple, kwargs dict)
  TreeSpec out_spec;  // of what forward returns
  std::string in_spec_json;
  std::string out_spec_json;
  std::vector<std::string> arg_names;  // forward's, positional first; may be empty
  std::vector<InputLeaf> inputs;       // one a leaf of in_spec
  std::vector<OutputLeaf> outputs;     // one a leaf of out_spec
  // What the exporter says of arguments that is no comparison of sizes: not checked by anybody.
  std::vector<std::string> unread_guards;
};

// Reads a spec as torch.utils._pytree writes it: [1, {"type", "context", "children_spec"}].
// `field_names` gives the fields of named tuples by type name. The Diag is a `bad-model` inside
// the spec's text, which `name` names.
struct NamedTupleFields {
  std::string type;
  std::vector<std::string> names;
};
Result<TreeSpec> parse_tree_spec(std::string_view text, std::string name, LocTable& locs,
                                 const std::vector<NamedTupleFields>& field_names = {});

// A tuple of `count` leaves, for files without a spec.
TreeSpec flat_tuple(size_t count);

}  // namespace lathe
