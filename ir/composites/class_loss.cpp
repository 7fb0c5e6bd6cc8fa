// Losses against the numbers of the classes that are right.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/op/loss.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Classes are in dim 1, of a single sample in dim 0.
int64_t class_dim(Term scores) { return scores.rank() == 1 ? 0 : 1; }

// A vector along the classes, so that it broadcasts.
Term along_classes(const Aten& aten, Term weight, Term scores) {
  Shape shape(static_cast<size_t>(std::max(scores.rank(), 2)), 1);
  shape[static_cast<size_t>(class_dim(scores))] = Aten::size(weight, 0);
  if (scores.rank() == 1) shape.pop_back();
  return aten("reshape", {weight, shape});
}

// Per sample: minus the log probability of its class, weighted, and the weight.
struct Nll {
  Term loss, weight;
};

Nll nll_of(const Aten& aten, Term scores, Term target, Term weight) {
  const int64_t dim = class_dim(scores);
  const Attr ignored = aten.attr("ignore_index");
  const Term counts = aten("ne.Scalar", {target, ignored});
  const Term place =
      aten("unsqueeze", {aten("where.ScalarOther", {counts, target, int64_t{0}}), dim});
  const Term score = aten("squeeze.dim", {aten("gather", {scores, dim, place}), dim});
  Term own = aten("to.dtype", {counts, scores.dtype()});
  if (weight) {
    const Term wide = aten("expand", {along_classes(aten, weight, scores), scores.shape()});
    const Term of_class = aten("squeeze.dim", {aten("gather", {wide, dim, place}), dim});
    own = aten("where.ScalarOther", {counts, of_class, 0});
  }
  // Not the product with 0: an ignored score may be infinite.
  const Term kept = aten("where.ScalarOther", {counts, aten("neg", {score}), 0});
  return {aten("mul.Tensor", {kept, own}), own};
}

Term reduced_nll(const Aten& aten, const Nll& nll) {
  if (aten.call().int_attr("reduction", 1) != 1) return reduced_loss(aten, nll.loss);
  return aten("div.Tensor", {aten("sum", {nll.loss}), aten("sum", {nll.weight})});
}

constexpr auto kNll = [](const Aten& aten) {
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  if (self.rank() < 1)
    return aten.fail(code::kShapeMismatch, fmt::format("'{}' needs classes", aten.call().target));
  return reduced_nll(aten, nll_of(aten, self, target, aten.tensor("weight")));
};

// As nll, with the sum of the weights.
constexpr auto kNllForward = [](const Aten& aten) {
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  const Nll nll = nll_of(aten, self, target, aten.tensor("weight"));
  const bool is_reduced = aten.call().int_attr("reduction", 1) != 0;
  const Term total = is_reduced ? aten("sum", {nll.weight}) : aten.scalar(0, self.dtype());
  return std::vector<Term>{reduced_nll(aten, nll), total};
};

// The mean is over samples, whatever the weights.
Term mean_over_samples(const Aten& aten, Term loss, Term scores) {
  if (aten.call().int_attr("reduction", 1) != 1) return reduced_loss(aten, loss);
  Term count =
      aten("sum", {aten("ones_like", {aten("select.int", {scores, class_dim(scores), 0})})});
  return aten("div.Tensor", {aten("sum", {loss}), count});
}

// Targets that are probabilities of the classes.
Term cross_entropy_of_probabilities(const Aten& aten, Term scores) {
  const double smoothing = aten.call().float_attr("label_smoothing");
  Term target = aten.tensor("target");
  if (smoothing > 0) {
    const Dim classes = Aten::size(scores, class_dim(scores));
    if (!classes.is_const())
      return aten.fail(code::kUnsupported, "label smoothing of a symbolic number of classes");
    target = aten("add.Scalar", {aten("mul.Scalar", {target, 1 - smoothing}),
                                 smoothing / static_cast<double>(classes.value())});
  }
  Term losses = aten("mul.Tensor", {scores, target});
  if (const Term weight = aten.tensor("weight"))
    losses = aten("mul.Tensor", {losses, along_classes(aten, weight, scores)});
  const Term loss = aten("neg", {aten("sum.dim_IntList", {losses, Dims{class_dim(scores)}})});
  return mean_over_samples(aten, loss, scores);
}

// Some of the loss is that of all classes alike.
Term smoothed(const Aten& aten, Term scores, const Nll& nll) {
  const double smoothing = aten.call().float_attr("label_smoothing");
  const int64_t dim = class_dim(scores);
  const Dim classes = Aten::size(scores, dim);
  if (!classes.is_const())
    return aten.fail(code::kUnsupported, "label smoothing of a symbolic number of classes");
  const Term weight = aten.tensor("weight");
  const Term weighted =
      weight ? aten("mul.Tensor", {scores, along_classes(aten, weight, scores)}) : scores;
  const Term all = aten("neg", {aten("sum.dim_IntList", {weighted, Dims{dim}})});
  const Term counts = aten("ne.Scalar", {aten.tensor("target"), aten.attr("ignore_index")});
  const Term uniform = aten("where.ScalarOther", {counts, all, 0});
  const auto reduced = [&](Term loss) {
    if (aten.call().int_attr("reduction", 1) != 1) return reduced_loss(aten, loss);
    return aten("div.Tensor", {aten("sum", {loss}), aten("sum", {nll.weight})});
  };
  const double share = smoothing / static_cast<double>(classes.value());
  return aten("add.Tensor", {aten("mul.Scalar", {reduced(nll.loss), 1 - smoothing}),
                             aten("mul.Scalar", {reduced(uniform), share})});
}

constexpr auto kCrossEntropy = [](const Aten& aten) {
  const Term self = aten.tensor("self"), target = aten.tensor("target");
  if (self.rank() < 1) return aten.fail(code::kShapeMismatch, "'cross_entropy_loss' needs classes");
  const Term scores = aten("log_softmax.int", {self, class_dim(self)});
  if (is_float(target.dtype())) return cross_entropy_of_probabilities(aten, scores);
  const Nll nll = nll_of(aten, scores, target, aten.tensor("weight"));
  if (aten.call().float_attr("label_smoothing") > 0) return smoothed(aten, scores, nll);
  return reduced_nll(aten, nll);
};

// The classes' scores are a linear layer's, in f32 for halves. PyTorch takes a few rows at a time,
// and makes the gradients on the way: the results behind the first.
Built linear_cross_entropy(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const auto wide = [&](const char* arg) {
    const Term x = aten.tensor(arg);
    return x ? aten.wide(x) : x;
  };
  const Term scores = aten("linear", {wide("input"), wide("linear_weight"), wide("linear_bias")});
  const std::string reduction = call.string_attr("reduction");
  const int64_t how = reduction == "mean" ? 1 : reduction == "sum" ? 2 : 0;
  const Term loss =
      aten("cross_entropy_loss", {scores, aten.tensor("target"), wide("weight"), how,
                                  aten.attr("ignore_index"), call.float_attr("label_smoothing")});
  std::vector<Value> results(call.schema->returns.size());
  results.front() = aten("to.dtype", {loss, aten.tensor("input").dtype()});
  return results;
}

// --- margins between the right class and all others

constexpr auto kMultiMargin = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self"), weight = aten.tensor("weight");
  const Term rows = self.rank() < 2 ? aten("reshape", {self, Dims{1, -1}}) : self;
  const Term target = aten("reshape", {aten.tensor("target"), Dims{-1, 1}});
  const Term score = aten("gather", {rows, 1, target});
  Term missing = aten(
      "clamp_min",
      {aten("add.Scalar", {aten("sub.Tensor", {rows, score}), call.float_attr("margin", 1)}), 0});
  if (call.float_attr("p", 1) == 2) missing = aten("mul.Tensor", {missing, missing});
  if (weight) {
    const Term of_class = aten("gather", {weight, 0, aten("reshape", {target, Dims{-1}})});
    missing = aten("mul.Tensor", {missing, aten("reshape", {of_class, Dims{-1, 1}})});
  }
  const Term is_own = aten("eq.Tensor", {aten.arange(Aten::size(rows, 1)), target});
  const Term others = aten("masked_fill.Scalar", {missing, is_own, 0});
  const Term loss = aten("mean.dim", {others, Dims{1}});
  return reduced_loss(aten, self.rank() < 2 ? aten("reshape", {loss, Dims{}}) : loss);
};

// Targets up to the first -1 are classes of the sample.
constexpr auto kMultilabelMargin = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term rows = self.rank() < 2 ? aten("reshape", {self, Dims{1, -1}}) : self;
  const Term target = aten("reshape", {aten.tensor("target"), rows.shape()});
  const Term ends = aten("cumsum", {aten("lt.Scalar", {target, 0}), 1});
  const Term counts = aten("eq.Scalar", {ends, 0});
  const Term place = aten("where.ScalarOther", {counts, target, int64_t{0}});
  const Term score = aten("unsqueeze", {aten("gather", {rows, 1, place}), 2});
  // [samples, targets, classes]
  const Term is_class =
      aten("logical_and",
           {aten("unsqueeze", {counts, 2}),
            aten("eq.Tensor", {aten("unsqueeze", {place, 2}), aten.arange(Aten::size(rows, 1))})});
  const Term is_other = aten("logical_not", {aten("any.dim", {is_class, 1, true})});
  const Term missing = aten(
      "clamp_min",
      {aten("add.Scalar", {aten("sub.Tensor", {aten("unsqueeze", {rows, 1}), score}), 1.0}), 0});
  const Term is_compared = aten("logical_and", {aten("unsqueeze", {counts, 2}), is_other});
  const Term losses = aten("where.ScalarOther", {is_compared, missing, 0});
  const Term summed = aten("sum.dim_IntList", {losses, Dims{1}});
  const Term loss = aten("mean.dim", {summed, Dims{1}});
  return reduced_loss(aten, self.rank() < 2 ? aten("reshape", {loss, Dims{}}) : loss);
};

}  // namespace

std::vector<Import> import_class_loss() {
  const std::string nll =
      "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
      "ignore_index=-100) -> Tensor";
  const std::string forward =
      "(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
      "output, Tensor total_weight)";
  const std::string linear =
      "(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, ";
  return {
      {.schema = "torch_nn._linear_cross_entropy_batch_chunked" + linear +
                 "str reduction, int ignore_index, float label_smoothing, int batch_chunk_size, "
                 "str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool "
                 "compute_input_grad, bool compute_linear_weight_grad, bool "
                 "compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)",
       .build = linear_cross_entropy},
      {.schema = "torch_nn._linear_cross_entropy_batch_chunked_no_reduction" + linear +
                 "int ignore_index, int batch_chunk_size, str acc_policy, ScalarType acc_dtype) -> "
                 "Tensor",
       .build = linear_cross_entropy},
      {.schema = "nll_loss" + nll, .build = composed<kNll>},
      {.schema = "nll_loss_nd" + nll, .build = composed<kNll>},
      {.schema = "nll_loss2d" + nll, .build = composed<kNll>},
      {.schema = "nll_loss_forward" + forward, .build = composed<kNllForward>},
      {.schema = "nll_loss2d_forward" + forward, .build = composed<kNllForward>},
      {.schema = "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int "
                 "reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
       .build = composed<kCrossEntropy>},
      {.schema = "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, "
                 "Tensor? weight=None, int reduction=1) -> Tensor",
       .build = composed<kMultiMargin>},
      {.schema = "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       .build = composed<kMultilabelMargin>},
  };
}

}  // namespace lathe
