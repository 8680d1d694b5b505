/* Between OCaml's values and the engine. */

#define CAML_INTERNALS /* For the locations of call stacks. */

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <caml/alloc.h>
#include <caml/backtrace_prim.h>
#include <caml/domain_state.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/version.h>

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

static intnat record(uint64_t words, uint64_t samples, int source, value stack, size_t skip)
{
  size_t depth = Wosize_val(stack);
  if (skip > depth) skip = depth;
  return heapline_alloc(domain(), words, samples, source, (const intptr_t *)Op_val(stack) + skip,
                        depth - skip, resolve);
}

/* What the sampler tells. None of these allocates or raises. */

/* The fields of Gc.Memprof.allocation, and the last constructor of allocation_source. */
enum { SAMPLES, SIZE, SOURCE, STACK };
enum { CUSTOM = 2 };

intnat heapline_ml_alloc(value allocation, intnat is_major)
{
  int source = Int_val(Field(allocation, SOURCE)) == CUSTOM ? HEAPLINE_EXTERNAL
               : is_major                                    ? HEAPLINE_MAJOR
                                                             : HEAPLINE_MINOR;
  return record(Long_val(Field(allocation, SIZE)), Long_val(Field(allocation, SAMPLES)), source,
                Field(allocation, STACK), 0);
}

value heapline_ml_promote(intnat id)
{
  heapline_promote(domain(), id);
  return Val_unit;
}

value heapline_ml_collect(intnat id)
{
  heapline_collect(domain(), id);
  return Val_unit;
}

/* Memory outside of the heap: each word is sampled with the same probability, as on the heap. The
   gap to the next sampled word has no memory, so every thread may have one of its own. */

/* 1 / log (1 - rate) of the current recording; 0 at rate 1, where there are no gaps. */
static _Atomic double gap_scale;
/* Changes with every start and stop; odd while a recording goes on. */
static atomic_ulong generation;

struct gaps {
  unsigned long generation;
  uint64_t random;
  /* Words to go, the next sampled one included. */
  uint64_t next;
};

static _Thread_local struct gaps gaps;

/* splitmix64 */
static uint64_t random_bits(void)
{
  uint64_t z = gaps.random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t draw(void)
{
  double uniform = ((double)(random_bits() >> 11) + 0.5) * 0x1p-53;
  double gap = 1 + floor(log(uniform) * gap_scale);
  return gap < 0x1p62 ? (uint64_t)gap : (uint64_t)1 << 62;
}

static uint64_t words_of(intnat bytes)
{
  return bytes <= 0 ? 0 : ((uint64_t)bytes + sizeof(value) - 1) / sizeof(value);
}

/* How many words of so many bytes are sampled. */
intnat heapline_ml_hits(intnat bytes)
{
  unsigned long now = atomic_load_explicit(&generation, memory_order_acquire);
  if (now % 2 == 0) return 0;
  uint64_t words = words_of(bytes);
  if (gap_scale == 0) return words;
  if (gaps.generation != now) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    gaps.random ^= (uint64_t)(uintptr_t)&gaps ^ (uint64_t)time.tv_sec << 32 ^ (uint64_t)time.tv_nsec;
    gaps.generation = now;
    gaps.next = draw();
  }
  intnat hits = 0;
  while (words >= gaps.next) {
    words -= gaps.next;
    hits++;
    gaps.next = draw();
  }
  gaps.next -= words;
  return hits;
}

/* Takes note of it. The innermost function of the stack is the library's own. */
intnat heapline_ml_external(intnat bytes, intnat hits, value stack)
{
  return record(words_of(bytes), hits, HEAPLINE_EXTERNAL, stack, 1);
}

/* Start and stop */

static const char *text_of_option(value option)
{
  return Is_block(option) ? String_val(Field(option, 0)) : NULL;
}

value heapline_ml_start(value trace, value rate, value context, value params)
{
  char message[512];
  double sampling_rate = Double_val(rate);
  if (heapline_start(String_val(trace), sampling_rate, text_of_option(context), String_val(params), 0,
                     message, sizeof message) != 0)
    caml_raise_sys_error(caml_copy_string(message));
  gap_scale = sampling_rate < 1 ? 1 / log1p(-sampling_rate) : 0;
  atomic_fetch_add(&generation, 1);
  return Val_unit;
}

value heapline_ml_stop(value unit)
{
  (void)unit;
  atomic_fetch_add(&generation, 1);
  heapline_stop();
  return Val_unit;
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
