// Options and a look at the data become one immutable plan.
#pragma once

#include <firn/firn.hpp>

#include "container/header.hpp"
#include "pipelines/pipeline.hpp"
#include "pipelines/workers.hpp"

namespace firn::plan {

struct Plan {
  container::Header header;
  pipelines::Parameters parameters;
  // For the margin of an absolute bound: the largest magnitude that was seen of the values, or of
  // all of them.
  std::optional<double> magnitude;
  bool knows_magnitude = false;
  // Of a ratio: what the chunks may be cut into where they are too few to meet it; or nothing.
  Shape pieces;
};

// What can be checked without the data: shapes, bound, pipeline. Leaves header.bound_abs open.
Result<Plan> check_options(Type type, const Shape& shape, const Options& options);

// The plan for an array. `rel` and `psnr` read all of it once or a few times.
Result<Plan> make_plan(const ArrayView& array, const Options& options, pipelines::Workers& workers);
// The same into a new one: a plan is large, and small messages are short.
Status make_plan(const ArrayView& array, const Options& options, pipelines::Workers& workers,
                 Plan* plan);

// The plan for a bound that was found for what the options ask, which the header says; 0: lossless.
Result<Plan> plan_for_bound(const ArrayView& array, const Options& options, double bound_abs,
                            pipelines::Workers& workers);

// Absolute bounds between which a step and its inverse are normal numbers of the type. Above, a
// plan has the largest; below, it is lossless.
double largest_bound(Type type);
double least_bound(Type type);

// Gives a plan for this array another absolute bound, and its margin.
void change_bound(const ArrayView& array, double bound_abs, pipelines::Workers& workers,
                  Plan* plan);

// Minimum and maximum of the finite values that are not fill. low > high when there are none.
struct ValueRange {
  double low;
  double high;
};
// Whether a ratio leaves so many bits that steps are mostly near the last bits of values.
bool near_last_bits(Type type, double ratio);

// The root mean square error that a PSNR allows, given the width of the range.
double error_of_psnr(double width, double psnr_db);
ValueRange value_range(const ArrayView& array, std::optional<double> fill,
                       pipelines::Workers& workers);

}  // namespace firn::plan
