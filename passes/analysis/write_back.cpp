// Writing through views: reshapes and permutations by their inverse, ranges by concatenation.
#include "passes/analysis/write_back.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Value slice_of(Builder& b, Value base, int64_t dim, Dim start, Dim end) {
  return b.call("slice", {base}, {{"dim", dim}, {"start", start}, {"end", end}});
}

// Where the range that `view` takes from a dim of `extent` begins.
Result<Dim> range_start(const Node& view, int index, const Dim& extent) {
  if (view.op->name == "split_with_sizes") {
    std::vector<Dim> sizes = view.dims_attr("split_sizes");
    Dim start = 0;
    for (int i = 0; i < index; ++i) start = start + sizes[static_cast<size_t>(i)];
    return start;
  }
  bool is_select = view.op->name == "select";
  if (!is_select && view.int_attr("step", 1) != 1)
    return Diag{code::kUnsupported, view.loc,
                fmt::format("an in-place op writes through a slice with step {}; Lathe can write "
                            "back through step 1",
                            view.int_attr("step", 1))};
  std::string_view attr = is_select ? "index" : "start";
  if (view.is_none(attr)) return Dim(0);
  const Dim* given = std::get_if<Dim>(&view.attr(attr));
  Dim start = given != nullptr ? *given : Dim(view.int_attr(attr));
  if (start.is_const() && start.value() < 0) start = start + extent;
  if (start.is_const() && extent.is_const())
    start = Dim(std::min(std::max<int64_t>(start.value(), 0), extent.value()));
  return start;
}

Result<Value> write_range(Builder& b, const Node& view, int index, Value base, Value value) {
  const TensorType& type = base.type();
  int64_t dim = normalize_dim(view.int_attr("dim"), type.rank()).value_or(0);
  const Dim& extent = type.shape[static_cast<size_t>(dim)];
  LATHE_TRY(Dim start, range_start(view, index, extent));
  if (view.op->name == "select") value = b.call("unsqueeze", {value}, {{"dim", dim}});
  if (b.failed()) return b.error();
  Dim end = start + value.type().shape[static_cast<size_t>(dim)];
  std::vector<Value> parts;
  if (start != Dim(0)) parts.push_back(slice_of(b, base, dim, 0, start));
  parts.push_back(value);
  if (end != extent) parts.push_back(slice_of(b, base, dim, end, extent));
  if (parts.size() == 1) return value;
  int count = static_cast<int>(parts.size());
  std::vector<Value> whole = b.call_all("cat", parts, {{"dim", dim}}, {count});
  if (b.failed()) return b.error();
  if (whole.front().type().shape != type.shape)
    return Diag{code::kUnsupported, view.loc,
                fmt::format("an in-place op writes through '{}' at {}, which is not known to lie "
                            "within the {} elements of its dim",
                            view.op->name, start.str(), extent.str())};
  return whole.front();
}

}  // namespace

Result<Value> write_back(Builder& b, const Node& view, int index, Value base, Value value) {
  const std::string& op = view.op->name;
  const TensorType& type = base.type();
  if (op == "select" || op == "slice" || op == "split_with_sizes")
    return write_range(b, view, index, base, value);
  bool keeps_count =
      op != "expand" || value.type().num_elements() == type.num_elements();  // repeats nothing
  Value whole;
  if (op == "permute") {
    std::vector<int64_t> dims = view.ints_attr("dims"), inverse(dims.size());
    for (size_t i = 0; i < dims.size(); ++i)
      inverse[static_cast<size_t>(normalize_dim(dims[i], type.rank()).value_or(0))] =
          static_cast<int64_t>(i);
    whole = b.call("permute", {value}, {{"dims", inverse}});
  } else if (op == "bitcast") {
    whole = b.call("bitcast", {value}, {{"dtype", type.dtype}});
  } else if (value.type().shape == type.shape) {
    whole = value;
  } else if ((op == "reshape" || op == "squeeze" || op == "unsqueeze" || op == "expand") &&
             keeps_count) {
    whole = b.call("reshape", {value}, {{"shape", type.shape}});
  } else {
    return Diag{code::kUnsupported, view.loc,
                fmt::format("an in-place op writes through '{}', which Lathe cannot write back; it "
                            "can for reshapes, permutations, slices and selections",
                            op)};
  }
  if (b.failed()) return b.error();
  return whole;
}

}  // namespace lathe
