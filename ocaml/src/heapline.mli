(** Records the heap of this program: a sample of the allocated blocks, with their call stacks and
    lifetimes.

    [heapline summary], [heapline view] and memtrace's tools read the trace. To record a program
    without changing it, use [heapline record]; this library is for programs that start and stop
    recording themselves, and for static executables.

    It replaces [Memtrace]: change [Memtrace.trace_if_requested ()] to
    [Heapline.trace_if_requested ()]. Unlike memtrace, it records all domains that are spawned,
    directly or indirectly, by the domain that started it, after the start. *)

(** If the environment variable [MEMTRACE] is set, records to the file that it names until the
    program ends; otherwise does nothing. The variable is cleared, so that child processes do not
    write to the same file.

    @param if_started
      What to do if a recording is already active: [`Ignore] (the default) or [`Fail].
    @param context A description to store in the trace.
    @param sampling_rate
      The probability with which each allocated word is sampled, above 0 and at most 1. The
      environment variable [MEMTRACE_RATE] takes precedence; the default is
      {!default_sampling_rate}.
    @param stack_depth
      Frames to keep of each call stack, the innermost ones; a frame [<deeper calls>] stands for the
      others. Limits the cost of deep stacks. The default is to keep all.
    @raise Sys_error if the file cannot be written.
    @raise Invalid_argument if the rate, [MEMTRACE_RATE] or the depth is invalid.
    @raise Failure
      if [Gc.Memprof] is in use, or if a recording is active and [if_started] is [`Fail]. *)
val trace_if_requested :
  ?if_started:[ `Fail | `Ignore ] ->
  ?context:string ->
  ?sampling_rate:float ->
  ?stack_depth:int ->
  unit ->
  unit

(** A recording. *)
type tracer

(** Starts a recording, which continues until {!stop_tracing} or the end of the program. An existing
    file is overwritten.

    @raise Sys_error if the file cannot be written.
    @raise Invalid_argument if the rate is invalid.
    @raise Failure if a recording is active, or [Gc.Memprof] is in use. *)
val start_tracing : context:string option -> sampling_rate:float -> filename:string -> tracer

(** Like {!start_tracing}, with at most so many frames of each call stack: see
    {!trace_if_requested}. *)
val start_tracing_to_depth :
  int -> context:string option -> sampling_rate:float -> filename:string -> tracer

(** Ends a recording. Does nothing if it has ended. *)
val stop_tracing : tracer -> unit

(** Returns true while a recording is active. *)
val currently_tracing : unit -> bool

(** One sample per 100,000 words. *)
val default_sampling_rate : float

(** Waits for [heapline attach] of the same user or root, which then records the program without
    tracing or stopping it. Nothing is recorded until then. Costs one thread, which sleeps. Does nothing
    if it was called before.

    Recordings cover the domain that notices the request, the main domain in programs that have one, and
    the domains that it spawns while it is recorded. {!currently_tracing} is true meanwhile. Forked
    processes do not listen.

    @param signal
      A signal that the program does not use, as the system numbers them. Its handler starts and stops
      the sampler. No signal is sent. The default is 62, a real-time signal.
    @raise Invalid_argument if the program handles or ignores that signal.
    @raise Failure if the system does not allow to listen. *)
val listen : ?signal:int -> unit -> unit

(** Writes a heap snapshot of this program to a file, for [heapline retained] and [heapline why]. An
    existing file is overwritten.

    Runs [heapline snapshot], which prints errors to the standard error output, and waits for it. It works
    where [heapline snapshot] works: not in static executables.

    @param heapline The program to run. The default is [heapline], which is looked for in [PATH].
    @raise Failure if it cannot be run, or there is no snapshot. *)
val snapshot : ?heapline:string -> string -> unit

(** Memory outside of OCaml's heap that the runtime does not know, such as memory allocated by C code.
    (Bigarrays are recorded automatically.) *)
module External : sig
  (** A sampled block. *)
  type token [@@immediate]

  (** Reports an allocation. Returns a token for {!free} if the block is sampled, which only happens
      while recording. *)
  val alloc : bytes:int -> token option

  (** Reports that a sampled block was freed. *)
  val free : token -> unit
end
