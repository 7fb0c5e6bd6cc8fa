// Windows of signal processing: hann_window and its kin.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ir/op/composite.h"
#include "ir/op/element.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr double kPi = std::numbers::pi;

// A periodic window is one that is longer by one, without its last. Each formula gets 0, 1, ... and
// the length, which is 2 or more.
template <auto Formula>
Built window(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const DType dtype = call.dtype_attr("dtype", DType::f32);
  const int64_t length = call.int_attr("window_length");
  if (length < 0 || !is_float(dtype))
    return aten.refuse(code::kBadValue,
                       fmt::format("'{}' of {} elements of {}: expects 0 or more, of floats",
                                   call.target, length, dtype_name(dtype)));
  if (length < 2) return std::vector<Value>{aten.full({length}, 1, dtype)};
  const bool is_periodic = call.bool_attr("periodic", true);
  const Term at = aten("to.dtype", {aten.arange(length), compute_dtype(dtype)});
  const Term made = Formula(aten, at, static_cast<double>(length + (is_periodic ? 1 : 0)));
  return std::vector<Value>{aten("to.dtype", {made, dtype})};
}

// The cosine of `turns` whole turns along the window.
Term turned(const Aten& aten, Term at, double turns, double length) {
  return aten("cos", {aten("mul.Scalar", {at, turns * 2 * kPi / (length - 1)})});
}

Term raised(const Aten& aten, Term at, double length, double alpha, double beta) {
  return turned(aten, at, 1, length) * -beta + alpha;
}

constexpr auto kHann = [](const Aten& aten, Term at, double length) {
  return raised(aten, at, length, 0.5, 0.5);
};

constexpr auto kHamming = [](const Aten& aten, Term at, double length) {
  const ImportCall& call = aten.call();
  return raised(aten, at, length, call.float_attr("alpha", 0.54), call.float_attr("beta", 0.46));
};

constexpr auto kBlackman = [](const Aten& aten, Term at, double length) {
  return turned(aten, at, 2, length) * 0.08 - turned(aten, at, 1, length) * 0.5 + 0.42;
};

constexpr auto kBartlett = [](const Aten&, Term at, double length) {
  const Term rising = at * (2 / (length - 1));
  return min(rising, 2 - rising);
};

constexpr auto kKaiser = [](const Aten& aten, Term at, double length) {
  const double beta = aten.call().float_attr("beta", 12), half = (length - 1) / 2;
  const Term off = (at - half) / half;
  const Term root = sqrt(max(1 - off * off, 0));
  return aten("i0", {root * beta}) / aten("i0", {aten.scalar(beta, at.dtype())});
};

}  // namespace

std::vector<Import> import_signal_window() {
  const std::string options =
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor";
  std::vector<Import> imports;
  const auto add = [&](const std::string& name, const std::string& parameters,
                       Built (*build)(Builder&, const ImportCall&)) {
    imports.push_back(
        {.schema = name + "(int window_length" + parameters + options, .build = build});
  };
  add("hann_window", "", window<kHann>);
  add("hann_window.periodic", ", bool periodic", window<kHann>);
  add("hamming_window", "", window<kHamming>);
  add("hamming_window.periodic", ", bool periodic", window<kHamming>);
  add("hamming_window.periodic_alpha", ", bool periodic, float alpha", window<kHamming>);
  add("hamming_window.periodic_alpha_beta", ", bool periodic, float alpha, float beta",
      window<kHamming>);
  add("blackman_window", "", window<kBlackman>);
  add("blackman_window.periodic", ", bool periodic", window<kBlackman>);
  add("bartlett_window", "", window<kBartlett>);
  add("bartlett_window.periodic", ", bool periodic", window<kBartlett>);
  add("kaiser_window", "", window<kKaiser>);
  add("kaiser_window.periodic", ", bool periodic", window<kKaiser>);
  add("kaiser_window.beta", ", bool periodic, float beta", window<kKaiser>);
  return imports;
}

}  // namespace lathe
