/* The engine, which is crates/recorder/src/capi.rs and capi_listen.rs. */

#ifndef HEAPLINE_ENGINE_H
#define HEAPLINE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

enum heapline_source { HEAPLINE_MINOR, HEAPLINE_MAJOR, HEAPLINE_EXTERNAL };

struct heapline_frames;

/* Adds the frames of a location. */
typedef void (*heapline_resolver)(uint64_t code, struct heapline_frames *frames);

/* 0, or 1 with a message. Settings are those of crates/recorder/src/settings: NAME=value, with a NUL after each. */
int heapline_start(const char *settings, size_t length, const char *params, char *message,
                   size_t size);

/* The block's id, or -1. */
int64_t heapline_alloc(size_t domain, uint64_t words, uint64_t samples, int source,
                       const intptr_t *stack, size_t depth, heapline_resolver resolver);

/* How many of so many words outside of the heap are sampled. */
uint64_t heapline_hits(uint64_t words);

/* How many random numbers a first sampler, which is stopped then, and a second one pass over: so a recording has the
   samples of its seed. */
void heapline_skips(uint64_t skips[2]);

void heapline_promote(size_t domain, int64_t id);
void heapline_collect(size_t domain, int64_t id);
void heapline_stop(void);

/* Outermost frame first. */
void heapline_frame(struct heapline_frames *frames, const char *file, const char *name,
                    uint32_t line, uint32_t start_char, uint32_t end_char);

/* Waits for `heapline attach`; 0 if that was possible. Another thread calls the function. */
int heapline_listen(void (*wake)(void));

/* The number of the recording that is wanted, with its rate and depth of stacks; 0 for none, -1 if that is
   not known now. */
intptr_t heapline_wanted(double *rate, size_t *stack_depth);

/* Begins that recording; 0 if that was possible. */
int heapline_begin(const char *params);

/* Says why the sampler cannot be started. */
void heapline_refuse(const char *message);

#endif
