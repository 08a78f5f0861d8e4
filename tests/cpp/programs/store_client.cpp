// hamr/cpp/store.hpp: what its argument names, with a server or a socket that others have.
#include <hamr/cpp/store.hpp>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_set>

using namespace std::chrono_literals;

static void require(bool condition, const char *what, int line) {
    if (condition) return;
    std::cerr << "line " << line << ": " << what << std::endl;
    std::exit(1);
}
#define TRUE(condition) require(condition, #condition, __LINE__)

static bool fails(hamr_status status, const std::function<void()> &call) {
    try {
        call();
    } catch (const hamr::error &error) {
        return error.status() == status;
    }
    return false;
}

static double sum(const hamr::buffer<double> &elements) {
    const auto [owner, values] = hamr::get_host_accessible(elements);
    return std::accumulate(values, values + elements.size(), 0.0);
}

static void fill(hamr::buffer<double> &elements, double value) { hamr::detail::check(hamr_fill(elements.native(), HAMR_FLOAT64, &value), "fill"); }

static void grouped(hamr::store::client &client) {
    const hamr::buffer<double> w(hamr::buffer_allocator::malloc, 5, 1.5);
    const hamr::buffer<int> steps(hamr::buffer_allocator::malloc, 2, 7);
    const hamr::store::id object = client.put_group({{"layers.0.w", w}, {"steps", steps, "[1]"}}, "group", {"{\"a\":1}"});
    TRUE(client.get_name("group") == object);
    hamr::buffer<double> kept;
    {
        const hamr::store::group group = client.get_group(object, 20ms);
        TRUE(group.native() && group.size() == 2 && group.path(0) == "layers.0.w" && group.values() == "{}");
        TRUE(group.metadata() == "{\"a\":1}" && group.metadata("steps") == "[1]" && group.metadata("layers.0.w").empty());
        kept = group.get<double>("layers.0.w");
        TRUE(group.get<int>(1).size() == 2 && group.info("steps").element == HAMR_INT32 && group.info(0).size == 5);
        TRUE(fails(HAMR_ERROR_TYPE, [&] { group.get<double>("steps"); }));
        TRUE(fails(HAMR_ERROR_NOT_FOUND, [&] { group.get<int>("step"); }));
        TRUE(fails(HAMR_ERROR_INDEX, [&] { group.get<int>(2); }));
    }
    TRUE(client.get_group(object, {"layers"}).size() == 1 && client.get_group(object, std::vector<std::string>{}).size() == 0);
    TRUE(fails(HAMR_ERROR_VALUE, [&] { client.get_group(object, {"layer"}); }));
    const std::string cut("steps\0", 6); // C would take it for "steps"
    TRUE(fails(HAMR_ERROR_VALUE, [&] { client.get_group(object).get<int>(cut); }));
    TRUE(fails(HAMR_ERROR_VALUE, [&] { client.get_group(object, {cut}); }));
    TRUE(fails(HAMR_ERROR_VALUE, [&] { client.put_group({{cut, w}}); }));
    TRUE(fails(HAMR_ERROR_VALUE, [&] { client.drop_name(std::string("group\0", 6)); }) && client.get_name("group") == object);
    client.delete_object(object);
    TRUE(sum(kept) == 7.5);

    const std::map<std::string, hamr::buffer<double>> weights = {{"a", w}, {"b", w}};
    const hamr::store::id mapped = client.put_group(weights);
    TRUE(client.get_group(mapped).size() == 2 && sum(client.get_group(mapped).get<double>("b")) == 7.5);
    client.delete_object(mapped);
    TRUE(client.put_group({}) != hamr::store::id());
    client.delete_object(client.list().back());
}

// Each function of the header, with a server of its own.
static void surface(const std::string &path) {
    using hamr::store::id;
    hamr::store::server server(path, 16 << 20);
    TRUE(server.path() == path);
    hamr::store::client client(path);
    TRUE(client.path() == path && client.native());

    auto builder = client.create<double>({2, 3}, hamr::buffer_allocator::malloc, HAMR_CURRENT_DEVICE, {"{\"a\": 1}", false, true, true});
    const id first = builder.id();
    TRUE(id(first.text()) == first && first != id() && id() < first && std::unordered_set<id>{first}.count(first));
    TRUE(fails(HAMR_ERROR_VALUE, [] { id("12"); }));
    TRUE(fails(HAMR_ERROR_NOT_SEALED, [&] { client.get<double>(first); }));
    {
        hamr::mirror<double> mirror(builder.buffer());
        for (std::size_t i = 0; i < mirror.size(); i++) mirror.mutable_data()[i] = static_cast<double>(i);
    }
    TRUE(sum(client.get_unsafe<double>(first)) == 15);
    {
        hamr::mirror<double> mirror(builder.buffer(), true);
        TRUE(mirror.native() && mirror.data()[5] == 5);
        mirror.mutable_data()[0] = 1;
        mirror.commit();
        TRUE(!mirror.data() && mirror.size() == 0);
    }
    hamr::mirror<double>(builder.buffer(), true).abandon();
    hamr::buffer<double> sealed = builder.seal_and_get();
    TRUE(sum(sealed) == 16 && hamr_info_of(sealed.native())->ndim == 2);
    TRUE(fails(HAMR_ERROR_RELEASED, [&] { builder.buffer(); }) && fails(HAMR_ERROR_RELEASED, [&] { builder.seal(); }));
    TRUE(fails(HAMR_ERROR_VALUE, [&] { hamr::mirror<double>(sealed).mutable_data(); }));
    TRUE(fails(HAMR_ERROR_TYPE, [&] { client.get<float>(first); }));
    TRUE(client.metadata(first) == "{\"a\": 1}" && client.describe(first).flags == (HAMR_STORE_PINNED | HAMR_STORE_SEALED));

    const id second = client.put(hamr::buffer<double>(hamr::buffer_allocator::malloc, 4, 2.5));
    TRUE(sum(client.get<double>(second)) == 10 && client.exists(second) && client.metadata(second).empty());
    client.put_name("two", second);
    TRUE(fails(HAMR_ERROR_NAME_TAKEN, [&] { client.put_name("two", first); }));
    client.put_name("two", first, true);
    TRUE(client.wait_name("two", second) == first && fails(HAMR_ERROR_TIMEOUT, [&] { client.wait_name("two", first, 20ms); }));
    TRUE(client.get_name("two") == first && client.list_named("tw").size() == 1 && client.list().size() == 2);
    client.drop_name("two");
    TRUE(fails(HAMR_ERROR_NOT_FOUND, [&] { client.get_name("two"); }) && fails(HAMR_ERROR_TIMEOUT, [&] { client.get_name("two", 20ms); }));
    TRUE(client.wait({second, first}).size() == 2 && client.wait({second, id()}, 2, 20ms).size() == 1);

    // Many objects, and one of many arrays.
    const std::vector<hamr::buffer<double>> two(2, hamr::buffer<double>(hamr::buffer_allocator::malloc, 30, 0.5));
    const std::vector<id> ids = client.put_many(two, {"a", ""});
    TRUE(client.get_name("a") == ids[0] && client.list_named("").size() == 1 && client.put_many(two).size() == 2);
    TRUE(fails(HAMR_ERROR_NAME_TAKEN, [&] { client.put_many(two, {"", "a"}); }));
    TRUE(fails(HAMR_ERROR_VALUE, [&] { client.put_many(two, {"b"}); }));
    TRUE(sum(client.get_many<double>({ids[1], ids[0], ids[1]})[2]) == 15);
    TRUE(fails(HAMR_ERROR_TYPE, [&] { client.get_many<int>(ids); }));
    TRUE(fails(HAMR_ERROR_NOT_FOUND, [&] { client.delete_many({ids[0], id()}); }) && client.exists(ids[0]));
    for (const id &each : client.list())
        if (each != first && each != second) client.delete_many({each});
    grouped(client);

    { // given up at its end
        auto other = client.create<double>(3);
        TRUE(client.list(true).size() == 3 && client.statistics().unsealed == 1);
    }
    TRUE(client.list(true).size() == 2);
    auto moved = client.create<double>(3);
    moved.buffer().resize(7);
    TRUE(fails(HAMR_ERROR_VALUE, [&] { moved.seal(); }));
    moved.abort();

    // Who waits for an object has it when it is sealed.
    auto later = client.create<double>(20'000);
    client.set_metadata(later.id(), "[4]");
    client.pin(later.id());
    client.set_evictable(later.id());
    TRUE(client.metadata(later.id()) == "[4]" && client.describe(later.id()).flags == (HAMR_STORE_PINNED | HAMR_STORE_EVICTABLE));
    client.pin(later.id(), false);
    client.set_evictable(later.id(), false);
    TRUE(client.describe(later.id()).flags == 0);
    TRUE(fails(HAMR_ERROR_NOT_FOUND, [&] { client.pin(hamr::store::id(hamr_store_id{})); }));
    std::thread reader([&, object = later.id()] { TRUE(client.get<double>(object, hamr::store::forever).size() == 20'000); });
    later.seal();
    reader.join();

    const hamr::shared_handle shared(sealed);
    TRUE(shared.read_only() && !shared.copied() && shared.native());
    client.delete_object(first);
    TRUE(!client.exists(first) && sum(sealed) == 16);
}

// An exception leaves the elements as they were.
static void unwinding(const std::string &path) {
    hamr::store::server server(path);
    hamr::store::client client(path);
    auto builder = client.create<double>(4, std::getenv("STORE_ON") ? hamr::buffer_allocator::cuda : hamr::buffer_allocator::malloc);
    const bool in_place = builder.buffer().get_owner() < 0;
    fill(builder.buffer(), 1);
    try {
        hamr::mirror<double> mirror(builder.buffer(), true);
        TRUE(in_place == (mirror.data() == builder.buffer().data()));
        TRUE(in_place || hamr_mirror_info(mirror.native())->allocator == HAMR_ALLOCATOR_CUDA_HOST);
        mirror.mutable_data()[0] = 7;
        throw std::runtime_error("no");
    } catch (const std::runtime_error &) {
    }
    TRUE(sum(builder.buffer()) == (in_place ? 10 : 4));
}

// One object each way, by name.
/* The server stands still when a line was read, and goes on when one was written. */
static void limited(const std::string &path) {
    hamr::store::client client(path);
    const auto made = client.put(hamr::buffer<double>(hamr::buffer_allocator::malloc, 20'000, 2.5));
    client.set_timeout(50ms);
    std::string line;
    std::cout << "begun" << std::endl;
    std::getline(std::cin, line);
    TRUE(fails(HAMR_ERROR_TIMEOUT, [&] { client.get<double>(made); }));
    TRUE(fails(HAMR_ERROR_TIMEOUT, [&] { client.put(hamr::buffer<double>(hamr::buffer_allocator::malloc, 20'000, 1.0)); }));
    client.set_timeout(hamr::store::forever);
    std::cout << "ended" << std::endl;
    TRUE(client.exists(made) && client.list().size() == 1);
}

static void exchange(const std::string &path) {
    hamr::store::client client(path);
    auto builder = client.create<double>({3, 1000});
    fill(builder.buffer(), 0.5);
    client.put_name("from C++", builder.seal());
    const hamr::store::id found = client.get_name("from Python", 60s);
    std::cout << sum(client.get<double>(found)) << std::endl;
}

static void groups(const std::string &path) {
    hamr::store::client client(path);
    const hamr::store::group found = client.get_group(client.get_name("from Python"), {"layers.0"});
    const hamr::buffer<double> w = found.get<double>("layers.0.w");
    std::cout << sum(w) << ' ' << found.values() << std::endl;
    client.put_group({{"w", w, "{\"scale\":2}"}, {"n", hamr::buffer<int>(hamr::buffer_allocator::malloc, 2, 7)}}, "from C++");
}

static void devices(const std::string &path) {
    hamr::store::client client(path);
    using A = hamr::buffer_allocator;
    const hamr::buffer<double> host(A::malloc, 3, 1.0), first(A::cuda, 3, 1.0);
    hamr::set_active_cuda_device(1);
    const hamr::buffer<double> second(A::cuda, 3, 1.0);
    client.delete_object(client.put_group({{"host", host}, {"second", second}, {"again", second}}));
    try {
        client.put_group({{"host", host}, {"first", first}, {"second", second}});
    } catch (const hamr::error &error) {
        std::cout << error.what() << std::endl;
    }
}

static void be_killed(const std::string &path) {
    hamr::store::client client(path);
    auto sealed = client.create<double>(20'000), unsealed = client.create<double>(20'000);
    fill(sealed.buffer(), 2);
    std::cout << unsealed.id().text() << ' ' << sealed.seal().text() << std::endl;
    pause();
}

static void share(int socket) {
    hamr::buffer<double> field(hamr::buffer_allocator::shared, 100, 1.5);
    hamr::shared_handle(field).send(socket);
    hamr::buffer<double> given = hamr::open_shared<double>(socket);
    std::cout << sum(field) << ' ' << sum(given) << std::endl;
}

int main(int argc, char **argv) {
    try {
        const std::string what = argc == 3 ? argv[1] : "";
        if (what == "surface") surface(argv[2]);
        else if (what == "unwinding") unwinding(argv[2]);
        else if (what == "limited") limited(argv[2]);
        else if (what == "exchange") exchange(argv[2]);
        else if (what == "groups") groups(argv[2]);
        else if (what == "devices") devices(argv[2]);
        else if (what == "be_killed") be_killed(argv[2]);
        else if (what == "share") share(std::stoi(argv[2]));
        else return 2;
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return 0;
}
