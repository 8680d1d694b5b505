/* What heapline looks for in a runtime like that of OCaml 5.4, with one more word in caml_domain_state before id. Functions
   that must not be called end the program. */

#include <stdlib.h>
#include <unistd.h>

enum { ACTION_PENDING = 7, FINAL_INFO = 26, EXTERNAL_INTERRUPT = 36, ID = 41, UNIQUE_ID = 42, MEMPROF = 63 };

long state[128];
__thread long *caml_state = state;

void nothing(void) {}
void (*caml_domain_external_interrupt_hook)(void) = nothing;
void (*caml_minor_gc_end_hook)(void);
void (*caml_leave_blocking_section_hook)(void) = nothing;

long caml_ml_domain_id(long unit) { return caml_state[UNIQUE_ID] << 1 | 1; }
long caml_ml_domain_index(long unit) { return caml_state[ID] << 1 | 1; }
void caml_set_action_pending(long *state) { state[ACTION_PENDING] = 1; }

void caml_process_external_interrupt(void)
{
  if (caml_state[EXTERNAL_INTERRUPT]) caml_domain_external_interrupt_hook();
}

void caml_memprof_new_domain(long *parent, long *child)
{
  long *sampler = calloc(64, 8), *thread = calloc(64, 8);
  sampler[0] = (long)child;
  sampler[8] = thread[10] = 1;
  sampler[11] = sampler[12] = (long)thread;
  thread[11] = (long)sampler;
  for (int i = 15; i < 64; i++) sampler[i] = (child[ID] + 1) * i;
  child[MEMPROF] = (long)sampler;
}

void caml_memprof_delete_domain(long *state)
{
  long *sampler = (long *)state[MEMPROF];
  free((void *)sampler[12]);
  free(sampler);
  state[MEMPROF] = 0;
}

void caml_final_do_roots(void (*action)(void *, long, long *), int flags, void *data, long *state, int values)
{
  long **info = (long **)state[FINAL_INFO];
  if (info && info[2]) action(data, *info[0], info[0]);
}

/* The runtimes of OxCaml are known by this one. */
#ifdef OXCAML
long caml_alloc_local(long words, int tag) { abort(); }
#endif

#define NEVER(name) void name(void) { abort(); }
NEVER(caml_start_program)
NEVER(caml_c_call)
NEVER(caml_debuginfo_extract)
NEVER(caml_debuginfo_next)
NEVER(caml_debuginfo_location)
NEVER(caml_memprof_start)
NEVER(caml_memprof_stop)
NEVER(caml_memprof_discard)
NEVER(caml_ml_gc_ramp_up)
NEVER(caml_request_minor_gc)
NEVER(caml_do_roots)
NEVER(caml_scan_global_roots)
NEVER(caml_memprof_scan_roots)
NEVER(caml_scan_stack)
NEVER(caml_get_frame_descrs)
long caml_globals[1];
void *caml_scan_roots_hook;

int main(void)
{
  caml_memprof_new_domain(NULL, state);
  write(1, "ready\n", 6);
  /* Until the test has closed the other end. */
  char byte;
  while (read(0, &byte, 1) > 0) {}
  for (int i = 0; i < 128; i++)
    if (state[i] && i != MEMPROF) return 1;
  return 0;
}
