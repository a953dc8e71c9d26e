// Writes seeds for the fuzzers: make_seeds DECODE_FOLDER ROUND_TRIP_FOLDER
#include <cstdio>
#include <firn/stream.hpp>
#include <string>
#include <utility>
#include <vector>

#include "container/format.hpp"
#include "fuzz_input.hpp"
#include "support/fields.hpp"
#include "support/forged_stream.hpp"
#include "support/pipelines.hpp"

namespace {

using firn::test::Kind;

void write(const std::string& folder, int number, const std::vector<std::uint8_t>& bytes) {
  const std::string name = folder + "/seed" + std::to_string(number);
  std::FILE* file = std::fopen(name.c_str(), "wb");
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() ||
      std::fclose(file) != 0) {
    std::perror(name.c_str());
    std::exit(1);
  }
}

// Whose codes may have one; small arrays are not given any.
bool has_phases(firn::Pipeline pipeline) {
  return pipeline == firn::Pipeline::lorenzo || pipeline == firn::Pipeline::blockpack ||
         pipeline == firn::Pipeline::contexts;
}

template <class T>
int write_seeds(const std::string& decode, const std::string& round_trip, int number) {
  // Under an absolute bound, then under a point-wise one.
  std::vector<std::pair<firn::Pipeline, bool>> ways;
  for (const firn::Pipeline pipeline : firn::test::chosen_pipelines())
    ways.push_back({pipeline, false});
  for (const firn::Pipeline pipeline : firn::test::pointwise_pipelines())
    ways.push_back({pipeline, true});
  for (const auto& [pipeline, pointwise] : ways) {
    // By rank: the bytes that ForgedChunk reads as extents, and the shape that they stand for.
    const std::vector<std::uint8_t> extents[] = {{60}, {9, 5}, {4, 5, 4}, {2, 3, 2, 3}};
    for (int rank = 1; rank <= firn::kMaxRank; ++rank) {
      for (const Kind kind : {Kind::noisy, Kind::smooth, Kind::steps}) {
        std::vector<std::uint8_t> head{
            static_cast<std::uint8_t>(pipeline),
            static_cast<std::uint8_t>((sizeof(T) == 8) + 2 * (rank - 1))};
        const auto& list = extents[rank - 1];
        head.insert(head.end(), list.begin(), list.end());
        head.push_back(pointwise ? 0x84 : 4);     // margin 6
        head.push_back(pointwise ? 0x03 : 0xFC);  // bound 2^-4
        firn::ByteReader in(head);
        const auto chunk = firn::fuzz::ForgedChunk::read(in);
        auto values = firn::test::make_field<T>(chunk.shape, kind);
        if (kind == Kind::noisy) firn::test::sprinkle_specials(values, 2, values.size() / 20);
        firn::Options options;
        options.pipeline = pipeline;
        options.bound = pointwise ? firn::Bound::pwrel(0.0625) : firn::Bound::abs(0.0625);
        const auto stream = firn::compress(firn::test::const_view_of(values, chunk.shape), options);
        if (!stream) std::exit(1);
        const auto bytes = firn::test::bytes_of(*stream);

        std::vector<std::uint8_t> whole{firn::fuzz::kWholeStream};
        whole.insert(whole.end(), bytes.begin(), bytes.end());
        write(decode, number++, whole);
        const auto sole = firn::test::sole_chunk_of(bytes);
        std::vector<std::uint8_t> forged{firn::fuzz::kForgedChunk};
        forged.insert(forged.end(), head.begin(), head.end());
        forged[1] = static_cast<std::uint8_t>(sole.pipeline);
        const std::size_t payload_at = forged.size();
        forged.insert(forged.end(), sole.payload.begin(), sole.payload.end());
        write(decode, number++, forged);
        if (has_phases(sole.pipeline) && !pointwise) {
          forged[payload_at] |= firn::format::kHasPhase;
          std::size_t place = payload_at + 2;  // behind flags and orders, the base
          while (forged[place] >= 0x80) ++place;
          forged.insert(forged.begin() + static_cast<std::ptrdiff_t>(place) + 1, 77);
          write(decode, number++, forged);
        }

        std::vector<std::uint8_t> input{static_cast<std::uint8_t>(number % 256)};
        input.insert(input.end(), head.begin(), head.end());
        const auto* first = reinterpret_cast<const std::uint8_t*>(values.data());
        input.insert(input.end(), first,
                     first + std::min<std::size_t>(values.size(), 200) * sizeof(T));
        write(round_trip, number++, input);
      }
    }
  }
  return number;
}

// Series of a few parts, with and without a directory, cut, and one behind another.
template <class T>
int write_series_seeds(const std::string& decode, int number) {
  const firn::Shape shape{5, 6, 7};
  const auto values = firn::test::make_field<T>(shape, Kind::noisy);
  for (const firn::Pipeline pipeline : {firn::Pipeline::lorenzo, firn::Pipeline::blockpack}) {
    firn::Options options;
    options.pipeline = pipeline;
    options.books = firn::BookPolicy::chi;
    options.bound = firn::Bound::abs(0.0625);
    options.chunk = {1, 6, 4};
    auto writer = firn::StreamWriter::create(firn::test::kTypeOf<T>, {6, 7}, options);
    if (!writer) std::exit(1);
    for (const auto& [first, count] : {std::pair{0u, 2u}, std::pair{2u, 3u}}) {
      const firn::ArrayView steps{
          values.data() + first * 42, firn::test::kTypeOf<T>, {count, 6, 7}, {}};
      if (!writer->push(steps).ok() || !writer->flush().ok()) std::exit(1);
    }
    const std::size_t parts = writer->ready().size();
    if (!writer->finish().ok()) std::exit(1);
    const auto ready = writer->ready();
    std::vector<std::uint8_t> input{firn::fuzz::kWholeStream};
    input.insert(input.end(), ready.begin(), ready.end());
    write(decode, number++, input);
    for (const std::size_t size : {parts, parts - 5, parts * 3 / 4}) {
      write(decode, number++,
            {input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size + 1)});
    }
    input.insert(input.end(), ready.begin(), ready.end());
    write(decode, number++, input);
  }
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: make_seeds DECODE_FOLDER ROUND_TRIP_FOLDER\n", stderr);
    return 1;
  }
  int number = write_seeds<float>(argv[1], argv[2], 0);
  number = write_seeds<double>(argv[1], argv[2], number);
  number = write_series_seeds<float>(argv[1], number);
  write_series_seeds<double>(argv[1], number);
  return 0;
}
