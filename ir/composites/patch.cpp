// Patches of images side by side, and back.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Of one dim: where its windows lie, over the padded extent.
struct PatchDim {
  int64_t kernel = 1, dilation = 1, padding = 0, stride = 1, extent = 1;
  int64_t count() const {
    const int64_t reach = dilation * (kernel - 1) + 1;
    return extent + 2 * padding < reach ? 0 : (extent + 2 * padding - reach) / stride + 1;
  }
};

// Height and width; empty, and the builder has failed, where the call breaks its schema.
std::vector<PatchDim> patch_dims(const Aten& aten, const Shape& extents) {
  const ImportCall& call = aten.call();
  const Dims kernel = call.ints_attr("kernel_size"), dilation = call.ints_attr("dilation");
  const Dims padding = call.ints_attr("padding"), stride = call.ints_attr("stride");
  std::vector<PatchDim> dims;
  for (size_t d = 0; d < 2; ++d) {
    const bool is_given = extents.size() == 2 && extents[d].is_const() && kernel.size() == 2 &&
                          dilation.size() == 2 && padding.size() == 2 && stride.size() == 2;
    if (!is_given || kernel[d] < 1 || dilation[d] < 1 || padding[d] < 0 || stride[d] < 1) {
      aten.fail(code::kUnsupported,
                fmt::format("'{}' needs constant extents and windows in two dims", call.target));
      return {};
    }
    dims.push_back({kernel[d], dilation[d], padding[d], stride[d], extents[d].value()});
  }
  return dims;
}

// Positions in the padded extent, [kernel, windows].
Term patch_places(const Aten& aten, const PatchDim& dim) {
  const Term tap = aten("mul.Scalar", {aten.arange(dim.kernel), dim.dilation});
  const Term start = aten("mul.Scalar", {aten.arange(dim.count()), dim.stride});
  return aten("add.Tensor", {aten("unsqueeze", {tap, 1}), start});
}

// Rows [kh, 1, oh, 1] and columns [kw, 1, ow], which broadcast.
std::pair<Term, Term> patch_grid(const Aten& aten, const std::vector<PatchDim>& dims) {
  const Term rows =
      aten("reshape", {patch_places(aten, dims[0]), Dims{dims[0].kernel, 1, dims[0].count(), 1}});
  const Term columns =
      aten("reshape", {patch_places(aten, dims[1]), Dims{dims[1].kernel, 1, dims[1].count()}});
  return {rows, columns};
}

constexpr auto kIm2col = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term x = self.rank() == 3 ? aten("unsqueeze", {self, 0}) : self;
  const Dim batch = Aten::size(x, 0), channels = Aten::size(x, 1);
  const auto dims = patch_dims(aten, {Aten::size(x, 2), Aten::size(x, 3)});
  if (dims.empty() || x.rank() != 4)
    return aten.fail(code::kShapeMismatch, "'im2col' needs images");
  const int64_t h = dims[0].padding, w = dims[1].padding;
  const Term padded = aten("constant_pad_nd", {x, Dims{w, w, h, h}});
  const auto [rows, columns] = patch_grid(aten, dims);
  const std::vector<Term> places = {aten.null(), aten.null(), rows, columns};
  const Term patches = aten("index.Tensor", {padded, places});
  const Term result =
      aten("reshape", {patches, Shape{batch, channels * (dims[0].kernel * dims[1].kernel),
                                      dims[0].count() * dims[1].count()}});
  return self.rank() == 3 ? aten("squeeze.dim", {result, 0}) : result;
};

// What im2col takes apart, summed where patches overlap.
constexpr auto kCol2im = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term x = self.rank() == 2 ? aten("unsqueeze", {self, 0}) : self;
  const std::vector<Dim> size = aten.call().dims_attr("output_size");
  const auto dims = patch_dims(aten, size);
  if (dims.empty() || x.rank() != 3)
    return aten.fail(code::kShapeMismatch, "'col2im' needs columns");
  const Dim batch = Aten::size(x, 0);
  const int64_t taps = dims[0].kernel * dims[1].kernel;
  const Dim channels = Dim::floor_div(Aten::size(x, 1), taps);
  const Term apart = aten("reshape", {x, Shape{batch, channels, dims[0].kernel, dims[1].kernel,
                                               dims[0].count(), dims[1].count()}});
  const Term values = aten("permute", {apart, Dims{2, 3, 4, 5, 0, 1}});
  const auto [rows, columns] = patch_grid(aten, dims);
  const int64_t h = dims[0].padding, w = dims[1].padding;
  const Shape padded = {size[0] + 2 * h, size[1] + 2 * w, batch, channels};
  const std::vector<Term> places = {rows, columns};
  const Term summed = aten("index_put", {aten.full(padded, 0, x.dtype()), places, values, true});
  const Term images = aten("permute", {summed, Dims{2, 3, 0, 1}});
  const Term result = aten("constant_pad_nd", {images, Dims{-w, -w, -h, -h}});
  return self.rank() == 2 ? aten("squeeze.dim", {result, 0}) : result;
};

}  // namespace

std::vector<Import> import_patch() {
  const std::string windows =
      "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor";
  return {
      {.schema = "im2col(Tensor self, " + windows, .build = composed<kIm2col>},
      {.schema = "col2im(Tensor self, SymInt[2] output_size, " + windows,
       .build = composed<kCol2im>},
  };
}

}  // namespace lathe
