// torch.autocast regions of a file that was not decomposed: what PyTorch casts before each call.
//
// The lists are those of PyTorch 2.13 for CPU and CUDA as far as they agree in what they do to the
// types; where they do not, the type that the file gives the result says which it was, and another
// is an error of types, never another answer.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "frontend/import/graph_importer.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Computed in the region's dtype.
constexpr std::string_view kLower[] = {
    "addbmm",
    "addmm",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "einsum",
    "linalg_matmul",
    "linear",
    "matmul",
    "mm",
    "prelu",
    "scaled_dot_product_attention",
};
// Computed in f32.
constexpr std::string_view kWide[] = {
    "avg_pool3d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cosine_embedding_loss",
    "cross_entropy_loss",
    "grid_sampler",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "nll_loss",
    "nll_loss2d",
    "nll_loss_nd",
    "poisson_nll_loss",
    "prod",
    "smooth_l1_loss",
    "soft_margin_loss",
    "trace",
    "triplet_margin_loss",
};
// Their products are cast where no type of the graph shows it.
constexpr std::string_view kWithin[] = {"gru", "lstm", "rnn_relu", "rnn_tanh"};

// "conv2d" of "torch.ops.aten.conv2d.padding"
std::string_view base_name(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.aten.";
  if (!target.starts_with(kPrefix)) return {};
  target.remove_prefix(kPrefix.size());
  return target.substr(0, target.find('.'));
}

template <size_t kSize>
bool lists(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_cast(Value value) {
  return value && is_float(value.type().dtype) && value.type().dtype != DType::f64;
}

}  // namespace

Status GraphImporter::apply_autocast(ImportCall& call) {
  if (!autocast_) return Ok{};
  const std::string_view name = base_name(call.target);
  if (lists(kWithin, name))
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' is inside a torch.autocast region, which casts within it; export "
                            "after run_decompositions() (lathe.export(..., core=True)), which "
                            "writes every cast as an op",
                            call.target)};
  DType dtype = *autocast_;
  if (name == "cat" || name == "stack" || name == "index_copy") {
    dtype = widest_float(call);
  } else if (lists(kWide, name)) {
    dtype = DType::f32;
  } else if (!lists(kLower, name)) {
    return Ok{};
  }
  const auto convert = [&](Value& value) {
    if (is_cast(value)) value = cast(Term{builder_, value}, dtype);
  };
  for (auto& [arg_name, arg] : call.args) {
    if (auto* value = std::get_if<Value>(&arg)) convert(*value);
    if (auto* values = std::get_if<std::vector<Value>>(&arg))
      std::for_each(values->begin(), values->end(), convert);
  }
  return builder_.failed() ? Status(Diag(builder_.error())) : Ok{};
}

// Where tensors of several float types meet, all become the widest.
DType GraphImporter::widest_float(const ImportCall& call) const {
  bool has_wide = false;
  for (const auto& [name, arg] : call.args) {
    if (const auto* values = std::get_if<std::vector<Value>>(&arg)) {
      for (Value value : *values) has_wide |= is_cast(value) && value.type().dtype == DType::f32;
    }
    if (const auto* value = std::get_if<Value>(&arg))
      has_wide |= is_cast(*value) && value->type().dtype == DType::f32;
  }
  return has_wide ? DType::f32 : *autocast_;
}

}  // namespace lathe
