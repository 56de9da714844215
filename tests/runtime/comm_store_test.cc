// Rendezvous: the store's keys, who may join, and what is said when it does not work.

#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/comm/frame.h"
#include "runtime/comm/membership.h"
#include "runtime/comm/store_server.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::runtime::comm::testing {
namespace {

using ::testing::HasSubstr;

// A store of `size` ranks on a port of its own.
struct Host {
  explicit Host(int size, std::chrono::milliseconds time = 10s, const std::string& job = "mine")
      : timeout(time), world_size(size) {
    Socket listening = listen_at({"127.0.0.1", 0, "a test"});
    port = local_port(listening);
    server = std::make_unique<StoreServer>(std::move(listening), StoreOptions{job, size, time});
  }
  [[nodiscard]] MemberOptions member(int rank, const std::string& job = "mine") const {
    return {.job = job,
            .rank = rank,
            .world_size = world_size,
            .store = {"127.0.0.1", port, "REPRISE_STORE_PORT"},
            .timeout = timeout};
  }
  [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", port); }

  std::chrono::milliseconds timeout;
  int world_size;
  std::uint16_t port = 0;
  std::unique_ptr<StoreServer> server;
};

template <class F>
std::string message_of(F&& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Stores, KeysAreSharedAndWaitedFor) {
  const Host host(2);
  StoreClient a(host.member(0)), b(host.member(1));
  std::string got;
  std::thread waiting([&] { got = b.get("nccl/id", Clock::now() + 10s); });
  std::this_thread::sleep_for(20ms);
  const std::string bytes("\0\x01\xFFid", 5);
  a.set("nccl/id", bytes);
  waiting.join();
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(a.get("nccl/id", Clock::now() + 10s), bytes);
}

TEST(Stores, AddCountsAcrossClients) {
  const Host host(2);
  StoreClient a(host.member(0)), b(host.member(1));
  EXPECT_EQ(a.add("count", 3), 3);
  EXPECT_EQ(b.add("count", -5), -2);
  EXPECT_EQ(a.get("count", Clock::now() + 10s), "-2");
}

TEST(Stores, AKeyThatDoesNotComeIsAnErrorAtTheDeadline) {
  const Host host(1);
  StoreClient client(host.member(0));
  const auto begin = Clock::now();
  EXPECT_THAT(message_of([&] { (void)client.get("absent", Clock::now() + 200ms); }),
              ::testing::AllOf(HasSubstr("'absent'"), HasSubstr(host.address())));
  EXPECT_GE(Clock::now() - begin, 200ms);
  EXPECT_LT(Clock::now() - begin, 8s);
}

TEST(Stores, AnotherJobsRankIsRefusedWithBothNames) {
  const Host host(2);
  for (const auto& join :
       std::vector<std::function<void()>>{[&] { Membership member(host.member(1, "theirs")); },
                                          [&] {
                                            StoreClient client(host.member(1, "theirs"));
                                            (void)client.get("key", Clock::now() + 10s);
                                          }}) {
    const std::string said = message_of(join);
    EXPECT_THAT(said, HasSubstr("job 'mine' runs there, not 'theirs'"));
    EXPECT_THAT(said, HasSubstr(host.address()));
    EXPECT_THAT(said, HasSubstr("REPRISE_STORE_PORT"));
  }
}

TEST(Stores, ARankThatIsTakenOrAWorldOfAnotherSizeIsRefused) {
  const Host host(2);
  std::thread first([&] { EXPECT_NO_THROW(Membership(host.member(0))); });
  std::this_thread::sleep_for(100ms);
  EXPECT_THAT(message_of([&] { Membership again(host.member(0)); }), HasSubstr("rank 0 is taken"));
  MemberOptions larger = host.member(1);
  larger.world_size = 3;
  EXPECT_THAT(message_of([&] { Membership other(larger); }),
              HasSubstr("rank 0 has world size 2, rank 1 has 3"));
  Membership second(host.member(1));  // and the job itself is unharmed
  first.join();
}

// A port scanner, a web browser, a peer that says half of something and one that only listens.
TEST(Stores, StrangersAreHungUpOnAndDisturbNobody) {
  const Host host(1);
  std::vector<Socket> strangers;
  std::string oversized = Frame(FrameType::kHello).encoded();
  oversized[8] = '\x7F';  // a length of 2 GB
  for (const std::string& says :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("RPS"), std::string(),
        oversized, Frame(FrameType::kHello).add("mine").encoded(),
        Frame(FrameType::kSet).add("a").add("b").encoded(), std::string(100000, '\xFF')}) {
    strangers.push_back(connect_to({"127.0.0.1", host.port, ""}, Clock::now() + 5s));
    (void)send_all(strangers.back().fd(), says, Clock::now() + 1s);
  }
  ::shutdown(strangers[1].fd(), SHUT_WR);  // half closed, in the middle of a frame
  const Membership member(host.member(0));
  StoreClient client(host.member(0));
  client.set("key", "value");
  EXPECT_EQ(client.get("key", Clock::now() + 5s), "value");
  EXPECT_FALSE(member.failure(100ms).has_value());
}

TEST(Stores, RandomBytesNeverHarmTheStore) {
  const Host host(1);
  unsigned state = 11;  // the seed
  const auto random = [&] { return state = state * 1664525u + 1013904223u; };
  for (int round = 0; round < 200; ++round) {
    const Socket stranger = connect_to({"127.0.0.1", host.port, ""}, Clock::now() + 5s);
    std::string says =
        Frame(static_cast<FrameType>(random() >> 24)).add("mine").add_number(1).encoded();
    for (int flips = 0; flips < 3; ++flips)
      says[(random() >> 8) % says.size()] = static_cast<char>(random() >> 24);
    (void)send_all(stranger.fd(), says, Clock::now() + 1s);
  }
  StoreClient client(host.member(0));
  EXPECT_EQ(client.add("alive", 1), 1);
}

// C45: a port that is taken is named, with what chooses another.
TEST(Stores, APortInUseIsNamedWithItsOption) {
  const Socket holder = listen_at({"127.0.0.1", 0, ""});
  const Endpoint taken{"127.0.0.1", local_port(holder), "MASTER_PORT 29500, plus 1000"};
  const std::string said = message_of([&] { (void)listen_at(taken); });
  EXPECT_THAT(said, HasSubstr(taken.text()));
  EXPECT_THAT(said, HasSubstr("in use"));
  EXPECT_THAT(said, HasSubstr("MASTER_PORT 29500"));
}

// C45: a job of one rank needs no port at all.
TEST(Stores, AWorldOfOneNeedsNoPort) {
  GlooOptions options;
  options.environment.store_port = 1;  // nobody may listen there
  const auto alone = make_gloo_communicator(options);
  std::vector<float> x{1, 2};
  alone->all_reduce(std::span(x));
  alone->barrier();
  EXPECT_EQ(x[1], 2);
}

// C46: an address that leads nowhere; from where, to where, and what to set.
TEST(Stores, AnUnreachableMasterIsAnErrorWithinTheDeadline) {
  const auto begin = Clock::now();
  const std::string said = message_of([] {
    (void)connect_to({"192.0.2.1", 30500, "MASTER_PORT 29500, plus 1000"}, Clock::now() + 700ms);
  });
  EXPECT_GE(Clock::now() - begin, 700ms);
  EXPECT_LT(Clock::now() - begin, 10s);
  EXPECT_THAT(said, HasSubstr("192.0.2.1:30500"));
  EXPECT_THAT(said, HasSubstr("no connection from"));
  EXPECT_THAT(said, HasSubstr("MASTER_ADDR"));
}

TEST(Stores, AMasterThatComesLaterIsWaitedFor) {
  Socket listening = listen_at({"127.0.0.1", 0, ""});
  const std::uint16_t port = local_port(listening);
  listening.close();
  std::thread late([&] {
    std::this_thread::sleep_for(300ms);
    listening = listen_at({"127.0.0.1", port, ""});
  });
  EXPECT_NO_THROW((void)connect_to({"127.0.0.1", port, ""}, Clock::now() + 20s));
  late.join();
}

// Something else listens there, and says nothing.
TEST(Stores, AMuteListenerIsNoStore) {
  const Socket mute = listen_at({"127.0.0.1", 0, ""});
  const MemberOptions options{.job = "mine",
                              .world_size = 2,
                              .store = {"127.0.0.1", local_port(mute), "MASTER_PORT"},
                              .timeout = 400ms};
  EXPECT_THAT(message_of([&] { Membership member(options); }), HasSubstr("is no store of Reprise"));
}

TEST(Stores, RanksThatDoNotComeAreNamedToAllWhoDid) {
  const Host host(4, 600ms);
  std::vector<std::string> said(2);
  std::vector<std::thread> ranks;
  for (const int rank : {0, 2}) {
    ranks.emplace_back([&, rank] {
      said[static_cast<std::size_t>(rank) / 2] =
          message_of([&] { Membership member(host.member(rank)); });
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& each : said) {
    EXPECT_THAT(each, ::testing::AnyOf(HasSubstr("1, 3"),
                                       HasSubstr("rank 1 failed first: it did not join")));
  }
}

// What `kill -9` looks like from outside: a connection that ends without a goodbye.
TEST(Stores, AMemberWhoseConnectionEndsIsNamedToTheOthers) {
  const Host host(2);
  Socket raw = connect_to({"127.0.0.1", host.port, ""}, Clock::now() + 5s);
  (void)send_all(
      raw.fd(),
      Frame(FrameType::kHello).add("mine").add_number(2).add_number(1).add_number(1).encoded(),
      Clock::now() + 1s);
  const Membership member(host.member(0));
  EXPECT_FALSE(member.failure().has_value());
  raw.close();
  const auto failure = member.failure(10s);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->reason, HasSubstr("its process ended"));
}

// What SIGSTOP looks like: a connection that stays and says nothing.
TEST(Stores, ASilentMemberIsNamedAfterTheTimeOut) {
  const Host host(2, 800ms);
  const Socket raw = connect_to({"127.0.0.1", host.port, ""}, Clock::now() + 5s);
  (void)send_all(
      raw.fd(),
      Frame(FrameType::kHello).add("mine").add_number(2).add_number(1).add_number(1).encoded(),
      Clock::now() + 1s);
  const Membership member(host.member(0));
  const auto failure = member.failure(10s);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->reason, HasSubstr("not heard of"));
}

TEST(Stores, LeavingInPeaceIsNoFailure) {
  const Host host(2);
  std::thread other([&] { EXPECT_NO_THROW(Membership(host.member(1))); });
  const Membership member(host.member(0));
  other.join();
  EXPECT_FALSE(member.failure(200ms).has_value());
}

// Two jobs at once on one machine.
TEST(Stores, TwoJobsSideBySideBothFinish) {
  if (!has_gloo()) GTEST_SKIP() << "no Gloo in this build";
  std::vector<std::string> thrown[2];
  std::vector<std::thread> jobs;
  for (std::vector<std::string>& each : thrown) {
    jobs.emplace_back([&] {
      each = run_ranks(gloo_kind(), world(2), [](Communicator& end) {
        std::vector<float> x(1000, 1.0F);
        for (int i = 0; i < 20; ++i) end.all_reduce(std::span(x));
        EXPECT_EQ(x[0], 1048576.0F);  // 2^20
      });
    });
  }
  for (std::thread& job : jobs) job.join();
  for (const auto& job : thrown) EXPECT_THAT(job, ::testing::Each(::testing::IsEmpty()));
}

}  // namespace
}  // namespace reprise::runtime::comm::testing
