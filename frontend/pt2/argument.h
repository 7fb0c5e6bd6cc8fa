// Values and arguments of the export schema: symbolic scalars, tensor metadata, the Argument union.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lathe::pt2 {

// Numbers of ScalarType are the serializer's own, not c10's: BYTE is 1, LONG 5, FLOAT 7, BOOL 12.
using ScalarType = int64_t;
using MemoryFormat = int64_t;  // 1 contiguous, 2 channels last, 3 the same in 3-d, 4 preserve
using TensorLayout = int64_t;  // 7 strided, 1 to 6 sparse or opaque

struct Device {
  std::string type;
  std::optional<int64_t> index;
};

// A symbolic scalar by value: an expression (sympy srepr or plain Python) or a number.
template <class T>
struct SymScalar {
  std::optional<std::string> expr_str;
  std::optional<T> hint;  // of an expression: its value at export
  T value = {};           // when there is no expression
  uint32_t offset = 0;    // byte in the file, for messages
};
using SymInt = SymScalar<int64_t>;
using SymFloat = SymScalar<double>;
using SymBool = SymScalar<bool>;

// A symbolic scalar as an argument: the name of a value of the graph, or a number.
template <class T>
struct SymArgument {
  std::optional<std::string> as_name;
  T value = {};
};

struct TensorMeta {
  ScalarType dtype = 0;
  std::vector<SymInt> sizes;
  bool requires_grad = false;
  Device device;
  std::vector<SymInt> strides;
  SymInt storage_offset;
  TensorLayout layout = 7;
  uint32_t offset = 0;  // byte in the file
};

struct Graph;
struct GraphArgument {
  std::string name;
  std::unique_ptr<Graph> graph;
};
struct CustomObjArgument {
  std::string name;
  std::string class_fqn;
};
struct ComplexValue {
  double real = 0;
  double imag = 0;
};

struct DictItem;
struct Argument {
  enum class Tag : uint8_t {
    as_none,
    as_tensor,
    as_tensors,
    as_int,
    as_ints,
    as_float,
    as_floats,
    as_string,
    as_strings,
    as_sym_int,
    as_sym_ints,
    as_scalar_type,
    as_memory_format,
    as_layout,
    as_device,
    as_bool,
    as_bools,
    as_sym_bool,
    as_sym_bools,
    as_graph,
    as_optional_tensors,
    as_custom_obj,
    as_operator,
    as_sym_float,
    as_sym_floats,
    as_optional_tensor,
    as_complex,
    as_nested_tensors,
    as_int_lists,
    as_string_to_argument,
    as_float_lists,
    unknown,  // a variant newer than this reader; fails only where it is used
  };
  using OptionalName = std::optional<std::string>;
  using Dict = std::vector<DictItem>;

  Tag tag = Tag::as_none;
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<bool>,
               std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
               std::vector<OptionalName>, SymArgument<int64_t>, SymArgument<double>,
               SymArgument<bool>, std::vector<SymArgument<int64_t>>,
               std::vector<SymArgument<double>>, std::vector<SymArgument<bool>>, Device,
               GraphArgument, CustomObjArgument, ComplexValue,
               std::vector<std::vector<std::string>>, std::vector<std::vector<int64_t>>,
               std::vector<std::vector<double>>, Dict>
      value;
  uint32_t offset = 0;  // byte in the file

  // Only when the tag says that the value is of this type.
  template <class T>
  const T& as() const {
    return *std::get_if<T>(&value);
  }
};
struct DictItem {
  std::string name;
  Argument value;
};
std::string_view tag_name(Argument::Tag tag);  // "as_tensor"

template <class T>
using Table = std::map<std::string, T, std::less<>>;

}  // namespace lathe::pt2
