// A library to preload: the Nth `new` of main() and the following M - 1 fail (KINTSUGI_FAIL_NEW=N:M); the number of
// calls is written at exit to the file KINTSUGI_COUNT_NEW. malloc calls of libraries do not fail, since some end the
// process then. For glibc.
#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

using Main = int (*)(int, char**, char**);

Main real_main;
std::atomic<bool> armed{false};
std::atomic<long> allocations{0};
long first = 0, end = 0;

// The program's code, from its first byte.
struct Code {
  unsigned long begin = 0, bytes = 0;
};
std::array<Code, 4096> exempt;  // of KINTSUGI_EXEMPT, as nm -S lists it
size_t num_exempt = 0;

void read_exempt() {
  const char* path = std::getenv("KINTSUGI_EXEMPT");
  FILE* file = path != nullptr ? std::fopen(path, "r") : nullptr;
  if (file == nullptr) return;
  for (Code c; num_exempt < exempt.size() && std::fscanf(file, "%lx %lx%*[^\n]", &c.begin, &c.bytes) == 2;)
    exempt[num_exempt++] = c;
  std::fclose(file);
}

// Whether the caller is a library that aborts on failure in noexcept functions: toml++ (kintsugi allocates before
// calling it), directory entries of libstdc++, and exempt ones.
bool cannot_fail() {
  void* stack[32];
  const int depth = ::backtrace(stack, 32);
  for (int i = 0; i < depth; ++i) {
    Dl_info info;
    if (::dladdr(stack[i], &info) == 0) continue;
    if (std::strstr(info.dli_fname, "libtomlplusplus") != nullptr) return true;
    if (info.dli_sname != nullptr && std::strstr(info.dli_sname, "directory_iterator") != nullptr) return true;
    const auto at = static_cast<unsigned long>(static_cast<char*>(stack[i]) - static_cast<char*>(info.dli_fbase));
    if (std::strstr(info.dli_fname, "/kintsugi") != nullptr)
      for (size_t c = 0; c < num_exempt; ++c)
        if (at >= exempt[c].begin && at < exempt[c].begin + exempt[c].bytes) return true;
  }
  return false;
}

bool fails() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long n = allocations.fetch_add(1);
  return n >= first && n < end && !cannot_fail();
}

void write_count() {
  armed = false;
  const char* path = std::getenv("KINTSUGI_COUNT_NEW");
  FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%ld\n", allocations.load());
  std::fclose(file);
}

int armed_main(int argc, char** argv, char** environment) {
  long failing = 0;
  if (const char* text = std::getenv("KINTSUGI_FAIL_NEW");
      text != nullptr && std::sscanf(text, "%ld:%ld", &first, &failing) == 2)
    end = first + failing;
  read_exempt();
  cannot_fail();  // the first time, backtrace() loads a library
  armed = true;
  const int code = real_main(argc, argv, environment);
  write_count();
  return code;
}

void* allocate(size_t bytes, size_t alignment) {
  if (fails()) return nullptr;
  return alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                        : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  if (void* data = allocate(bytes, alignment)) return data;
  throw std::bad_alloc();
}

}  // namespace

extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                                 void* stack_end) {
  real_main = main;
  const auto real = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* operator new(size_t bytes) {
  return allocate_or_throw(bytes, 0);
}
void* operator new[](size_t bytes) {
  return allocate_or_throw(bytes, 0);
}
void* operator new(size_t bytes, std::align_val_t a) {
  return allocate_or_throw(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a) {
  return allocate_or_throw(bytes, static_cast<size_t>(a));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 0);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 0);
}
void operator delete(void* data) noexcept {
  std::free(data);
}
void operator delete[](void* data) noexcept {
  std::free(data);
}
void operator delete(void* data, size_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, size_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, size_t, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, size_t, std::align_val_t) noexcept {
  std::free(data);
}
