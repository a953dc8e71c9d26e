#include "reports.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace nb = nanobind;

namespace firn_python {
namespace {

nb::tuple tuple_of(std::span<const std::uint64_t> numbers) {
  nb::list list;
  for (const std::uint64_t number : numbers) list.append(number);
  return nb::tuple(list);
}

template <class T>
nb::list list_of(const std::vector<T>& numbers) {
  nb::list list;
  for (const T number : numbers) list.append(number);
  return list;
}

nb::object number_or_none(const std::optional<double>& number) {
  return number ? nb::cast(*number) : nb::none();
}

}  // namespace

const char* dtype_name(firn::Type type) { return type == firn::Type::f32 ? "float32" : "float64"; }
firn::Type type_of(const std::string& dtype_name) {
  return dtype_name == "float32" ? firn::Type::f32 : firn::Type::f64;
}

nb::tuple tuple_of(const firn::Shape& shape) {
  return tuple_of(std::span(shape.extents).first(static_cast<std::size_t>(shape.rank)));
}
firn::Shape shape_of(const std::vector<std::uint64_t>& extents) {
  firn::Shape shape;
  shape.rank = static_cast<int>(extents.size());
  std::copy_n(extents.begin(), std::min<std::size_t>(extents.size(), firn::kMaxRank),
              shape.extents.begin());
  return shape;
}

nb::dict to_dict(const firn::Info& info) {
  nb::dict dict;
  dict["format_version"] = info.format_version;
  dict["dtype"] = dtype_name(info.type);
  dict["shape"] = tuple_of(info.shape);
  dict["chunk"] = tuple_of(info.chunk);
  dict["bound"] = firn::name_of(info.bound.kind);
  dict["bound_value"] = info.bound.value;
  dict["bound_abs"] = info.bound_abs;
  dict["max_abs_error"] = info.max_abs_error;
  dict["bound_pwrel"] = info.bound_pwrel;
  dict["max_pwrel_error"] = info.max_pwrel_error;
  dict["fill"] = number_or_none(info.fill);
  dict["part_count"] = info.part_count;
  dict["chunk_count"] = info.chunk_count;
  dict["original_bytes"] = info.original_bytes;
  dict["compressed_bytes"] = info.compressed_bytes;
  dict["complete"] = info.complete;
  return dict;
}

nb::dict to_dict(const firn::ChunkInfo& chunk) {
  nb::dict dict;
  dict["offset"] = chunk.offset;
  dict["size_bytes"] = chunk.size_bytes;
  dict["pipeline"] = firn::name_of(chunk.pipeline);
  dict["bound_abs"] = chunk.bound_abs;
  dict["max_abs_error"] = chunk.max_abs_error;
  dict["max_pwrel_error"] = chunk.max_pwrel_error;
  dict["origin"] = tuple_of({chunk.origin.data(), static_cast<std::size_t>(chunk.shape.rank)});
  dict["shape"] = tuple_of(chunk.shape);
  dict["detail"] = chunk.detail.c_str();
  return dict;
}

nb::dict to_dict(const firn::Damage& damage, int rank) {
  nb::dict dict;
  dict["chunk"] = damage.chunk;
  dict["origin"] = tuple_of({damage.region.origin.data(), static_cast<std::size_t>(rank)});
  dict["shape"] = tuple_of(damage.region.shape);
  dict["code"] = static_cast<int>(damage.error.code);
  dict["message"] = damage.error.message.c_str();
  return dict;
}

nb::dict to_dict(const firn::Comparison& comparison) {
  nb::dict dict;
  dict["count"] = comparison.count;
  dict["exact_count"] = comparison.exact_count;
  dict["violations"] = comparison.violations;
  dict["first_violation"] =
      comparison.violations != 0 ? nb::cast(comparison.first_violation) : nb::none();
  dict["max_abs_error"] = comparison.max_abs_error;
  dict["max_pwrel_error"] = comparison.max_pwrel_error;
  dict["value_range"] = comparison.value_range;
  dict["mean_squared_error"] = comparison.mean_squared_error;
  dict["psnr_db"] = comparison.psnr_db;
  return dict;
}

nb::dict to_dict(const firn::Metrics& metrics) {
  nb::dict dict;
  dict["count"] = metrics.count;
  dict["excluded"] = metrics.excluded;
  dict["excluded_different"] = metrics.excluded_different;
  dict["broken"] = metrics.broken;
  dict["minimum"] = metrics.minimum;
  dict["maximum"] = metrics.maximum;
  dict["range"] = metrics.range;
  dict["max_abs_error"] = metrics.max_abs_error;
  dict["max_range_relative_error"] = metrics.max_range_relative_error;
  dict["max_pointwise_relative_error"] = metrics.max_pointwise_relative_error;
  dict["zeros_changed"] = metrics.zeros_changed;
  dict["mean_error"] = metrics.mean_error;
  dict["rmse"] = metrics.rmse;
  dict["nrmse"] = metrics.nrmse;
  dict["psnr_db"] = metrics.psnr_db;
  dict["ssim"] = number_or_none(metrics.ssim);
  dict["error_autocorrelation"] = list_of(metrics.error_autocorrelation);
  dict["histogram_limit"] = metrics.histogram_limit;
  dict["error_histogram"] = list_of(metrics.error_histogram);
  dict["histogram_outside"] = metrics.histogram_outside;
  if (metrics.gradient) {
    nb::dict gradient;
    gradient["max_error"] = metrics.gradient->max_error;
    gradient["rmse"] = metrics.gradient->rmse;
    gradient["relative_rmse"] = metrics.gradient->relative_rmse;
    dict["gradient"] = gradient;
  } else {
    dict["gradient"] = nb::none();
  }
  if (metrics.spectrum) {
    nb::dict spectrum;
    spectrum["original"] = list_of(metrics.spectrum->original);
    spectrum["decoded"] = list_of(metrics.spectrum->decoded);
    spectrum["max_relative_error"] = metrics.spectrum->max_relative_error;
    spectrum["max_relative_error_low_half"] = metrics.spectrum->max_relative_error_low_half;
    spectrum["box"] = tuple_of(metrics.spectrum->box);
    dict["spectrum"] = spectrum;
  } else {
    dict["spectrum"] = nb::none();
  }
  return dict;
}

nb::dict to_dict(const firn::Estimate& estimate) {
  nb::dict dict;
  dict["bound"] = firn::name_of(estimate.bound.kind);
  dict["bound_value"] = estimate.bound.value;
  dict["bound_abs"] = estimate.bound_abs;
  dict["ratio"] = estimate.ratio;
  dict["psnr_db"] = estimate.psnr_db;
  dict["sampled_values"] = estimate.sampled_values;
  return dict;
}

}  // namespace firn_python
