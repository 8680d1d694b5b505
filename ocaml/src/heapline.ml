type id = int

external engine_start : string -> float -> string option -> string -> int -> unit
  = "heapline_ml_start"
external engine_stop : unit -> unit = "heapline_ml_stop"
external clear_variable : string -> unit = "heapline_ml_clear_variable"

external engine_alloc :
  Gc.Memprof.allocation -> (int[@untagged]) -> (id[@untagged])
  = "heapline_ml_alloc_bytecode" "heapline_ml_alloc"
  [@@noalloc]

external engine_promote : (id[@untagged]) -> unit
  = "heapline_ml_promote_bytecode" "heapline_ml_promote"
  [@@noalloc]

external engine_collect : (id[@untagged]) -> unit
  = "heapline_ml_collect_bytecode" "heapline_ml_collect"
  [@@noalloc]

external hits : (int[@untagged]) -> (int[@untagged]) = "heapline_ml_hits_bytecode" "heapline_ml_hits"
  [@@noalloc]

external engine_external :
  (int[@untagged]) -> (int[@untagged]) -> Printexc.raw_backtrace -> (id[@untagged])
  = "heapline_ml_external_bytecode" "heapline_ml_external"
  [@@noalloc]

(* The engine gives a negative id to what it does not record. *)
let recorded id = if id < 0 then None else Some id

let tracker : (id, id) Gc.Memprof.tracker =
  {
    alloc_minor = (fun block -> recorded (engine_alloc block 0));
    alloc_major = (fun block -> recorded (engine_alloc block 1));
    promote = (fun id -> engine_promote id; Some id);
    dealloc_minor = engine_collect;
    dealloc_major = engine_collect;
  }

type tracer = Memprof.profile

(* Starting and stopping are rare: whoever does it in two domains at once gets a failure from the
   sampler or the engine, of which there is one each. *)
let current : tracer option ref = ref None
let currently_tracing () = Option.is_some !current

let start ~stack_depth ~context ~sampling_rate ~filename =
  if currently_tracing () then failwith "Heapline: a recording goes on already";
  if not (sampling_rate > 0. && sampling_rate <= 1.) then
    invalid_arg "Heapline: the sampling rate must be more than 0 and at most 1";
  Option.iter
    (fun depth -> if depth < 1 then invalid_arg "Heapline: the depth of stacks must be at least 1")
    stack_depth;
  engine_start filename sampling_rate context
    (Sys.runtime_parameters ())
    (Option.value stack_depth ~default:0);
  (* One more frame tells the engine that there are more. *)
  let callstack_size =
    match stack_depth with Some depth when depth < max_int -> depth + 1 | _ -> max_int
  in
  match Memprof.start ~sampling_rate ~callstack_size tracker with
  | tracer ->
      current := Some tracer;
      tracer
  | exception error ->
      engine_stop ();
      Sys.remove filename;
      raise error

let start_tracing ~context ~sampling_rate ~filename =
  start ~stack_depth:None ~context ~sampling_rate ~filename

let start_tracing_to_depth stack_depth ~context ~sampling_rate ~filename =
  start ~stack_depth:(Some stack_depth) ~context ~sampling_rate ~filename

let stop_tracing tracer =
  match !current with
  | Some running when running == tracer ->
      current := None;
      (* The sampler is that of the domain that started it, and may be gone with it. *)
      (try Memprof.stop tracer with Failure _ -> ());
      engine_stop ()
  | _ -> ()

let () = at_exit (fun () -> Option.iter stop_tracing !current)
let default_sampling_rate = 1e-5

let requested_rate () =
  match Sys.getenv_opt "MEMTRACE_RATE" with
  | None | Some "" -> None
  | Some text -> (
      match float_of_string_opt text with
      | Some rate -> Some rate
      | None -> invalid_arg ("Heapline: MEMTRACE_RATE is " ^ text ^ ", which is no number"))

let trace_if_requested ?(if_started = `Ignore) ?context ?sampling_rate ?stack_depth () =
  match Sys.getenv_opt "MEMTRACE" with
  | None | Some "" -> ()
  | Some _ when currently_tracing () && if_started = `Ignore -> ()
  | Some filename ->
      let sampling_rate =
        match (requested_rate (), sampling_rate) with
        | Some rate, _ | None, Some rate -> rate
        | None, None -> default_sampling_rate
      in
      clear_variable "MEMTRACE";
      ignore (start ~stack_depth ~context ~sampling_rate ~filename : tracer)

module External = struct
  type token = id

  (* Not inlined, and not left by a tail call: the stack has exactly one frame of ours to skip. *)
  let[@inline never] alloc ~bytes =
    match hits bytes with
    | 0 -> None
    | hits ->
        let stack = Printexc.get_callstack max_int in
        recorded (engine_external bytes hits stack)

  let free = engine_collect
end
