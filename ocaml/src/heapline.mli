(** Records the heap of this program: a sample of the blocks that it allocates, who allocates them,
    and how long they live.

    [heapline summary], [heapline view] and the tools of memtrace read the trace. Programs that
    cannot be changed are recorded by [heapline record]; this library is for those that want to
    decide when, and for static executables.

    It takes the place of [Memtrace]: [Heapline.trace_if_requested ()] instead of
    [Memtrace.trace_if_requested ()] is all there is to change. Unlike memtrace it records all domains
    that were spawned, directly or not, by the one that started it after it did. *)

(** If the environment variable [MEMTRACE] is set, records to the file that it names, until the
    program ends. Otherwise it does nothing. The variable is cleared, so that programs
    that this one starts do not write to the same file.

    @param if_started
      What to do if a recording goes on already: [`Ignore], which is the default, or [`Fail].
    @param context A text to tell traces apart by.
    @param sampling_rate
      The probability with which each allocated word is sampled, more than 0 and at most 1. The
      environment variable [MEMTRACE_RATE] takes precedence; without either it is
      {!default_sampling_rate}.
    @raise Sys_error if the file cannot be written.
    @raise Invalid_argument if the rate, or [MEMTRACE_RATE], is none.
    @raise Failure
      if somebody else uses [Gc.Memprof], or a recording goes on and [if_started] is [`Fail]. *)
val trace_if_requested :
  ?if_started:[ `Fail | `Ignore ] -> ?context:string -> ?sampling_rate:float -> unit -> unit

(** A recording. *)
type tracer

(** Starts a recording. It goes on until {!stop_tracing} or the end of the program. A file that
    is there already is overwritten.

    @raise Sys_error if the file cannot be written.
    @raise Invalid_argument if the rate is none.
    @raise Failure if a recording goes on already, or somebody else uses [Gc.Memprof]. *)
val start_tracing : context:string option -> sampling_rate:float -> filename:string -> tracer

(** Ends a recording. Does nothing if it has ended. *)
val stop_tracing : tracer -> unit

(** Whether a recording goes on. *)
val currently_tracing : unit -> bool

(** One sample for 100,000 words. *)
val default_sampling_rate : float

(** Memory that is not on OCaml's heap, and that the runtime knows nothing of: what C code allocates.
    (Bigarrays are recorded without it.) *)
module External : sig
  (** A sampled piece of memory. *)
  type token [@@immediate]

  (** Says that so many bytes were allocated. For a few of them, and only while recording, there
      is a token to give to {!free} when they are freed. *)
  val alloc : bytes:int -> token option

  val free : token -> unit
end
