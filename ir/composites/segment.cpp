// segment_reduce: reductions of runs of a dim whose lengths are data.
#include <limits>
#include <string>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Whether element e is in segment s: [leading dims..., s, e].
Term segment_members(const Aten& aten, const Dim& size) {
  Term start = aten.tensor("lengths"), end = start;
  if (start) {
    end = aten("cumsum", {start, -1});
    start = aten("sub.Tensor", {end, start});
  } else {
    const Term offsets = aten.tensor("offsets");
    start = aten("slice.Tensor", {offsets, -1, 0, -1});
    end = aten("slice.Tensor", {offsets, -1, 1});
  }
  const Term at = aten.arange(size);
  return aten("logical_and", {aten("ge.Tensor", {at, aten("unsqueeze", {start, -1})}),
                              aten("lt.Tensor", {at, aten("unsqueeze", {end, -1})})});
}

// Every segment looks at the whole dim and leaves out what is not its own.
Built segment_reduce(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term data = aten.tensor("data");
  const std::string reduce = call.string_attr("reduce");
  const bool has_segments = aten.tensor("lengths") || aten.tensor("offsets");
  if (!has_segments || aten.tensor("indices") || !is_float(data.dtype()))
    return aten.refuse(code::kUnsupported,
                       "'segment_reduce' needs floats and the lengths or offsets of segments");
  LATHE_TRY(int axis, import_dim(call, "axis", data.rank()));
  const Term members = segment_members(aten, data.shape()[static_cast<size_t>(axis)]);
  if (!members) return std::vector<Value>{members};
  Shape shape = members.shape();
  for (int d = axis + 1; d < data.rank(); ++d) shape.push_back(1);
  const Term here = aten("reshape", {members, shape});
  const bool is_order = reduce == "max" || reduce == "min";
  const double infinity = std::numeric_limits<double>::infinity();
  const double neutral = is_order ? (reduce == "max" ? -infinity : infinity) : reduce == "prod";
  const Term x = aten("where.ScalarOther", {here, aten("unsqueeze", {data, axis}), neutral});
  const int64_t dim = axis + 1;
  const bool has_initial = !call.is_none("initial");
  const double initial = call.float_attr("initial", neutral);
  const Term start = aten.scalar(initial, data.dtype());
  if (reduce == "max") return std::vector<Value>{max(aten("amax", {x, Dims{dim}}), start)};
  if (reduce == "min") return std::vector<Value>{min(aten("amin", {x, Dims{dim}}), start)};
  if (reduce == "prod") return std::vector<Value>{aten("prod.dim_int", {x, dim}) * start};
  const Term total = aten("sum.dim_IntList", {x, Dims{dim}}) + start;
  if (reduce == "sum") return std::vector<Value>{total};
  // The mean of no elements is the initial value, and NaN without one.
  const Term count = aten("sum.dim_IntList", {here, Dims{dim}});
  const Term mean = total / cast(max(count, 1), data.dtype());
  if (has_initial) return std::vector<Value>{mean};
  return std::vector<Value>{aten("where.ScalarOther", {aten("gt.Scalar", {count, 0}), mean,
                                                       std::numeric_limits<double>::quiet_NaN()})};
}

}  // namespace

std::vector<Import> import_segment() {
  return {{.schema = "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? "
                     "indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? "
                     "initial=None) -> Tensor",
           .build = segment_reduce}};
}

}  // namespace lathe
