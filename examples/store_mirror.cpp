// An array on the host or on a device that another process reads, while a server keeps it.
//
//     hamr store serve --socket PATH &
//     c++ -std=c++17 -I"$(python -c 'import hamr; print(hamr.get_include())')" -o store_mirror store_mirror.cpp -ldl
//     ./store_mirror PATH [cuda]
//
// The first process makes an object and writes to it by a mirror: page-locked memory of the host, which is
// copied to the device at its end. It seals the object and starts itself again. That process finds the
// object by its id, in place, and reads it by a mirror of its own. Then the object is deleted.
#include <hamr/cpp/store.hpp>

#include <cstring>
#include <iostream>
#include <sys/wait.h>
#include <unistd.h>

static void make_and_show(const char *program, const std::string &path, hamr::buffer_allocator where) {
    hamr::store::client client(path, std::chrono::seconds(30));
    auto builder = client.create<char>(12, where, HAMR_CURRENT_DEVICE, {R"({"language": "C++"})"});
    std::cout << "on the host: " << (builder.buffer().get_owner() < 0) << std::endl;
    {
        hamr::mirror<char> mirror(builder.buffer());
        std::memcpy(mirror.mutable_data(), "hello world", 12);
    }
    const hamr::store::id object = builder.seal();

    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, path.c_str(), "read", object.text().c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error("the reader failed");

    client.delete_object(object);
    std::cout << "objects left: " << client.list(true).size() << std::endl;
}

static void read(const std::string &path, const hamr::store::id &object) {
    hamr::store::client client(path, std::chrono::seconds(30));
    hamr::buffer<char> found = client.get<char>(object);
    hamr::mirror<char> mirror(found, true);
    std::cout << "read by another process: " << mirror.data() << "\nmetadata: " << client.metadata(object) << std::endl;
    try {
        mirror.mutable_data()[0] = 'H';
    } catch (const hamr::error &error) {
        std::cout << "writing is refused: " << error.what() << std::endl;
    }
}

int main(int argc, char **argv) {
    try {
        if (argc == 4 && std::strcmp(argv[2], "read") == 0) {
            read(argv[1], hamr::store::id(argv[3]));
        } else if (argc == 2 || (argc == 3 && std::strcmp(argv[2], "cuda") == 0)) {
            make_and_show(argv[0], argv[1], argc == 3 ? hamr::buffer_allocator::cuda : hamr::buffer_allocator::malloc);
        } else {
            std::cerr << "usage: " << argv[0] << " PATH [cuda]" << std::endl;
            return 2;
        }
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return 0;
}
