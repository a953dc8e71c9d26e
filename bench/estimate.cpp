// How near estimates come to what compressions give: ratio and PSNR, at bounds of 1e-2, 1e-3 and
// 1e-4 of the range; and the bound, of a ratio and of a PSNR. Fields of at least a megabyte.
//
//     firn_bench_estimate FOLDER [--tile MB]
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "fields.hpp"

namespace {

// Factors that estimates are off by.
struct Factors {
  double log_sum = 0, worst = 1;
  int count = 0;
  std::string worst_name;

  void add(const std::string& name, double factor) {
    const double off = std::fabs(std::log(factor));
    log_sum += off;
    ++count;
    if (std::exp(off) <= worst) return;
    worst = std::exp(off);
    worst_name = name;
  }
  double mean_percent() const { return 100 * (std::exp(log_sum / count) - 1); }
};

struct Errors {
  Factors ratio;
  double psnr_sum = 0, share = 0;
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
  errors->ratio.add(field.name, estimate->ratio / ratio);
  errors->psnr_sum += std::fabs(estimate->psnr_db - truth->psnr_db);
  errors->share +=
      static_cast<double>(estimate->sampled_values) / static_cast<double>(field.shape.count());
  std::printf("%-9s %-20s %6.0e %10.2f of %10.2f %+7.1f %% %8.2f of %7.2f dB\n",
              firn::name_of(preset), field.name.c_str(), rel, estimate->ratio, ratio,
              100 * (estimate->ratio / ratio - 1), estimate->psnr_db, truth->psnr_db);
}

void add_bound(const bench::Field& field, firn::Preset preset, firn::Bound bound,
               Factors* factors) {
  firn::Options options;
  options.preset = preset;
  options.fill = field.fill;
  options.bound = bound;
  const auto estimate = firn::estimate(field.view(), options);
  const auto stream = firn::compress(field.view(), options);
  if (!estimate || !stream) std::exit(1);
  const double found = firn::inspect(*stream)->bound_abs;
  // Nothing to compare where nothing needs to be lost.
  if (found > 0 && estimate->bound_abs > 0) {
    factors->add(field.name, estimate->bound_abs / found);
  }
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
    Factors of_ratio, of_psnr;
    for (const bench::Field& field : fields) {
      for (const double rel : {1e-2, 1e-3, 1e-4}) add(field, preset, rel, &errors);
      const double ratio = field.type == firn::Type::f32 ? 10.5 : 21;
      add_bound(field, preset, firn::Bound::ratio(ratio), &of_ratio);
      add_bound(field, preset, firn::Bound::psnr(60), &of_psnr);
    }
    std::printf(
        "%-9s mean: ratio off by %.1f %%, PSNR by %.2f dB; %.0f %% of the values seen; "
        "worst: factor %.2f (%s)\n",
        firn::name_of(preset), errors.ratio.mean_percent(), errors.psnr_sum / errors.ratio.count,
        100 * errors.share / errors.ratio.count, errors.ratio.worst,
        errors.ratio.worst_name.c_str());
    for (const auto& [factors, what] :
         {std::pair{of_ratio, "a ratio of 10.5 or 21"}, {of_psnr, "60 dB"}}) {
      std::printf("          bound for %s off by %.1f %%; worst: factor %.2f (%s)\n", what,
                  factors.mean_percent(), factors.worst, factors.worst_name.c_str());
    }
    std::printf("\n");
  }
}
