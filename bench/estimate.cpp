// How near estimates come to what compressions give: ratio and PSNR, at bounds of 1e-2, 1e-3 and
// 1e-4 of the range. Fields of at least a megabyte.
//
//     firn_bench_estimate FOLDER [--tile MB]
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fields.hpp"

namespace {

struct Errors {
  double log_sum = 0, worst = 1, psnr_sum = 0, share = 0;
  int count = 0;
  std::string worst_name;
};

void add(const bench::Field& field, firn::Preset preset, double rel, Errors* errors) {
  firn::Options options;
  options.preset = preset;
  options.fill = field.fill;
  options.bound = firn::Bound::rel(rel);
  const auto estimate = firn::estimate(field.view(), options);
  const auto stream = firn::compress(field.view(), options);
  if (!estimate || !stream) std::exit(1);
  const auto truth = firn::verify(field.view(), *stream);
  if (!truth) std::exit(1);
  const double ratio =
      static_cast<double>(field.bytes.size()) / static_cast<double>(stream->size());
  const double off = std::fabs(std::log(estimate->ratio / ratio));
  errors->log_sum += off;
  if (std::exp(off) > errors->worst) {
    errors->worst = std::exp(off);
    errors->worst_name = field.name;
  }
  errors->psnr_sum += std::fabs(estimate->psnr_db - truth->psnr_db);
  errors->share +=
      static_cast<double>(estimate->sampled_values) / static_cast<double>(field.shape.count());
  ++errors->count;
  std::printf("%-9s %-20s %6.0e %10.2f of %10.2f %+7.1f %% %8.2f of %7.2f dB\n",
              firn::name_of(preset), field.name.c_str(), rel, estimate->ratio, ratio,
              100 * (estimate->ratio / ratio - 1), estimate->psnr_db, truth->psnr_db);
}

constexpr const char* kUsage = "firn_bench_estimate FOLDER [--tile MB]";
constexpr std::size_t kLeastBytes = 1000000;

}  // namespace

int main(int count, char** arguments) {
  std::string folder;
  std::size_t tile_bytes = 0;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--tile" && i + 1 < count) {
      tile_bytes = static_cast<std::size_t>(std::atof(arguments[++i]) * 1e6);
    } else {
      folder = bench::folder_argument(argument, kUsage);
    }
  }
  auto fields = bench::load_folder(folder, kUsage, kLeastBytes);
  for (bench::Field& field : fields) {
    if (tile_bytes != 0) bench::tile(&field, tile_bytes);
  }
  for (const auto preset : {firn::Preset::fast, firn::Preset::balanced, firn::Preset::small}) {
    Errors errors;
    for (const bench::Field& field : fields) {
      for (const double rel : {1e-2, 1e-3, 1e-4}) add(field, preset, rel, &errors);
    }
    std::printf(
        "%-9s mean: ratio off by %.1f %%, PSNR by %.2f dB; %.0f %% of the values seen; "
        "worst: factor %.2f (%s)\n\n",
        firn::name_of(preset), 100 * (std::exp(errors.log_sum / errors.count) - 1),
        errors.psnr_sum / errors.count, 100 * errors.share / errors.count, errors.worst,
        errors.worst_name.c_str());
  }
}
