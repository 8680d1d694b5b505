type id = int

external engine_start : string -> string -> unit = "heapline_ml_start"
external engine_stop : unit -> unit = "heapline_ml_stop"
external engine_listen : int -> bool = "heapline_ml_listen"
external engine_wanted : unit -> int * float * int = "heapline_ml_wanted"
external engine_begin : string -> bool = "heapline_ml_begin"
external engine_refuse : string -> unit = "heapline_ml_refuse"
external spawn : string array -> int = "heapline_ml_spawn"
external reap : int -> int = "heapline_ml_reap"
external own_process : unit -> int = "heapline_ml_own_process"
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

(* One more frame tells the engine that there are more. *)
let callstack_size = function
  | Some depth when depth < max_int -> depth + 1
  | _ -> max_int

(* The settings of a recording, as the engine reads them. *)
let settings ~stack_depth ~context ~sampling_rate ~filename =
  let variable (name, value) = Printf.sprintf "HEAPLINE_%s=%s\000" name value in
  [
    Some ("TRACE", filename);
    Some ("RATE", Printf.sprintf "%.17g" sampling_rate);
    Option.map (fun seed -> ("SEED", seed)) (Sys.getenv_opt "HEAPLINE_SEED");
    Option.map (fun context -> ("CONTEXT", context)) context;
    Option.map (fun depth -> ("STACK_DEPTH", string_of_int depth)) stack_depth;
  ]
  |> List.filter_map (Option.map variable)
  |> String.concat ""

let start ~stack_depth ~context ~sampling_rate ~filename =
  if currently_tracing () then failwith "Heapline: a recording goes on already";
  if not (sampling_rate > 0. && sampling_rate <= 1.) then
    invalid_arg "Heapline: the sampling rate must be more than 0 and at most 1";
  Option.iter
    (fun depth -> if depth < 1 then invalid_arg "Heapline: the depth of stacks must be at least 1")
    stack_depth;
  engine_start
    (settings ~stack_depth ~context ~sampling_rate ~filename)
    (Sys.runtime_parameters ());
  match Memprof.start ~sampling_rate ~callstack_size:(callstack_size stack_depth) tracker with
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

(* The recording of `heapline attach`, and its number. *)
let attached : (int * tracer) option ref = ref None

let stop_attached () =
  match !attached with
  | None -> ()
  | Some (_, tracer) ->
      attached := None;
      current := None;
      (* It may be that of another domain. *)
      (try Memprof.stop tracer with Failure _ -> ())

let start_attached number sampling_rate stack_depth =
  if currently_tracing () then engine_refuse "the program records itself"
  else if engine_begin (Sys.runtime_parameters ()) then
    let stack_depth = if stack_depth = 0 then None else Some stack_depth in
    match Memprof.start ~sampling_rate ~callstack_size:(callstack_size stack_depth) tracker with
    | tracer ->
        attached := Some (number, tracer);
        current := Some tracer
    | exception Failure _ -> engine_refuse "the program uses Gc.Memprof itself; stop that first"

(* Does what `heapline attach` wants. *)
let serve _ =
  let number, rate, depth = engine_wanted () in
  if number >= 0 then begin
    (match !attached with
    | Some (running, _) when running <> number -> stop_attached ()
    | _ -> ());
    if number > 0 && Option.is_none !attached then start_attached number rate depth
  end

(* A real-time signal that hardly any program uses. *)
let default_signal = 62
let is_listening = ref false

let listen ?(signal = default_signal) () =
  if not !is_listening then begin
    (match Sys.signal signal (Sys.Signal_handle serve) with
    | Sys.Signal_default -> ()
    | before ->
        Sys.set_signal signal before;
        invalid_arg (Printf.sprintf "Heapline: the program uses signal %d; give another one" signal));
    if not (engine_listen signal) then failwith "Heapline: cannot listen for heapline attach";
    is_listening := true
  end

let snapshot ?(heapline = "heapline") filename =
  let own = string_of_int (own_process ()) in
  let process = spawn [| heapline; "snapshot"; "--quiet"; "--force"; "-o"; filename; own |] in
  if process < 0 then
    failwith (Printf.sprintf "Heapline: cannot run %s (error %d)" heapline (-process));
  (* A snapshot is taken between two waits, where this program runs OCaml code. *)
  let rec wait () = match reap process with -1 -> wait () | status -> status in
  match wait () with
  | 0 -> ()
  | status -> failwith (Printf.sprintf "Heapline: %s snapshot failed with status %d" heapline status)

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
