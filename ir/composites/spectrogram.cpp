// Short-time Fourier transforms, and back.
#include <fmt/format.h>

#include "ir/op/complex.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

struct Frames {
  int64_t points;  // of each
  int64_t step;
  Term window;  // over them; null: none
};

// The window as long as a frame, in its middle.
Frames frames_of(const Aten& aten, DType dtype) {
  const ImportCall& call = aten.call();
  const int64_t points = call.int_attr("n_fft");
  const int64_t length = call.is_none("win_length") ? points : call.int_attr("win_length");
  const int64_t step = call.is_none("hop_length") ? points / 4 : call.int_attr("hop_length");
  constexpr int64_t kMost = int64_t{1} << 20;
  if (points < 1 || points > kMost || step < 1 || length < 1 || length > points) {
    aten.fail(code::kBadModel, fmt::format("'{}' of {} points, a window of {} and steps of {}",
                                           call.target, points, length, step));
    return {1, 1, aten.null()};
  }
  Term window = aten.tensor("window");
  if (!window && length < points) window = aten.full({length}, 1, dtype);
  if (window && (window.rank() != 1 || Aten::size(window, 0) != Dim(length))) {
    aten.fail(code::kShapeMismatch, fmt::format("'{}' with a window of {}, expected {}",
                                                call.target, to_string(window.shape()), length));
    return {1, 1, aten.null()};
  }
  const int64_t left = (points - length) / 2;
  if (window && length < points)
    window = aten("constant_pad_nd", {window, Dims{left, points - length - left}});
  return {points, step, window};
}

const char* norm_of(const Aten& aten) {
  return aten.call().bool_attr("normalized") ? "ortho" : "backward";
}

// [batch..., time] to [batch..., frequency, frame].
constexpr auto kStft = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  Term self = aten.tensor("self");
  if (!is_float(self.dtype()) || self.rank() < 1 || self.rank() > 2)
    return aten.fail(code::kBadModel, fmt::format("'{}' takes vectors of floats", call.target));
  const Frames frames = frames_of(aten, self.dtype());
  const bool is_alone = self.rank() == 1;
  if (is_alone) self = aten("unsqueeze", {self, 0});
  if (call.schema->find("center") != nullptr && call.bool_attr("center")) {
    const int64_t side = frames.points / 2;
    const Term as_image = aten("unsqueeze", {self, 0});
    self =
        aten("squeeze.dim", {aten("pad", {as_image, Dims{side, side}, aten.attr("pad_mode")}), 0});
  }
  Term pieces = aten("unfold", {self, -1, frames.points, frames.step});
  if (frames.window) pieces = aten("mul.Tensor", pieces, frames.window);
  const bool is_half = call.is_none("onesided") ? !pieces.is_complex() : call.bool_attr("onesided");
  const Attr norm = Attr{std::string(norm_of(aten))};
  Term result = aten(is_half ? "fft_rfft" : "fft_fft", {pieces, Attr{}, -1, norm});
  result = aten("transpose.int", {result, 1, 2});
  if (is_alone) result = aten("squeeze.dim", {result, 0});
  return call.bool_attr("return_complex") ? result : aten("view_as_real", result);
};

// Frames [batch, frame, point] laid over each other.
Term overlapped(const Aten& aten, Term x, const Frames& frames, int64_t length) {
  const Term columns = aten("transpose.int", {x, 1, 2});
  const Term image = aten("col2im", {columns, Dims{1, length}, Dims{1, frames.points}, Dims{1, 1},
                                     Dims{0, 0}, Dims{1, frames.step}});
  return aten("reshape", {image, Dims{-1, length}});
}

constexpr auto kIstft = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  Term self = aten.tensor("self");
  if (!self.is_complex() || self.rank() < 2 || self.rank() > 3)
    return aten.fail(code::kBadModel, fmt::format("'{}' takes complex spectra", call.target));
  const Frames frames = frames_of(aten, self.dtype());
  const bool is_alone = self.rank() == 2;
  if (is_alone) self = aten("unsqueeze", {self, 0});
  const Dim count = Aten::size(self, 2), bins = Aten::size(self, 1);
  if (!count.is_const() || count.value() < 1 || !bins.is_const())
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} frames, expected a number that is known when the "
                                 "graph is built",
                                 call.target, count.str()));
  const bool is_half =
      call.is_none("onesided") ? bins != Dim(frames.points) : call.bool_attr("onesided");
  const Attr norm = Attr{std::string(norm_of(aten))};
  Term spectra = aten("transpose.int", {self, 1, 2});
  const bool is_complex = call.bool_attr("return_complex");
  // Of a whole spectrum that real results come from half is enough.
  if (!is_half && !is_complex)
    spectra = aten("slice.Tensor", {spectra, -1, 0, frames.points / 2 + 1});
  Term pieces = aten(is_complex ? "fft_ifft" : "fft_irfft", {spectra, frames.points, -1, norm});
  const int64_t length = frames.points + frames.step * (count.value() - 1);
  Term weights = frames.window ? frames.window : aten.full({frames.points}, 1, self.dtype());
  pieces = aten("mul.Tensor", pieces, weights);
  weights = aten("expand", {aten("mul.Tensor", weights, weights), Shape{1, count, frames.points}});
  Term sums = overlapped(aten, pieces, frames, length);
  Term total = overlapped(aten, weights, frames, length);
  const int64_t start = call.bool_attr("center") ? frames.points / 2 : 0;
  const int64_t end = call.is_none("length") ? length - start : start + call.int_attr("length");
  const int64_t there = std::min(end, length);
  const Term result = aten("div.Tensor", {aten("slice.Tensor", {sums, 1, start, there}),
                                          aten("slice.Tensor", {total, 1, start, there})});
  const Term whole = end > there ? aten("constant_pad_nd", {result, Dims{0, end - there}}) : result;
  return is_alone ? aten("squeeze.dim", {whole, 0}) : whole;
};

}  // namespace

std::vector<Import> import_spectrogram() {
  const std::string window = "int? hop_length=None, int? win_length=None, Tensor? window=None, ";
  const std::string result =
      "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
      "align_to_window=None) -> Tensor";
  std::vector<Import> imports;
  for (const NumberKind numbers : {NumberKind::real, NumberKind::complex}) {
    imports.push_back({.schema = "stft(Tensor self, int n_fft, " + window + result,
                       .build = composed<kStft>,
                       .numbers = numbers});
    imports.push_back({.schema = "stft.center(Tensor self, int n_fft, " + window +
                                 "bool center=True, str pad_mode=\"reflect\", " + result,
                       .build = composed<kStft>,
                       .numbers = numbers});
  }
  imports.push_back({.schema = "istft(Tensor self, int n_fft, " + window +
                               "bool center=True, bool normalized=False, bool? onesided=None, "
                               "SymInt? length=None, bool return_complex=False) -> Tensor",
                     .build = composed<kIstft>,
                     .numbers = NumberKind::complex});
  return imports;
}

}  // namespace lathe
