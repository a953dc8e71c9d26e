#include "engine/rate.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "container/format.hpp"
#include "container/records.hpp"
#include "engine/progress.hpp"
#include "engine/rate_search.hpp"

namespace firn::engine {
namespace {

// Of the index, about.
std::size_t index_bytes(std::size_t chunks, double stream_bytes) {
  if (chunks < 2) return 0;
  const double record = stream_bytes / static_cast<double>(chunks);
  const std::size_t varint = record < 0x1p7 ? 1 : record < 0x1p14 ? 2 : record < 0x1p21 ? 3 : 4;
  return 16 + chunks * (varint + 2);
}

// To what was achieved.
void tighten(const std::vector<std::vector<std::uint8_t>>& records, container::Header* header) {
  if (header->bound_abs == 0) return;
  std::uint16_t units = 0;
  for (const auto& record : records) units = std::max(units, container::record_error(record));
  header->tighter =
      static_cast<std::uint8_t>(256 * (format::kErrorUnits - units) / (format::kErrorUnits + 1));
  while (header->tighter > 0 &&
         header->promised() < container::error_of_units(units, header->bound_abs)) {
    --header->tighter;
  }
}

}  // namespace

Status compress_to_ratio(const ArrayView& array, const Options& asked, const Execution& execution,
                         pipelines::Workers& workers, CompressScratch& scratch, Output& output) {
  const auto checked = plan::check_options(array.type, array.shape, asked);
  if (!checked) return checked.error();
  // The chunks are a ratio's, whatever the bound that is tried.
  Options options = asked;
  if (array.shape.count() != 0) options.chunk = checked->header.chunk;
  RateSearch search(array, options, workers);
  const auto first = search.first();
  if (!first) return first.error();
  std::vector<pipelines::Choice> choices;
  std::vector<std::vector<std::uint8_t>> best;
  std::optional<plan::Plan> best_plan;
  for (std::optional<RateSearch::Try> attempt = *first; attempt;) {
    plan::Plan plan = search.plan(*attempt);
    plan::plan_books(array, plan, workers, &scratch.books);
    Buffer head;
    Output beginning(&head);
    if (const Status status = write_head(plan, scratch, beginning); !status) return status;
    const ChunkEncoder encoder(array, plan, scratch.books);
    const auto count = static_cast<std::size_t>(encoder.grid().count());
    choices.resize(count);
    std::vector<std::uint64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = encoder.values(i);
    const auto other_bytes =
        static_cast<double>(beginning.size() + index_bytes(count, search.target_bytes()));
    Progress progress(execution, array.shape.count() * size_of(array.type));
    if (checked->one_way && plan.parameters.bound_abs > 0 &&
        choices[0].candidate.pipeline == Pipeline::automatic) {
      // That of the one chunk which they would be.
      plan::Plan uncut = plan;
      uncut.header.chunk = array.shape;
      const ChunkEncoder whole(array, uncut, scratch.books);
      workers.for_each(1, [&](std::uint64_t chunk, pipelines::Workspace& workspace) {
        choices.assign(count, whole.choose(chunk, workspace));
        return true;
      });
    }
    if (attempt->rehearsal) {
      std::vector<ChunkSize> sizes(count);
      workers.for_each(count, [&](std::uint64_t chunk, pipelines::Workspace& workspace) {
        const auto at = static_cast<std::size_t>(chunk);
        sizes[at] = {attempt->step(),
                     static_cast<double>(encoder.rehearse(chunk, &choices[at], workspace))};
        return progress.add(values[at] * size_of(array.type));
      });
      if (progress.cancelled()) return Progress::error();
      attempt = search.next(*attempt, std::move(sizes), other_bytes, &choices);
      continue;
    }
    Pass pass = search.pass(*attempt, std::move(values), other_bytes);
    std::vector<std::uint64_t> sizes;
    std::vector<std::vector<std::vector<std::uint8_t>>> records(count);  // all of each chunk
    for (auto wave = pass.next(); !wave.chunks.empty(); wave = pass.next()) {
      sizes.resize(wave.chunks.size());
      workers.for_each(sizes.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
        const std::uint64_t chunk = wave.chunks[static_cast<std::size_t>(i)];
        pipelines::Choice& choice = choices[static_cast<std::size_t>(chunk)];
        std::uint64_t& size = sizes[static_cast<std::size_t>(i)];
        std::uint8_t* const bytes = workspace.output.reserve(encoder.capacity());
        size = encoder.encode(chunk, &choice, wave.finer, nullptr, workspace, bytes);
        records[static_cast<std::size_t>(chunk)].emplace_back(bytes, bytes + size);
        return progress.add(encoder.values(chunk) * size_of(array.type));
      });
      if (progress.cancelled()) return Progress::error();
      pass.took(wave, sizes);
    }
    attempt = search.next(*attempt, pass, &choices);
    if (search.best()) {
      best.resize(count);
      for (std::size_t i = 0; i < count; ++i) best[i] = std::move(records[i][pass.taken(i)]);
      best_plan = std::move(plan);
    }
  }
  tighten(best, &best_plan->header);
  plan::plan_books(array, *best_plan, workers, &scratch.books);
  if (const Status status = write_head(*best_plan, scratch, output); !status) return status;
  for (std::size_t i = 0; i < best.size(); ++i)
    container::seal_record(best[i], best_plan->header, i);
  return write_records(*best_plan, best, scratch, output);
}

}  // namespace firn::engine
