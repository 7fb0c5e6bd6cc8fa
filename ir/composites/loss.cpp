// Losses of elements against targets of the same shape.
#include "ir/op/loss.h"

#include <cmath>
#include <numbers>

#include "ir/op/composite.h"

namespace lathe {
namespace {

Term difference(const Aten& aten) {
  return aten("sub.Tensor", {aten.tensor("self"), aten.tensor("target")});
}

constexpr auto kMse = [](const Aten& aten) {
  const Term d = difference(aten);
  return reduced_loss(aten, aten("mul.Tensor", {d, d}));
};

constexpr auto kL1 = [](const Aten& aten) {
  return reduced_loss(aten, aten("abs", {difference(aten)}));
};

// Squares near 0, and lines from where |d| is `beta`.
constexpr auto kSmoothL1 = [](const Aten& aten) {
  const double beta = aten.call().float_attr("beta");
  const Term d = difference(aten), distance = aten("abs", {d});
  if (beta == 0) return reduced_loss(aten, distance);
  const Term near =
      aten("div.Scalar", {aten("mul.Scalar", {aten("mul.Tensor", {d, d}), 0.5}), beta});
  const Term far = aten("sub.Scalar", {distance, 0.5 * beta});
  const Term is_near = aten("lt.Scalar", {distance, beta});
  return reduced_loss(aten, aten("where.self", {is_near, near, far}));
};

constexpr auto kHuber = [](const Aten& aten) {
  // Of halves in f32, rounded before they are reduced.
  const double delta = aten.call().float_attr("delta");
  const DType dtype = difference(aten).dtype();
  const Term d =
      aten("sub.Tensor", aten.wide(aten.tensor("self")), aten.wide(aten.tensor("target")));
  const Term distance = aten("abs", {d});
  const Term near = aten("mul.Scalar", {aten("mul.Tensor", {d, d}), 0.5});
  const Term far = aten("mul.Scalar", {aten("sub.Scalar", {distance, 0.5 * delta}), delta});
  const Term is_near = aten("lt.Scalar", {distance, delta});
  const Term loss = aten("where.self", {is_near, near, far});
  return reduced_loss(aten, aten("to.dtype", {loss, dtype}));
};

constexpr auto kSoftMargin = [](const Aten& aten) {
  const Term product = aten("mul.Tensor", {aten.tensor("self"), aten.tensor("target")});
  return reduced_loss(aten, aten("log1p", {aten("exp", {aten("neg", {product})})}));
};

constexpr auto kKlDiv = [](const Aten& aten) {
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  if (aten.call().bool_attr("log_target")) {
    const Term distance = aten("sub.Tensor", {target, self});
    return reduced_loss(aten, aten("mul.Tensor", {aten("exp", {target}), distance}));
  }
  const Term entropy = aten("xlogy.Tensor", {target, target});
  return reduced_loss(aten, aten("sub.Tensor", {entropy, aten("mul.Tensor", {target, self})}));
};

// With `full`, Stirling's term for targets above 1.
constexpr auto kPoisson = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term input = aten.tensor("input"), target = aten.tensor("target");
  const Term shifted = aten("add.Scalar", {input, call.float_attr("eps")});
  Term loss =
      call.bool_attr("log_input")
          ? aten("sub.Tensor", {aten("exp", {input}), aten("mul.Tensor", {target, input})})
          : aten("sub.Tensor", {input, aten("mul.Tensor", {target, aten("log", {shifted})})});
  if (call.bool_attr("full")) {
    const Term log = aten("log", {aten("mul.Scalar", {target, 2 * std::numbers::pi})});
    const Term stirling =
        aten("add.Tensor",
             {aten("sub.Tensor", {aten("mul.Tensor", {target, aten("log", {target})}), target}),
              aten("mul.Scalar", {log, 0.5})});
    const Term is_small = aten("le.Scalar", {target, 1});
    loss = aten("add.Tensor", {loss, aten("masked_fill.Scalar", {stirling, is_small, 0})});
  }
  return reduced_loss(aten, loss);
};

Term weighted(const Aten& aten, Term loss) {
  const Term weight = aten.tensor("weight");
  return weight ? aten("mul.Tensor", {loss, weight}) : loss;
}

constexpr double kLeastLog = -100;  // PyTorch's, so that log(0) does not make the mean infinite

constexpr auto kCrossEntropyOfBits = [](const Aten& aten) {
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  const auto log = [&](Term x, const char* target_name) {
    return aten("clamp_min", {aten(target_name, {x}), kLeastLog});
  };
  const Term misses =
      aten("mul.Tensor", {aten("sub.Scalar", {target, 1}), log(aten("neg", {self}), "log1p")});
  const Term hits = aten("mul.Tensor", {target, log(self, "log")});
  return reduced_loss(aten, weighted(aten, aten("sub.Tensor", {misses, hits})));
};

constexpr auto kCrossEntropyOfLogits = [](const Aten& aten) {
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  const Term scale = aten.tensor("pos_weight");
  Term log = aten("log_sigmoid", {self});
  if (scale) {
    const Term more = aten("mul.Tensor", {aten("sub.Scalar", {scale, 1}), target});
    log = aten("mul.Tensor", {log, aten("add.Scalar", {more, 1})});
  }
  const Term misses = aten("mul.Tensor", {aten("rsub.Scalar", {target, 1}), self});
  return reduced_loss(aten, weighted(aten, aten("sub.Tensor", {misses, log})));
};

// --- against targets of 1 and -1

constexpr auto kMarginRanking = [](const Aten& aten) {
  const Term d = aten("sub.Tensor", {aten.tensor("input1"), aten.tensor("input2")});
  const Term signed_distance = aten("mul.Tensor", {aten("neg", {aten.tensor("target")}), d});
  const Term missing = aten("add.Scalar", {signed_distance, aten.call().float_attr("margin")});
  return reduced_loss(aten, aten("clamp_min", {missing, 0}));
};

// `near` where the target is 1, `far` where it is -1; 0 elsewhere.
Term by_target(const Aten& aten, Term near, Term far) {
  const Term target = aten.tensor("target");
  const auto where = [&](int64_t value, Term loss) {
    return aten("where.ScalarOther", {aten("eq.Scalar", {target, value}), loss, 0});
  };
  return aten("add.Tensor", {where(1, near), where(-1, far)});
}

constexpr auto kHingeEmbedding = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  const Term missing =
      aten("clamp_min", {aten("rsub.Scalar", {self, call.float_attr("margin")}), 0});
  const auto unless = [&](int64_t value, Term loss) {
    return aten("where.ScalarOther", {aten("ne.Scalar", {target, value}), loss, 0});
  };
  return reduced_loss(aten, aten("add.Tensor", {unless(1, missing), unless(-1, self)}));
};

constexpr double kLeastSquare = 1e-12;

constexpr auto kCosineEmbedding = [](const Aten& aten) {
  const Term a = aten.tensor("input1"), b = aten.tensor("input2");
  const Dims dim = {aten.tensor("target").rank()};
  const auto product = [&](Term x, Term y) {
    return aten("sum.dim_IntList", {aten("mul.Tensor", {x, y}), dim});
  };
  const auto square = [&](Term x) { return aten("add.Scalar", {product(x, x), kLeastSquare}); };
  const Term lengths = aten("sqrt", {aten("mul.Tensor", {square(a), square(b)})});
  const Term cosine = aten("div.Tensor", {product(a, b), lengths});
  const Term far = aten("sub.Scalar", {cosine, aten.call().float_attr("margin")});
  return reduced_loss(
      aten, by_target(aten, aten("rsub.Scalar", {cosine, 1}), aten("clamp_min", {far, 0})));
};

constexpr auto kTriplet = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const auto distance = [&](Term x, Term y) {
    return aten("pairwise_distance", {x, y, aten.attr("p"), aten.attr("eps")});
  };
  const Term anchor = aten.tensor("anchor"), positive = aten.tensor("positive");
  const Term negative = aten.tensor("negative");
  Term far = distance(anchor, negative);
  if (call.bool_attr("swap")) far = aten("minimum", {far, distance(positive, negative)});
  const Term missing = aten("add.Scalar", {aten("sub.Tensor", {distance(anchor, positive), far}),
                                           call.float_attr("margin")});
  return reduced_loss(aten, aten("clamp_min", {missing, 0}));
};

}  // namespace

std::vector<Import> import_loss() {
  std::vector<Import> imports;
  const auto add = [&](const std::string& schema, auto build) {
    imports.push_back({.schema = schema + " -> Tensor", .build = build});
  };
  const std::string pair = "(Tensor self, Tensor target, int reduction=1";
  add("mse_loss" + pair + ")", composed<kMse>);
  add("l1_loss" + pair + ")", composed<kL1>);
  add("smooth_l1_loss" + pair + ", float beta=1.)", composed<kSmoothL1>);
  add("huber_loss" + pair + ", float delta=1.)", composed<kHuber>);
  add("soft_margin_loss" + pair + ")", composed<kSoftMargin>);
  add("kl_div" + pair + ", *, bool log_target=False)", composed<kKlDiv>);
  add("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
      "reduction)",
      composed<kPoisson>);
  add("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)",
      composed<kCrossEntropyOfBits>);
  add("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
      "pos_weight=None, int reduction=1)",
      composed<kCrossEntropyOfLogits>);
  add("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
      "reduction=1)",
      composed<kMarginRanking>);
  add("hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1)",
      composed<kHingeEmbedding>);
  add("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
      "reduction=1)",
      composed<kCosineEmbedding>);
  add("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., "
      "float p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1)",
      composed<kTriplet>);
  return imports;
}

}  // namespace lathe
