/* Between OCaml's values and the engine. */

#define CAML_INTERNALS /* For the locations of call stacks. */

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <caml/version.h>

#include <caml/alloc.h>
#include <caml/backtrace_prim.h>
#if OCAML_VERSION >= 50000
#include <caml/domain.h>
#endif
#include <caml/domain_state.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/memprof.h>
#include <caml/mlvalues.h>
#include <caml/signals.h>

#include "engine.h"

static size_t domain(void)
{
#if OCAML_VERSION >= 50000
  return Caml_state->id;
#else
  return 0;
#endif
}

/* Locations */

static const char *or_unknown(const char *text)
{
  return text != NULL ? text : "";
}

static void add_frame(debuginfo debug, struct heapline_frames *frames)
{
  struct caml_loc_info location;
  caml_debuginfo_location(debug, &location);
  if (!location.loc_valid) return;
#if OCAML_VERSION >= 50200
  heapline_frame(frames, or_unknown(location.loc_filename), or_unknown(location.loc_defname),
                 location.loc_start_lnum, location.loc_start_chr, location.loc_end_offset);
#else
  heapline_frame(frames, or_unknown(location.loc_filename), or_unknown(location.loc_defname),
                 location.loc_lnum, location.loc_startchr, location.loc_endchr);
#endif
}

/* The runtime has the innermost of inlined functions first, the engine wants it last. */
static void resolve(uint64_t code, struct heapline_frames *frames)
{
  debuginfo first = caml_debuginfo_extract((backtrace_slot)(uintptr_t)(code << 1));
  size_t count = 0;
  for (debuginfo debug = first; debug != NULL; debug = caml_debuginfo_next(debug)) count++;
  while (count-- > 0) {
    debuginfo debug = first;
    for (size_t i = 0; i < count; i++) debug = caml_debuginfo_next(debug);
    add_frame(debug, frames);
  }
}

/* The library's name for a block: its id, and whether it is outside of the heap; negative if it is
   not recorded. */
static intnat record(uint64_t words, uint64_t samples, int source, value stack, size_t skip)
{
  size_t depth = Wosize_val(stack);
  if (skip > depth) skip = depth;
  int64_t id = heapline_alloc(domain(), words, samples, source,
                              (const intptr_t *)Op_val(stack) + skip, depth - skip, resolve);
  return id < 0 ? -1 : (id << 1) | (source == HEAPLINE_EXTERNAL);
}

/* What the sampler tells. None of these allocates or raises. */

/* The fields of Gc.Memprof.allocation, and the first constructor of allocation_source that is outside of the heap: Custom,
   which Map_file follows from OCaml 5.4 on. */
enum { SAMPLES, SIZE, SOURCE, STACK };
enum { CUSTOM = 2 };

intnat heapline_ml_alloc(value allocation, intnat is_major)
{
  int source = Int_val(Field(allocation, SOURCE)) >= CUSTOM ? HEAPLINE_EXTERNAL
               : is_major                                    ? HEAPLINE_MAJOR
                                                             : HEAPLINE_MINOR;
  return record(Long_val(Field(allocation, SIZE)), Long_val(Field(allocation, SAMPLES)), source,
                Field(allocation, STACK), 0);
}

value heapline_ml_promote(intnat block)
{
  /* The sampler also tells when the heap's part of a custom block is promoted. What is outside of
     the heap stays there. */
  if ((block & 1) == 0) heapline_promote(domain(), block >> 1);
  return Val_unit;
}

value heapline_ml_collect(intnat block)
{
  heapline_collect(domain(), block >> 1);
  return Val_unit;
}

/* Memory outside of the heap: each word is sampled with the same probability, as on the heap. */

static uint64_t words_of(intnat bytes)
{
  return bytes <= 0 ? 0 : ((uint64_t)bytes + sizeof(value) - 1) / sizeof(value);
}

/* How many words of so many bytes are sampled. */
intnat heapline_ml_hits(intnat bytes)
{
  return heapline_hits(words_of(bytes));
}

/* Takes note of it. The innermost function of the stack is the library's own. */
intnat heapline_ml_external(intnat bytes, intnat hits, value stack)
{
  return record(words_of(bytes), hits, HEAPLINE_EXTERNAL, stack, 1);
}

/* Random numbers */

/* Passes over those that the first or the second sampler of a recording does. The function that chooses the next sample in
   the minor heap takes one of them. */
value heapline_ml_pass_over(value sampler)
{
  uint64_t skips[2];
  heapline_skips(skips);
#if OCAML_VERSION >= 50000
  for (uint64_t i = 0; i < skips[Int_val(sampler)]; i++) caml_memprof_set_trigger(Caml_state);
  caml_reset_young_limit(Caml_state);
#else
  for (uint64_t i = 0; i < skips[Int_val(sampler)]; i++) caml_memprof_renew_minor_sample();
#endif
  return Val_unit;
}

/* Start and stop */

value heapline_ml_start(value settings, value params)
{
  char message[512];
  if (heapline_start(String_val(settings), caml_string_length(settings), String_val(params), message,
                     sizeof message) != 0)
    caml_raise_sys_error(caml_copy_string(message));
  return Val_unit;
}

value heapline_ml_stop(value unit)
{
  (void)unit;
  heapline_stop();
  return Val_unit;
}

/* Programs that wait for `heapline attach` */

/* The signal whose handler looks at what is wanted. It is never sent: the runtime is told that it has come,
   which can be done from any thread. */
static int wake_signal;

static void wake(void)
{
  caml_record_signal(wake_signal);
}

value heapline_ml_listen(value signal)
{
  wake_signal = Int_val(signal);
  return Val_bool(heapline_listen(wake) == 0);
}

/* (number, rate, depth of stacks) */
value heapline_ml_wanted(value unit)
{
  CAMLparam1(unit);
  CAMLlocal2(result, boxed);
  double rate = 0;
  size_t depth = 0;
  intptr_t number = heapline_wanted(&rate, &depth);
  boxed = caml_copy_double(rate);
  result = caml_alloc_tuple(3);
  Store_field(result, 0, Val_long(number));
  Store_field(result, 1, boxed);
  Store_field(result, 2, Val_long(depth));
  CAMLreturn(result);
}

value heapline_ml_begin(value params)
{
  return Val_bool(heapline_begin(String_val(params)) == 0);
}

value heapline_ml_refuse(value message)
{
  heapline_refuse(String_val(message));
  return Val_unit;
}

/* Heap snapshots: other processes take them. */

extern char **environ;

/* Starts a program, and allows this one to be traced by the processes that it starts. Returns the process, or the
   error as a negative number. */
value heapline_ml_spawn(value arguments)
{
  mlsize_t count = Wosize_val(arguments);
  char **argv = calloc(count + 1, sizeof *argv);
  pid_t pid = 0;
  if (argv == NULL) return Val_long(-ENOMEM);
  for (mlsize_t i = 0; i < count; i++) argv[i] = (char *)String_val(Field(arguments, i));
  /* Fails where it need not be allowed. */
  prctl(PR_SET_PTRACER, getpid(), 0, 0, 0);
  int error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
  free(argv);
  return Val_long(error != 0 ? -error : pid);
}

/* Waits a little for a process. Returns its exit status once it has ended, and -1 as long as it has not. */
value heapline_ml_reap(value process)
{
  pid_t pid = Long_val(process);
  int status = 0;
  caml_enter_blocking_section();
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  pid_t ended = waitpid(pid, &status, WNOHANG);
  int error = errno;
  caml_leave_blocking_section();
  if (ended == 0 || (ended < 0 && error == EINTR)) return Val_long(-1);
  prctl(PR_SET_PTRACER, 0, 0, 0, 0);
  return Val_long(ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 255);
}

value heapline_ml_own_process(value unit)
{
  (void)unit;
  return Val_long(getpid());
}

/* Unix.putenv, for which alone programs would have to link unix. */
value heapline_ml_clear_variable(value name)
{
  setenv(String_val(name), "", 1);
  return Val_unit;
}

/* OCaml wants another function where arguments are not untagged: bytecode, which there is none of. */
#define NO_BYTECODE(name)                                                                         \
  value name(void) { caml_failwith("heapline records native programs only"); }

NO_BYTECODE(heapline_ml_alloc_bytecode)
NO_BYTECODE(heapline_ml_promote_bytecode)
NO_BYTECODE(heapline_ml_collect_bytecode)
NO_BYTECODE(heapline_ml_hits_bytecode)
NO_BYTECODE(heapline_ml_external_bytecode)
