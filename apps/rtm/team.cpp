#include "team.hpp"

namespace rtm {

Team::Team(int members, const std::function<void(int)>& prepare)
    : members_(members), barrier_(members) {
  for (int member = 1; member < members; ++member) {
    threads_.emplace_back([this, member, prepare] {
      prepare(member);
      for (;;) {
        barrier_.arrive_and_wait();
        if (work_ == nullptr) return;
        (*work_)(member);
        barrier_.arrive_and_wait();
      }
    });
  }
  prepare(0);
}

Team::~Team() {
  work_ = nullptr;
  barrier_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(const std::function<void(int)>& work) {
  work_ = &work;
  barrier_.arrive_and_wait();
  work(0);
  barrier_.arrive_and_wait();
}

}  // namespace rtm
