#include "engine/rate.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/spread.hpp"
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
void tighten(std::span<const std::span<std::uint8_t>> records, container::Header* header) {
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

// The ways to encode chunks: those of the larger ones of which they are pieces.
void choose_uncut(const ArrayView& array, const plan::Plan& plan, const Shape& uncut,
                  const plan::BookPlan& books, pipelines::Workers& workers,
                  std::vector<pipelines::Choice>* choices) {
  plan::Plan whole = plan;
  whole.header.chunk = uncut;
  const ChunkEncoder encoder(array, whole, books);
  std::vector<pipelines::Choice> chosen(static_cast<std::size_t>(encoder.grid().count()));
  workers.for_each(chosen.size(), [&](std::uint64_t chunk, pipelines::Workspace& workspace) {
    chosen[static_cast<std::size_t>(chunk)] = encoder.choose(chunk, workspace);
    return true;
  });
  const Grid pieces(array.shape, plan.header.chunk);
  for (std::size_t i = 0; i < choices->size(); ++i) {
    Region first = pieces.region(i);
    for (std::uint64_t& extent : first.shape.extents) extent = 1;
    (*choices)[i] = chosen[static_cast<std::size_t>(encoder.grid().part(first).number(0))];
  }
}

// The chunks that a rehearsal looks at first: all, or about half of many that take little more time
// to encode than to look at. (Of lines only parts are looked at.)
std::vector<std::size_t> looked_at_first(const plan::Plan& plan, std::size_t count) {
  constexpr std::size_t kMany = 8;
  const bool all = plan.parameters.pipeline != Pipeline::blockpack || count < kMany ||
                   plan.header.shape.rank == 1;
  std::vector<std::size_t> chunks;
  for (std::size_t i = 0; i < count; ++i) {
    if (all || spread(i + 1, 2) == 0) chunks.push_back(i);
  }
  return chunks;
}

// Whether bytes a value differ by no more than that, of these chunks.
bool are_alike(const std::vector<std::size_t>& chunks, const std::vector<std::uint64_t>& values,
               const std::vector<ChunkSize>& sizes, double most_apart) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const std::size_t chunk : chunks) {
    const double bytes = sizes[chunk].bytes / static_cast<double>(values[chunk]);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  return most <= most_apart * least;
}

// The other chunks, if those that were looked at differ.
std::vector<std::size_t> looked_at_later(const std::vector<std::size_t>& first,
                                         const std::vector<std::uint64_t>& values,
                                         const std::vector<ChunkSize>& sizes) {
  constexpr double kAlike = 1.25;
  std::vector<std::size_t> others;
  if (are_alike(first, values, sizes, kAlike)) return others;
  for (std::size_t i = 0, next = 0; i < sizes.size(); ++i) {
    if (next < first.size() && first[next] == i) {
      ++next;
    } else {
      others.push_back(i);
    }
  }
  return others;
}

// What was not looked at is like its neighbours.
void fill_in(const std::vector<std::size_t>& first, const std::vector<std::uint64_t>& values,
             std::vector<ChunkSize>* sizes, std::vector<pipelines::Choice>* choices) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    if (next < first.size() && first[next] == i) ++next;
    if ((*sizes)[i].bytes != 0) continue;
    const std::size_t before = first[next == 0 ? 0 : next - 1];
    const std::size_t after = next == first.size() ? before : first[next];
    const double bytes = (*sizes)[before].bytes + (*sizes)[after].bytes;
    const auto of = static_cast<double>(values[before] + values[after]);
    (*sizes)[i] = {(*sizes)[before].step, bytes / of * static_cast<double>(values[i])};
    (*choices)[i] = (*choices)[before];
  }
}

// All chunks again, or, of several that are much alike, those that took most, half of all bytes:
// how these change under another bound, the others do. (Not so in lines.)
std::vector<std::size_t> looked_at_again(int rank, const std::vector<std::uint64_t>& values,
                                         const std::vector<ChunkSize>& before) {
  constexpr std::size_t kSeveral = 3;
  constexpr double kAlike = 2, kHalf = 0.45;
  std::vector<std::size_t> chunks(before.size());
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  if (rank == 1 || chunks.size() < kSeveral || !are_alike(chunks, values, before, kAlike)) {
    return chunks;
  }
  std::stable_sort(chunks.begin(), chunks.end(),
                   [&](std::size_t a, std::size_t b) { return before[a].bytes > before[b].bytes; });
  double all = 0, bytes = 0;
  for (const ChunkSize& each : before) all += each.bytes;
  std::size_t count = 0;
  while (bytes < kHalf * all) bytes += before[chunks[count++]].bytes;
  chunks.resize(count);
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

// What was not looked at changed as the others did.
void follow(const std::vector<std::size_t>& chunks, const std::vector<ChunkSize>& before,
            std::vector<ChunkSize>* sizes) {
  double old_bytes = 0, new_bytes = 0;
  for (const std::size_t chunk : chunks) {
    old_bytes += before[chunk].bytes;
    new_bytes += (*sizes)[chunk].bytes;
  }
  const double step = (*sizes)[chunks[0]].step;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i].bytes == 0) (*sizes)[i] = {step, before[i].bytes * new_bytes / old_bytes};
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
  RateSearch search(array, options, checked->pieces, workers);
  const auto first = search.first();
  if (!first) return first.error();
  std::vector<pipelines::Choice> choices;
  std::vector<std::span<std::uint8_t>> best;
  scratch.pools.resize(static_cast<std::size_t>(workers.threads()));
  std::size_t spare = 0;  // of the two pools
  std::optional<plan::Plan> best_plan;
  std::vector<ChunkSize> rehearsed;  // what chunks took in the last rehearsal
  for (std::optional<RateSearch::Try> attempt = *first; attempt;) {
    plan::Plan plan = search.plan(*attempt);
    plan::plan_books(array, plan, workers, &scratch.books);
    Buffer head;
    Output beginning(&head);
    if (const Status status = write_head(plan, scratch, beginning); !status) return status;
    const ChunkEncoder encoder(array, plan, scratch.books);
    const auto count = static_cast<std::size_t>(encoder.grid().count());
    if (choices.size() != count) choices.assign(count, {});
    std::vector<std::uint64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = encoder.values(i);
    const auto other_bytes =
        static_cast<double>(beginning.size() + index_bytes(count, search.target_bytes()));
    Progress progress(execution, array.shape.count() * size_of(array.type));
    const bool is_cut = count > 0 && plan.header.chunk != options.chunk;
    if (is_cut && choices[0].candidate.pipeline == Pipeline::automatic) {
      choose_uncut(array, plan, options.chunk, scratch.books, workers, &choices);
    }
    std::vector<std::vector<std::span<std::uint8_t>>> records(count);  // all of each chunk
    for (auto& pools : scratch.pools) pools[spare].clear();
    const auto keep_record = [&](std::size_t chunk, const std::uint8_t* bytes, std::size_t size,
                                 const pipelines::Workspace& workspace) {
      RecordPool& pool = scratch.pools[static_cast<std::size_t>(workspace.thread)][spare];
      records[chunk].push_back(pool.add({bytes, size}));
    };
    if (attempt->rehearsal) {
      std::vector<ChunkSize> sizes(count);
      // A chunk that is all there is need not be encoded again when it comes out right.
      const auto wanted = count == 1 ? search.wanted(other_bytes) : RateSearch::Wanted{};
      const auto look_at = [&](const std::vector<std::size_t>& chunks) {
        workers.for_each(chunks.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
          const std::size_t at = chunks[static_cast<std::size_t>(i)];
          std::uint8_t* const bytes = workspace.output.reserve(encoder.capacity());
          const auto [size, written] =
              encoder.rehearse(at, &choices[at], workspace, bytes, wanted.least, wanted.most);
          sizes[at] = {attempt->step(), static_cast<double>(size)};
          if (written) keep_record(at, bytes, size, workspace);
          return progress.add(values[at] * size_of(array.type));
        });
      };
      if (rehearsed.size() == count) {
        const auto chunks = looked_at_again(array.shape.rank, values, rehearsed);
        look_at(chunks);
        follow(chunks, rehearsed, &sizes);
      } else {
        const auto chunks = looked_at_first(plan, count);
        look_at(chunks);
        if (!progress.cancelled()) look_at(looked_at_later(chunks, values, sizes));
        fill_in(chunks, values, &sizes, &choices);
      }
      rehearsed = sizes;
      if (progress.cancelled()) return Progress::error();
      if (records.empty() || records[0].empty()) {
        attempt = search.next(*attempt, std::move(sizes), other_bytes, &choices);
        continue;
      }
    }
    Pass pass = search.pass(*attempt, std::move(values), other_bytes);
    std::vector<std::uint64_t> sizes;
    auto wave = pass.next();
    if (attempt->rehearsal) {
      pass.took(wave, std::array<std::uint64_t, 1>{records[0][0].size()});
      wave = pass.next();
    }
    for (; !wave.chunks.empty(); wave = pass.next()) {
      sizes.resize(wave.chunks.size());
      workers.for_each(sizes.size(), [&](std::uint64_t i, pipelines::Workspace& workspace) {
        const std::uint64_t chunk = wave.chunks[static_cast<std::size_t>(i)];
        pipelines::Choice& choice = choices[static_cast<std::size_t>(chunk)];
        std::uint64_t& size = sizes[static_cast<std::size_t>(i)];
        std::uint8_t* const bytes = workspace.output.reserve(encoder.capacity());
        size = encoder.encode(chunk, &choice, wave.finer, nullptr, workspace, bytes);
        keep_record(static_cast<std::size_t>(chunk), bytes, size, workspace);
        return progress.add(encoder.values(chunk) * size_of(array.type));
      });
      if (progress.cancelled()) return Progress::error();
      pass.took(wave, sizes);
    }
    attempt = search.next(*attempt, pass, &choices);
    if (search.best()) {
      best.resize(count);
      for (std::size_t i = 0; i < count; ++i) best[i] = records[i][pass.taken(i)];
      best_plan = std::move(plan);
      spare = 1 - spare;
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
