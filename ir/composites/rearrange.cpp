// Tensors whose elements are moved or repeated.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Shape joined_shape(std::initializer_list<Shape> parts) {
  Shape shape;
  for (const Shape& part : parts) shape.insert(shape.end(), part.begin(), part.end());
  return shape;
}

constexpr auto kTile = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  Shape counts = aten.call().dims_attr("dims");
  while (counts.size() < static_cast<size_t>(self.rank())) counts.insert(counts.begin(), 1);
  return aten("repeat", {self, counts});
};

constexpr auto kRot90 = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Dims dims = aten.call().ints_attr("dims");
  if (dims.size() != 2) return aten.fail(code::kBadModel, "'rot90' needs two dims");
  const int64_t turns = ((aten.call().int_attr("k", 1) % 4) + 4) % 4;
  if (turns == 0) return aten("clone", {self});
  if (turns == 2) return aten("flip", {self, dims});
  const Term flipped = aten("flip", {self, Dims{dims[turns == 1 ? 1 : 0]}});
  return aten("transpose.int", {flipped, dims[0], dims[1]});
};

template <int kDim>
Term flipped_in(const Aten& aten) {
  return aten("flip", {aten.tensor("self"), Dims{kDim}});
}

// Half of each dim to the other side; a middle one stays in front, or behind when undone.
template <bool kUndoes>
Term half_rolled(const Aten& aten) {
  const Term self = aten.tensor("self");
  Dims dims = aten.call().ints_attr("dim");
  for (int d = 0; aten.call().is_none("dim") && d < self.rank(); ++d) dims.push_back(d);
  Shape shifts;
  for (int64_t dim : dims)
    shifts.push_back(Dim::floor_div(Aten::size(self, dim) + (kUndoes ? 1 : 0), 2));
  return dims.empty() ? aten("clone", {self}) : aten("roll", {self, shifts, dims});
}

// Each element several times in a row.
constexpr auto kRepeatInterleave = [](const Aten& aten) {
  Term self = aten.tensor("self");
  const Dim repeats = aten.size("repeats");
  if (aten.call().is_none("dim") || self.rank() == 0) self = aten("reshape", {self, Dims{-1}});
  const int64_t dim = aten.call().is_none("dim") ? 0 : aten.dim("dim", self.rank());
  Shape wide, result;
  for (int d = 0; d < self.rank(); ++d) {
    wide.push_back(Aten::size(self, d));
    if (d == dim) wide.push_back(repeats);
    result.push_back(d == dim ? Aten::size(self, d) * repeats : Aten::size(self, d));
  }
  const Term repeated = aten("expand", {aten("unsqueeze", {self, dim + 1}), wide});
  return aten("reshape", {repeated, result});
};

// Windows of a dim in a new last dim. Those that do not overlap are views; of others PyTorch leaves
// it undefined what a write through them does.
constexpr auto kUnfold = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  Term self = aten.tensor("self");
  const int64_t size = call.int_attr("size"), step = call.int_attr("step");
  const bool is_scalar = self.rank() == 0;
  if (is_scalar) self = aten("unsqueeze", {self, 0});
  const int64_t dim = aten.dim("dimension", self.rank());
  const Dim extent = Aten::size(self, dim);
  if (!extent.is_const() || step < 1 || size < 0 || size > extent.value())
    return aten.fail(code::kUnsupported, fmt::format("'{}' of a size of {} into windows of {}",
                                                     call.target, extent.str(), size));
  const int64_t count = (extent.value() - size) / step + 1;
  if (size == step) {
    const Term whole = aten("slice.Tensor", {self, dim, 0, count * size});
    const Term split = aten("unflatten.int", {whole, dim, Dims{count, size}});
    const Term windows = aten("movedim.int", {split, dim + 1, -1});
    return is_scalar ? aten("squeeze.dim", {windows, 0}) : windows;
  }
  const Term first = aten("mul.Scalar", {aten("unsqueeze", {aten.arange(count), 1}), step});
  const Term places = aten("add.Tensor", {first, aten.arange(size)});
  const Term taken = aten("index_select", {self, dim, aten("reshape", {places, Dims{-1}})});
  const Term windows =
      aten("movedim.int", {aten("unflatten.int", {taken, dim, Dims{count, size}}), dim + 1, -1});
  return is_scalar ? aten("squeeze.dim", {windows, 0}) : windows;
};

// --- channels as pixels

// The leading dims, and the channels, height and width.
struct Image {
  Shape lead;
  Dim channels, height, width;
};

Image image_of(const Aten& aten, Term x) {
  if (x.rank() < 3) {
    aten.fail(code::kShapeMismatch, fmt::format("'{}' needs images", aten.call().target));
    return {{}, 1, 1, 1};
  }
  const Shape shape = x.shape();
  return {Shape(shape.begin(), shape.end() - 3), Aten::size(x, -3), Aten::size(x, -2),
          Aten::size(x, -1)};
}

// The dims of `x` with its last ones in another order.
Term last_permuted(const Aten& aten, Term x, const Dims& order) {
  Dims dims;
  const int64_t lead = x.rank() - static_cast<int64_t>(order.size());
  for (int64_t d = 0; d < lead; ++d) dims.push_back(d);
  for (int64_t d : order) dims.push_back(lead + d);
  return aten("permute", {x, dims});
}

constexpr auto kPixelShuffle = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t r = std::max<int64_t>(aten.call().int_attr("upscale_factor"), 1);
  const Image image = image_of(aten, self);
  const Dim channels = Dim::floor_div(image.channels, r * r);
  const Shape apart = {channels, r, r, image.height, image.width};
  const Shape result = {channels, image.height * r, image.width * r};
  const Term split = aten("reshape", {self, joined_shape({image.lead, apart})});
  return aten("reshape",
              {last_permuted(aten, split, {0, 3, 1, 4, 2}), joined_shape({image.lead, result})});
};

constexpr auto kPixelUnshuffle = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t r = std::max<int64_t>(aten.call().int_attr("downscale_factor"), 1);
  const Image image = image_of(aten, self);
  const Dim height = Dim::floor_div(image.height, r), width = Dim::floor_div(image.width, r);
  const Shape apart = {image.channels, height, r, width, r};
  const Term split = aten("reshape", {self, joined_shape({image.lead, apart})});
  return aten("reshape", {last_permuted(aten, split, {0, 2, 4, 1, 3}),
                          joined_shape({image.lead, {image.channels * r * r, height, width}})});
};

constexpr auto kChannelShuffle = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t groups = std::max<int64_t>(aten.call().int_attr("groups"), 1);
  const Shape shape = self.shape();
  if (shape.size() < 3) return aten.fail(code::kShapeMismatch, "'channel_shuffle' needs images");
  const Shape apart = {shape[0], groups, Dim::floor_div(shape[1], groups), -1};
  const Term split = aten("transpose.int", {aten("reshape", {self, apart}), 1, 2});
  return aten("reshape", {split, shape});
};

// --- tensors of which PyTorch leaves the elements open

template <bool kIsLike>
Term strided_zeros(const Aten& aten) {
  const DType own = kIsLike ? aten.tensor("self").dtype() : DType::f32;
  return aten("zeros", {aten.attr("size"), aten.call().dtype_attr("dtype", own)});
}

// Each tensor padded to as many rows as chunks need, and its chunks side by side.
constexpr auto kChunkCat = [](const Aten& aten) {
  const std::vector<Term> tensors = aten.tensors("tensors");
  const int64_t dim = aten.dim("dim", tensors.front().rank());
  const int64_t chunks = std::max<int64_t>(aten.call().int_attr("num_chunks"), 1);
  std::vector<Term> parts;
  for (const Term& x : tensors) {
    const Dim size = Aten::size(x, dim);
    const Dim rows = Dim::floor_div(size + (chunks - 1), chunks);
    Shape pad(static_cast<size_t>(2 * x.rank()), 0);
    const size_t at = static_cast<size_t>(2 * (x.rank() - 1 - dim) + 1);
    if (at < pad.size()) pad[at] = rows * chunks - size;
    Shape lead;
    for (int64_t d = 0; d < dim; ++d) lead.push_back(Aten::size(x, d));
    parts.push_back(
        aten("reshape", {aten("constant_pad_nd", {x, pad}), joined_shape({lead, {chunks, -1}})}));
  }
  return aten("cat", {parts, dim + 1});
};

}  // namespace

std::vector<Import> import_rearrange() {
  const std::string options =
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor";
  return {
      {.schema = "tile(Tensor self, SymInt[] dims) -> Tensor", .build = composed<kTile>},
      {.schema = "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
       .build = composed<kRot90>},
      {.schema = "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
       .build = composed<half_rolled<false>>},
      {.schema = "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
       .build = composed<half_rolled<true>>},
      {.schema = "flipud(Tensor self) -> Tensor", .build = composed<flipped_in<0>>},
      {.schema = "fliplr(Tensor self) -> Tensor", .build = composed<flipped_in<1>>},
      {.schema = "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
                 "SymInt? output_size=None) -> Tensor",
       .build = composed<kRepeatInterleave>},
      {.schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
       .build = composed<kUnfold>},
      {.schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
       .build = composed<kPixelShuffle>},
      {.schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
       .build = composed<kPixelUnshuffle>},
      {.schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
       .build = composed<kChannelShuffle>},
      {.schema = "empty_permuted(SymInt[] size, int[] physical_layout" + options,
       .build = composed<strided_zeros<false>>},
      {.schema = "empty_strided(SymInt[] size, SymInt[] stride" + options,
       .build = composed<strided_zeros<false>>},
      {.schema = "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride" + options,
       .build = composed<strided_zeros<true>>},
      {.schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
       .build = composed<kChunkCat>},
  };
}

}  // namespace lathe
